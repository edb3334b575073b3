"""The column types of the binlog: their names, and the metadata that each has in a table map.

https://dev.mysql.com/doc/dev/mysql-server/latest/field__types_8h.html (enum_field_types)
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.binlog.protocol.byte_reader import ByteReader
from incsnap.errors import BinlogError
from incsnap.types.charsets import CHARSETS, literal_text

TINY, SHORT, LONG, FLOAT, DOUBLE, OLD_TIMESTAMP, LONGLONG, INT24, DATE = 1, 2, 3, 4, 5, 7, 8, 9, 10
OLD_TIME, OLD_DATETIME, YEAR, NEWDATE, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 11, 12, 13, 14, 15, 16, 17, 18, 19
TYPED_ARRAY, VECTOR, JSON, NEWDECIMAL, ENUM, SET = 20, 242, 245, 246, 247, 248
#: 249 to 251 are blobs of other sizes. Table maps have 252 for all of them.
BLOB, VAR_STRING, STRING, GEOMETRY = 252, 253, 254, 255

#: Types with a bit among the signedness bits. YEAR has one without a meaning: without it, columns after a YEAR would
#: read the bit of their neighbour.
NUMERIC = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR})
CHARACTER = frozenset({STRING, VAR_STRING, VARCHAR, BLOB})
#: Types with a collation among the columns' collations. A VECTOR has one (binary) without a meaning.
WITH_COLLATION = CHARACTER | {VECTOR}

#: Bytes of a type's metadata, for types whose metadata is one number.
_META_BYTES = {
    **dict.fromkeys(
        (TINY, SHORT, INT24, LONG, LONGLONG, DATE, NEWDATE, YEAR, OLD_TIME, OLD_DATETIME, OLD_TIMESTAMP), 0
    ),
    **dict.fromkeys((FLOAT, DOUBLE, BLOB, JSON, GEOMETRY, VECTOR, TIME2, DATETIME2, TIMESTAMP2), 1),
    **dict.fromkeys((VARCHAR, VAR_STRING), 2),
}

NAMES = {
    TINY: "tinyint", SHORT: "smallint", INT24: "mediumint", LONG: "int", LONGLONG: "bigint",
    NEWDECIMAL: "decimal", FLOAT: "float", DOUBLE: "double", YEAR: "year", DATE: "date", NEWDATE: "date",
    TIME2: "time", DATETIME2: "datetime", TIMESTAMP2: "timestamp", JSON: "json", ENUM: "enum", SET: "set",
    BIT: "bit", VECTOR: "vector", TYPED_ARRAY: "array of a multi-valued index",
    OLD_TIME: "time (format before MySQL 5.6)", OLD_DATETIME: "datetime (format before MySQL 5.6)",
    OLD_TIMESTAMP: "timestamp (format before MySQL 5.6)",
}  # fmt: skip
_BLOB_SIZES = {1: "tiny", 2: "", 3: "medium", 4: "long"}
BINARY = "binary"


@dataclass(frozen=True, slots=True)
class WireColumn:
    """The encoding of a column in row images."""

    type_code: int  #: the real type (ENUM, SET and STRING are different)
    #: For strings: greatest length in bytes. For blobs, JSON, geometries and vectors: bytes of the length. For ENUM and
    #: SET: bytes of the value. For decimals: precision * 256 + scale. For BIT: number of bits. For times: digits of the
    #: fraction. For other types it has no meaning.
    meta: int


def read_meta(code: int, meta: ByteReader) -> WireColumn:
    """Read the metadata of one column of type `code` from `meta`, and return the column's encoding.

    Raise BinlogError for an unknown type, because the length of its metadata is unknown too. Raise BinlogError for
    metadata that no column can have.
    """
    column = _read_meta(code, meta)
    precision, scale = column.meta >> 8, column.meta & 0xFF
    possible = {
        NEWDECIMAL: 1 <= precision <= 65 and scale <= min(precision, 30),
        **dict.fromkeys((BLOB, JSON, GEOMETRY, VECTOR), column.meta in _BLOB_SIZES),
        BIT: 1 <= column.meta <= 64,
        ENUM: column.meta in (1, 2),
        SET: 1 <= column.meta <= 8,
    }.get(column.type_code, column.meta <= 6 or column.type_code not in (TIME2, DATETIME2, TIMESTAMP2))
    if not possible:
        raise BinlogError(f"{meta.what} is damaged: type {column.type_code} with the metadata {column.meta:#x}")
    return column


def _read_meta(code: int, meta: ByteReader) -> WireColumn:
    if code in _META_BYTES:
        return WireColumn(code, meta.integer(_META_BYTES[code]))
    if code == BIT:
        rest, whole = meta.integer(1), meta.integer(1)
        return WireColumn(code, whole * 8 + rest if rest < 8 else 0)
    if code == NEWDECIMAL:
        return WireColumn(code, meta.integer(1) << 8 | meta.integer(1))
    if code in (STRING, ENUM, SET):
        column = _string_meta(meta.integer(1), meta.integer(1))
        if column.type_code in (STRING, ENUM, SET):
            return column
        raise BinlogError(f"{meta.what} is damaged: {column.type_code} is no string type")
    if code == TYPED_ARRAY:
        element = meta.integer(1)
        if element == TYPED_ARRAY:
            raise BinlogError(f"{meta.what} is damaged: an array of arrays")
        read_meta(element, meta)
        return WireColumn(code, 0)
    raise BinlogError(f"{meta.what} holds a column of type number {code}, which is unknown")


def string_type(code: int, meta: int, *, binary: bool) -> str:
    """Return MySQL's name of a character or byte-string type, for example "varchar" or "longblob".

    `code` is a type number in `CHARACTER`, and `meta` its metadata in the table map. `binary` is True for the character
    set `binary`: the name is then "varbinary" in place of "varchar", "blob" in place of "text".
    """
    if code == BLOB:
        return _BLOB_SIZES.get(meta, "") + ("blob" if binary else "text")
    if code == STRING:
        return BINARY if binary else "char"
    return "varbinary" if binary else "varchar"


def _string_meta(first: int, second: int) -> WireColumn:
    """Return the type and length of a STRING, ENUM or SET, which share a number. The first byte is the real type.

    A CHAR of more than 255 bytes has bits 8 and 9 of its length, inverted, in bits 4 and 5 of that byte. These bits are
    1 in all three real types.
    """
    if first & 0x30 != 0x30:
        return WireColumn(first | 0x30, second | (first & 0x30 ^ 0x30) << 4)
    return WireColumn(first, second)


def literals(raw: tuple[bytes, ...], charset: str) -> tuple[str, ...]:
    """Return the literals of an ENUM or SET as text. `raw` has their bytes in the character set `charset`.

    If the character set is unknown, each byte becomes one character. Such text is never used: decoding refuses the
    column.
    """
    if charset in CHARSETS | {BINARY}:
        return tuple(literal_text(literal, charset) for literal in raw)
    return tuple(literal.decode("latin-1") for literal in raw)
