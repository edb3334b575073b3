"""Every MySQL type, described once: its bytes in the binlog, its SELECT expression, its canonical column, its Connect
values and schema, its JSON.

Both sources meet in the canonical column (``arrow``), so that a row read by SELECT and the same row read from the
binlog give equal bytes. Adding a type is adding one entry to ``_FAMILIES`` here one to ``binlog_side`` and one to
``field_schemas``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.errors import UnsupportedType, ValueRefused
from incsnap.tables import Column, TableId
from incsnap.types import (
    connect_temporal,
    json_bytes,
    json_numbers,
    shapes,
    text_numbers,
    text_strings,
    text_temporal,
)
from incsnap.types.binlog_side import BinlogSide, binlog_side
from incsnap.types.connect_json import connect_json
from incsnap.types.connect_schema import Schema
from incsnap.types.field_schemas import field_schema
from incsnap.types.json_text import Encoded, strings
from incsnap.types.modes import Modes
from incsnap.types.variable import Bools, valid

_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_log = logging.getLogger(__name__)

_Convert = Callable[[Any, Modes], Any]


@dataclass(frozen=True, slots=True)
class _Family:
    """What SELECT and the formats need to know of one type.

    ``connect``: canonical to Connect values; ``encode``: canonical to JSON text, where there is a faster way than
    through Connect values; ``select``: where the column as it is would lose something; ``refused``: which values the
    modes have no form for (0 stands for null).
    """

    arrow: Any
    from_text: Callable[[Any], Any]
    connect: _Convert = lambda array, modes: array
    encode: Callable[[Any, Modes], Encoded] | None = None
    select: Callable[[str], str] | None = None
    refused: Callable[[Any, Modes], Bools | None] | None = None


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One column's type: what the modules on either side of the canonical column call."""

    column: Column
    table: TableId
    binlog: BinlogSide
    _family: _Family

    @property
    def arrow(self) -> Any:
        """The canonical ``pa.DataType``."""
        return self._family.arrow

    def select(self, sql: str) -> str:
        """The expression that selects the column named ``sql`` (quoted) in the text protocol, without loss."""
        return self._family.select(sql) if self._family.select else sql

    def from_text(self, raw: Any) -> Any:
        """The canonical column of the text protocol's values (``pa.binary()``, null for NULL).

        Raises ``pa.ArrowInvalid`` or ``ValueError`` when a value is not what the server prints for the type.
        """
        return self._family.from_text(raw)

    def schema(self, modes: Modes) -> Schema:
        """The Connect schema of the field; optional as the column is nullable, without a default."""
        return field_schema(self.column, modes)

    def refused(self, array: Any, modes: Modes) -> Bools | None:
        """Which values have no form under the modes; ``None`` when all have one."""
        found = self._family.refused and self._family.refused(array, modes)
        if found is None or not found.any():
            return None
        present = valid(array)
        return found if present is None else found & present

    def connect(self, array: Any, modes: Modes) -> Any:
        """Connect values of a canonical column: boolean, int64 for all integers, float32, float64, string, binary,
        struct or list of float32; null for null.

        A value that has no form under the modes is null, with a warning; ``ValueRefused`` where the column is NOT NULL,
        and when ``Modes.converting`` is fail.
        """
        return self._family.connect(self._expressible(array, modes), modes)

    def encode(self, array: Any, modes: Modes) -> Encoded:
        """JSON text of each value of a canonical column, perhaps without its quotes; null for null. As ``connect``."""
        array = self._expressible(array, modes)
        if self._family.encode:
            return self._family.encode(array, modes)
        return connect_json(self._family.connect(array, modes))

    def to_json(self, array: Any, modes: Modes) -> Any:
        """JSON text of each value of a canonical column, ``null`` for null."""
        return self.encode(array, modes).complete().fill_null("null")

    def _expressible(self, array: Any, modes: Modes) -> Any:
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
def describe(column: Column, table: TableId) -> ColumnType:
    """The type of ``column``; raises ``UnsupportedType`` naming ``table`` and the column."""
    make = _FAMILIES.get(column.type)
    leave_out = f"Leave the table out (table.exclude.list={table.database}\\.{table.table}), or "
    if make is None:
        raise UnsupportedType(
            f"{table}: column {column.name} has type {column.type.upper()}, which incsnap cannot read",
            leave_out + "change the column's type.",
        )
    return ColumnType(column, table, binlog_side(column, table), make(column))


