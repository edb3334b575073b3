"""The entry to MySQL's types: `describe` returns the `ColumnType` of a column, which answers every question about it.

Each family of types has a file of its own, in which a type is one entry (`definition`). A new family is one more line
in `_TYPES`. Values of a type meet in its canonical column, one Arrow array:

    row images   ---decode---->                      ---encode, connect---> JSON, Avro
                                canonical column
    SELECT       --from_text-->                      ---frame-------------> DataFrame
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, TextArray
from incsnap.columns.images import Field
from incsnap.columns.packets import Spans
from incsnap.columns.variable import Bools, valid
from incsnap.connect.json_text import Encoded
from incsnap.connect.json_values import connect_json
from incsnap.connect.schema import Schema
from incsnap.errors import UnsupportedType, ValueRefused, shorten
from incsnap.tables import Column, TableId
from incsnap.types import byte_strings, choices, decimals, numbers, spatial, text, vector
from incsnap.types.definition import Family, TypeDefinition
from incsnap.types.json import documents
from incsnap.types.modes import Modes
from incsnap.types.temporal import dates, datetimes, times

_TYPES: Family = {
    **numbers.TYPES,
    **decimals.TYPES,
    **text.TYPES,
    **choices.TYPES,
    **byte_strings.TYPES,
    **documents.TYPES,
    **spatial.TYPES,
    **vector.TYPES,
    **dates.TYPES,
    **times.TYPES,
    **datetimes.TYPES,
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of one column."""

    column: Column  #: with name and parameters
    table: TableId  #: for messages
    _definition: TypeDefinition  #: functions for the type's values

    @property
    def arrow(self) -> pa.DataType:
        """Return the Arrow type of the canonical column."""
        return self._definition.arrow

    def field(self, meta: int) -> Field:
        """Return how many bytes the column takes in a row image. `meta` is `WireColumn.meta`."""
        return self._definition.field(meta)

    def decode(self, spans: Spans) -> pa.Array:
        """Return the canonical column of values in row images.

        Raise ValueError (pa.ArrowInvalid is one) or IndexError if a value is damaged.
        """
        return self._definition.decode(spans)

    def select(self, sql: str) -> str:
        """Return the SQL expression that selects the column named `sql` (quoted) in the text protocol without loss."""
        return self._definition.select(sql)

    def from_text(self, raw: BytesArray) -> Array:
        """Return the canonical column of the text protocol's values (`pa.binary()`, null for NULL).

        Raise pa.ArrowInvalid or ValueError if a value is not what the server prints for the type.
        """
        return self._definition.from_text(raw)

    def schema(self, modes: Modes) -> Schema:
        """Return the Connect schema of the field, without a default. It is optional if the column is nullable."""
        return self._definition.schema(modes)

    def default(self, shown: str, modes: Modes) -> Any:
        """Return the column's DEFAULT for its schema, as Connect's JsonConverter writes a value.

        `shown` is information_schema's COLUMN_DEFAULT. Return None if `shown` is no value, or if the modes cannot
        express the value. The schema then has no default, as with Debezium, and the job goes on.
        https://dev.mysql.com/doc/refman/en/information-schema-columns-table.html
        """
        printed = self._definition.default(shown)
        if printed is None:
            return None
        try:
            canonical = self.from_text(pa.array([printed], pa.binary()))
        except (pa.ArrowInvalid, ValueError):
            return None
        if self.refused(canonical, modes) is not None:
            _warn_of_default(self.table, self.column.name, shown, modes.time_precision)
            return None
        text = self.to_json(canonical, modes)[0].as_py()
        is_decimal = pa.types.is_decimal(canonical.type) and self.schema(modes).type == "bytes"
        return json.loads(text, parse_float=Decimal) if is_decimal else json.loads(text)

    @property
    def rounded(self) -> bool:
        """Return True if some modes write different values alike. Then a record's key may not tell its rows apart."""
        return self._definition.rounded

    def refused(self, array: Array, modes: Modes) -> Bools | None:
        """Return a mask of the values that the modes cannot express; None if they can express all."""
        refused = self._definition.refused and self._definition.refused(array, modes)
        if refused is None or not refused.any():
            return None
        present = valid(array)
        return refused if present is None else refused & present

    def connect(self, array: Array, modes: Modes) -> Array:
        """Return the Connect values of a canonical column, null for null.

        They are boolean, int64 for all integers, float32, float64, string, binary, struct or list of float32. A value
        that the modes cannot express becomes null; `Modes.converting` chooses whether a warning is logged. Raise
        ValueRefused for such a value if the column is NOT NULL, or if `Modes.converting` is fail.
        """
        return self._definition.connect(self._expressible(array, modes), modes)

    def encode(self, array: Array, modes: Modes) -> Encoded:
        """Return the JSON of each value of a canonical column, perhaps without quotes; null for null.

        Values that the modes cannot express are handled as in `connect`.
        """
        array = self._expressible(array, modes)
        if self._definition.encode:
            return self._definition.encode(array, modes)
        return connect_json(self._definition.connect(array, modes))

    def to_json(self, array: Array, modes: Modes) -> TextArray:
        """Return the complete JSON of each value of a canonical column (`pa.string()`), `null` for null."""
        return self.encode(array, modes).complete().fill_null("null")

    @property
    def frame_type(self) -> pa.DataType:
        """Return the Arrow type of the column in a DataFrame."""
        return self._definition.frame_type or self._definition.arrow

    def frame(self, array: Array) -> Array:
        """Return a canonical column as a DataFrame's column, null for null. The values do not depend on modes."""
        return self._definition.frame(array)

    def _expressible(self, array: Array, modes: Modes) -> Array:
        """Return the values, with null in place of those that the modes cannot express.

        Raise ValueRefused if null is not allowed.
        """
        refused = self.refused(array, modes)
        if refused is None:
            return array
        what = (
            f"{self.table}: column {self.column.name} ({self.column.type.upper()}) holds {refused.sum()} values that"
            f" time.precision.mode={modes.time_precision} cannot express"
        )
        if modes.converting == "fail" or not self.column.nullable:
            raise ValueRefused(
                what, "Set time.precision.mode=microseconds, which can express all of them, or correct the values."
            )
        _log.log(logging.WARNING if modes.converting == "warn" else logging.DEBUG, "%s; null is written", what)
        return pc.if_else(pa.array(refused), pa.scalar(None, array.type), array)


@lru_cache(maxsize=4096)
def _warn_of_default(table: TableId, column: str, shown: str, time_precision: str) -> None:
    """Log that a schema lacks a DEFAULT.

    This is logged once in a process, though schemas are made for each block of records.
    """
    _log.warning(
        "%s: time.precision.mode=%s cannot express the DEFAULT %r of column %s; the field's schema has no default",
        table,
        time_precision,
        shorten(shown),
        column,
    )


@lru_cache(maxsize=4096)
def describe(column: Column, table: TableId) -> ColumnType:
    """Return the type of `column`.

    Raise UnsupportedType for a type that incsnap cannot read; the error names `table` and column.
    """
    define = _TYPES.get(column.type)
    if define is None:
        raise UnsupportedType(
            f"{table}: column {column.name} has the type {column.type}, which incsnap cannot read",
            f"Leave the table out (table.exclude.list={table.database}\\.{table.table}), or change the column's type.",
        )
    try:
        return ColumnType(column, table, define(column))
    except UnsupportedType as error:
        raise UnsupportedType(f"{table}: {error.message}", error.hint) from None
