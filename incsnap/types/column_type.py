"""The entry to MySQL's types: `describe` returns the `ColumnType` of a column, which answers every question about it.

Each family of types has a file of its own, in which a type is one entry (`definition`). A new family is one more line
in `_TYPES`. All values of a column become one Arrow array first, its *canonical column*: the same array, whether the
values come from row images of the binlog or from a SELECT. All outputs are made from that array. How an output shows
values depends on the *modes*: settings such as `decimal.handling.mode` and `time.precision.mode`.

    row images   ---decode---->                      ---encode, connect---> JSON, Avro
                                canonical column
    SELECT       --from_text-->                      ---frame-------------> DataFrame
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, TextArray
from incsnap.columns.variable import Bools, valid
from incsnap.connect.json_text import Encoded
from incsnap.connect.json_values import connect_json
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType(TypeDefinition):
    """The type of one column of a table: how its values are decoded, and how records and DataFrames show them."""

    column: Column  #: with name and parameters
    table: TableId  #: for messages

    def default(self, shown: str, modes: Modes) -> Any:
        """Return the column's DEFAULT for its schema, as Connect's JsonConverter writes a value.

        `shown` is information_schema's COLUMN_DEFAULT. Return None if `shown` is no value, or if the modes cannot
        express the value. The schema then has no default, as with Debezium, and the job goes on.
        https://dev.mysql.com/doc/refman/en/information-schema-columns-table.html
        """
        canonical = self.canonical_default(shown)
        if canonical is None:
            return None
        if self.refused(canonical, modes) is not None:
            _warn_of_default(self.table, self.column.name, shown, modes.time_precision)
            return None
        text = self.to_json(canonical, modes)[0].as_py()
        is_decimal = pa.types.is_decimal(canonical.type) and self.schema(modes).type == "bytes"
        return json.loads(text, parse_float=Decimal) if is_decimal else json.loads(text)

    def canonical_default(self, shown: str) -> Array | None:
        """Return the column's DEFAULT as a canonical column of one value; None if `shown` is no value.

        `shown` is information_schema's COLUMN_DEFAULT.
        """
        printed = self.printed_default(shown)
        if printed is None:
            return None
        try:
            return self.from_text(pa.array([printed], pa.binary()))
        except (pa.ArrowInvalid, ValueError):
            return None

    def refused(self, array: Array, modes: Modes) -> Bools | None:
        """Return a mask of the values that the modes cannot express; None if they can express all."""
        refused = self.inexpressible and self.inexpressible(array, modes)
        if refused is None or not refused.any():
            return None
        present = valid(array)
        return refused if present is None else refused & present

    def connect(self, array: Array, modes: Modes) -> Array:
        """Return the column's values as Kafka Connect has them under the modes, for Avro; a null stays null.

        `array` is a canonical column. A value that the modes cannot express becomes null, with a warning if
        `Modes.converting` is warn. Raise ValueRefused for such a value if the column is NOT NULL, or if
        `Modes.converting` is fail.
        """
        return self.connect_values(self._expressible(array, modes), modes)

    def encode(self, array: Array, modes: Modes) -> Encoded:
        """Return the JSON of each value of a canonical column, perhaps without quotes; null for null.

        Values that the modes cannot express are handled as in `connect`.
        """
        array = self._expressible(array, modes)
        if self.json_texts:
            return self.json_texts(array, modes)
        return connect_json(self.connect_values(array, modes))

    def to_json(self, array: Array, modes: Modes) -> TextArray:
        """Return the complete JSON of each value of a canonical column (`pa.string()`), `null` for null."""
        return self.encode(array, modes).complete().fill_null("null")

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
        defined = define(column)
    except UnsupportedType as error:
        raise UnsupportedType(f"{table}: {error.message}", error.hint) from None
    of_type = {each.name: getattr(defined, each.name) for each in fields(defined)}
    return ColumnType(**of_type | {"frame_type": defined.frame_type or defined.arrow}, column=column, table=table)
