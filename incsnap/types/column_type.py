"""Every MySQL type, described once: its bytes in the binlog, its SELECT expression, its canonical column, its JSON.

Both sources meet in the canonical column (``arrow``), so that a row read by SELECT and the same row read from the
binlog give equal bytes. Adding a type is adding one entry to ``_FAMILIES`` here and one to ``binlog_side``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from incsnap.errors import UnsupportedType
from incsnap.tables import Column, TableId
from incsnap.types import json_bytes, json_numbers, json_temporal, text_numbers, text_strings, text_temporal
from incsnap.types.binlog_side import BinlogSide, binlog_side
from incsnap.types.binlog_text import CHARSETS
from incsnap.types.json_text import Encoded, strings
from incsnap.types.modes import Modes

_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")


@dataclass(frozen=True, slots=True)
class _Family:
    """What SELECT and JSON need to know of one type; ``None`` for ``select`` is the column as it is."""

    arrow: Any
    from_text: Callable[[Any], Any]
    encode: Callable[[Any, Modes], Encoded]
    select: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One column's type: what the modules on either side of the canonical column call."""

    column: Column
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

    def encode(self, array: Any, modes: Modes) -> Encoded:
        """JSON text of each value of a canonical column, perhaps without its quotes; null for null."""
        return self._family.encode(array, modes)

    def to_json(self, array: Any, modes: Modes) -> Any:
        """JSON text of each value of a canonical column, ``null`` for null."""
        return self.encode(array, modes).complete().fill_null("null")


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
    if column.type in _TEXTS and column.charset not in CHARSETS:
        raise UnsupportedType(
            f"{table}: column {column.name} has character set {column.charset or 'unknown'}, which incsnap cannot read",
            leave_out + f"convert it: ALTER TABLE {table.sql} CONVERT TO CHARACTER SET utf8mb4.",
        )
    return ColumnType(column, binlog_side(column, table), make(column))


def _integer(column: Column) -> _Family:
    if column.type == "bigint" and column.unsigned:
        return _Family(
            pa.uint64(),
            text_numbers.unsigned_integers,
            lambda array, modes: json_numbers.unsigned_bigints(array, modes.bigint_unsigned),
        )
    return _Family(pa.int64(), text_numbers.integers, _numbers)


def _numbers(array: Any, modes: Modes) -> Encoded:
    return json_numbers.numbers(array)


def _decimal(column: Column) -> _Family:
    precision, scale = column.precision, column.scale
    return _Family(
        pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale),
        lambda raw: text_numbers.decimals(raw, precision, scale),
        lambda array, modes: json_numbers.decimals(array, modes.decimal_handling),
    )


def _float(column: Column) -> _Family:
    if column.type == "float":
        return _Family(pa.float32(), text_numbers.floats, _numbers, text_numbers.exact_double)
    return _Family(pa.float64(), text_numbers.doubles, _numbers, text_numbers.exact_double)


def _text(column: Column) -> _Family:
    return _Family(pa.string(), text_strings.texts, lambda array, modes: strings(array))


def _bytes(column: Column) -> _Family:
    return _Family(
        pa.binary(),
        text_strings.byte_strings,
        lambda array, modes: json_bytes.byte_strings(array, modes.binary_handling),
    )


def _json(column: Column) -> _Family:
    return _Family(pa.string(), text_strings.documents, lambda array, modes: strings(array))


def _date(column: Column) -> _Family:
    return _Family(pa.int32(), text_temporal.dates, lambda array, modes: json_temporal.dates(array, column.nullable))


def _time(column: Column) -> _Family:
    return _Family(
        pa.int64(),
        lambda raw: text_temporal.times(raw, column.fraction),
        lambda array, modes: json_temporal.times(array),
    )


def _datetime(column: Column) -> _Family:
    return _Family(
        pa.int64(),
        lambda raw: text_temporal.datetimes(raw, column.fraction),
        lambda array, modes: json_temporal.datetimes(array, column.nullable, column.fraction),
    )


def _timestamp(column: Column) -> _Family:
    return _Family(
        pa.int64(),
        lambda raw: text_temporal.datetimes(raw, column.fraction),
        lambda array, modes: json_temporal.timestamps(array, column.nullable, column.fraction),
    )


_FAMILIES: dict[str, Callable[[Column], _Family]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), _integer),
    "decimal": _decimal,
    **dict.fromkeys(("float", "double"), _float),
    **dict.fromkeys((*_TEXTS, "enum"), _text),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "json": _json,
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "timestamp": _timestamp,
}