def _integer(column: Column) -> _Family:
    if column.type == "bigint" and column.unsigned:
        return _Family(
            pa.uint64(),
            text_numbers.unsigned_integers,
            _unsigned_bigint,
            lambda array, modes: json_numbers.unsigned_bigints(array, modes.bigint_unsigned),
        )
    return _Family(pa.int64(), text_numbers.integers)


def _unsigned_bigint(array: Any, modes: Modes) -> Any:
    return json_numbers.as_long(array) if modes.bigint_unsigned == "long" else json_numbers.decimal_bytes(array)


def _decimal(column: Column) -> _Family:
    precision, scale = column.precision, column.scale

    def connect(array: Any, modes: Modes) -> Any:
        if modes.decimal_handling == "precise":
            return json_numbers.decimal_bytes(array)
        plain = json_numbers.plain_text(array)
        return plain if modes.decimal_handling == "string" else plain.cast(pa.float64())

    return _Family(
        pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale),
        lambda raw: text_numbers.decimals(raw, precision, scale),
        connect,
        lambda array, modes: json_numbers.decimals(array, modes.decimal_handling),
    )


def _float(column: Column) -> _Family:
    if column.type == "float":
        return _Family(pa.float32(), text_numbers.floats, select=text_numbers.exact_double)
    return _Family(pa.float64(), text_numbers.doubles, select=text_numbers.exact_double)


def _bit(column: Column) -> _Family:
    bits = column.length
    connect = json_numbers.flags if bits == 1 else lambda array: json_numbers.low_bytes(array, (bits + 7) // 8)
    return _Family(
        pa.uint64(),
        text_numbers.unsigned_integers,
        lambda array, modes: connect(array),
        select=lambda sql: f"({sql} + 0)",
    )


def _text(column: Column) -> _Family:
    return _Family(pa.string(), text_strings.texts, encode=lambda array, modes: strings(array))


def _bytes(column: Column) -> _Family:
    def connect(array: Any, modes: Modes) -> Any:
        handling = modes.binary_handling
        return array if handling == "bytes" else json_bytes.in_text(array, handling)

    return _Family(
        pa.binary(),
        text_strings.byte_strings,
        connect,
        lambda array, modes: json_bytes.byte_strings(array, modes.binary_handling),
    )


def _json(column: Column) -> _Family:
    return _Family(pa.string(), text_strings.documents)


def _geometry(column: Column) -> _Family:
    point = column.type == "point"
    return _Family(pa.binary(), text_strings.byte_strings, lambda array, modes: shapes.geometries(array, point=point))


def _vector(column: Column) -> _Family:
    return _Family(pa.binary(), text_strings.byte_strings, lambda array, modes: shapes.vectors(array))


def _temporal(arrow: Any, from_text: Callable[[Any], Any], connect: _Convert, refused: Any = None) -> _Family:
    """ISO text and numbers need no escaping."""

    def encode(array: Any, modes: Modes) -> Encoded:
        values = connect(array, modes)
        quoted = pa.types.is_string(values.type)
        return Encoded(values if quoted else values.cast(pa.string()), quoted)

    return _Family(arrow, from_text, connect, encode, refused=refused)


def _date(column: Column) -> _Family:
    return _temporal(
        pa.int32(), text_temporal.dates, lambda array, modes: connect_temporal.dates(array, column.nullable, modes)
    )


def _time(column: Column) -> _Family:
    return _temporal(
        pa.int64(),
        lambda raw: text_temporal.times(raw, column.fraction),
        connect_temporal.times,
        connect_temporal.times_refused,
    )


def _datetime(column: Column) -> _Family:
    return _temporal(
        pa.int64(),
        lambda raw: text_temporal.datetimes(raw, column.fraction),
        lambda array, modes: connect_temporal.datetimes(array, column.nullable, column.fraction, modes),
        connect_temporal.datetimes_refused,
    )


def _timestamp(column: Column) -> _Family:
    return _temporal(
        pa.int64(),
        lambda raw: text_temporal.datetimes(raw, column.fraction),
        lambda array, modes: connect_temporal.timestamps(array, column.nullable, column.fraction),
    )


_FAMILIES: dict[str, Callable[[Column], _Family]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), _integer),
    "decimal": _decimal,
    **dict.fromkeys(("float", "double"), _float),
    "bit": _bit,
    **dict.fromkeys((*_TEXTS, "enum", "set"), _text),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "json": _json,
    **dict.fromkeys(shapes.GEOMETRIES, _geometry),
    "vector": _vector,
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "timestamp": _timestamp,
}
