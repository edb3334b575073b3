"""How a column of each supported type stands in a row image, and what decodes it: the binlog's side of `describe`.

Types of one shape on the wire share a function; a new type is one more branch here and one function in a family file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from incsnap.columns.gather import binary
from incsnap.columns.images import Field
from incsnap.columns.packets import Spans
from incsnap.errors import UnsupportedType
from incsnap.tables import Column, TableId
from incsnap.types import binlog_numbers, binlog_temporal, binlog_text
from incsnap.types.binlog_json import json_text
from incsnap.types.binlog_numbers import INTEGER_BYTES, Decode
from incsnap.types.charsets import CHARSETS
from incsnap.types.shapes import GEOMETRIES, checked

_BYTE_STRINGS = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_SHAPES = frozenset({*GEOMETRIES, "vector"})
_CHOICES = {"enum": binlog_numbers.enumeration, "set": binlog_numbers.choices}
_FIXED: dict[str, Callable[[Column], tuple[pa.DataType, int, Decode]]] = {
    **dict.fromkeys(INTEGER_BYTES, binlog_numbers.integer),
    "decimal": binlog_numbers.decimal,
    "float": binlog_numbers.floating,
    "double": binlog_numbers.floating,
    "year": binlog_numbers.year,
    "date": binlog_temporal.date,
    "time": binlog_temporal.time,
    "datetime": binlog_temporal.datetime,
    "timestamp": binlog_temporal.timestamp,
}


@dataclass(frozen=True, slots=True)
class BinlogSide:
    """``arrow``: the canonical type. ``field(meta)``: the column's place in the image, where ``meta`` is
    WireColumn.meta.

    ``decode`` gives one canonical element per span; ``ValueError`` (pa.ArrowInvalid is one) where a value is damaged.
    """

    arrow: pa.DataType
    field: Callable[[int], Field]
    decode: Callable[[Spans], pa.Array]


@lru_cache(maxsize=4096)
def binlog_side(column: Column, table: TableId | None = None) -> BinlogSide:
    """Raises UnsupportedType, naming the column and, where it is given, the table."""
    where = f"{table}: column {column.name}" if table else f"column {column.name}"
    if column.type in _FIXED:
        type_, width, decode = _FIXED[column.type](column)
        return BinlogSide(type_, lambda _meta: Field(width), decode)
    if column.type == "json":
        return BinlogSide(pa.string(), _blob_field, _json)
    if column.type == "bit":
        width, decode = binlog_numbers.bits(column)
        return BinlogSide(pa.uint64(), lambda _meta: Field(width), decode)
    if column.type in _SHAPES:
        return BinlogSide(pa.binary(), _blob_field, lambda spans: checked(binary(spans), column.type))
    if column.type not in _TEXTS | _BYTE_STRINGS | _CHOICES.keys():
        raise UnsupportedType(f"{where} has the type {column.type}, which incsnap cannot read")
    if column.type in _BYTE_STRINGS:
        type_, decode = binlog_text.octets(column)
        return BinlogSide(type_, _blob_field if column.type.endswith("blob") else _string_field, decode)
    choice = _CHOICES.get(column.type)
    if column.charset not in CHARSETS and not (choice and column.charset == "binary"):
        raise UnsupportedType(
            f"{where} has the character set {column.charset or 'unknown'}, which incsnap cannot read",
            "Convert the column to utf8mb4, or leave the table out with table.exclude.list.",
        )
    if choice:
        return BinlogSide(pa.string(), Field, choice(column))
    type_, decode = binlog_text.characters(column)
    return BinlogSide(type_, _blob_field if column.type.endswith("text") else _string_field, decode)


def _string_field(meta: int) -> Field:
    """CHAR, VARCHAR and their binary kin: ``meta`` is the greatest length in bytes."""
    return Field(1 if meta < 256 else 2, prefixed=True)


def _blob_field(meta: int) -> Field:
    """TEXT, BLOB, JSON, geometries and vectors: ``meta`` is the number of bytes of the length."""
    return Field(meta, prefixed=True)


def _json(spans: Spans) -> pa.Array:
    documents = binary(spans).to_pylist()
    return pa.array([None if document is None else json_text(document) for document in documents], pa.string())
