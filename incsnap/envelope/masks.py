"""Masked values: truncated, replaced by asterisks, or hashed, as Debezium's `column.mask.*` and `column.truncate.*` do.

A mask works on Connect values, so on what a mode has made of a column. Asterisks and hashes change character types
only, ENUM and SET included. Truncation changes every value that is a string or bytes: also a DECIMAL in the mode
`string`, or a TIMESTAMP. If a pattern matches another column, its values stay, and only its schema gets the parameter,
as with Debezium. Asterisks also replace NULL; in all other cases NULL stays NULL.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, TextArray
from incsnap.columns.variable import MAX_BYTES, dense, too_large
from incsnap.connect.schema import Schema
from incsnap.tables import TEXTS, Column

#: Java's name of a digest in capitals -> hashlib's name. Java also has MD2, which hashlib lacks.
DIGESTS = {
    "MD5": "md5",
    **dict.fromkeys(("SHA", "SHA1", "SHA-1"), "sha1"),
    **{f"SHA-{bits}": f"sha{bits}" for bits in (224, 256, 384, 512)},
    **{f"SHA-512/{bits}": f"sha512_{bits}" for bits in (224, 256)},
    **{f"SHA3-{bits}": f"sha3_{bits}" for bits in (224, 256, 384, 512)},
}

_CHARACTERS = TEXTS | {"enum", "set"}
#: Bytes of a character set's longest character. A column's length in bytes is its declared length times this number.
_WIDEST = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "big5", "gbk", "gb2312", "sjis", "cp932", "euckr"), 2),
}


@dataclass(frozen=True, slots=True)
class Transform:
    """A mask, hash or truncation, as the settings describe it."""

    kind: str  #: truncate, mask (asterisks), hash or hash_v2
    length: int = 0  #: characters that truncate keeps, or how many asterisks
    algorithm: str = ""  #: a name of `DIGESTS`, for hashes
    salt: str = field(default="", repr=False)  #: for hashes


@dataclass(frozen=True, slots=True)
class Masked:
    """A mask, hash or truncation, as it applies to one column."""

    transform: Transform  #: makes the new values of a whole column
    parameter: tuple[str, str]  #: (name, value) in the field's schema
    values: bool  #: False: only the schema changes
    length: int = -1  #: characters of a hash that are kept; -1: all of them

    def touches(self, schema: Schema) -> bool:
        """Return True if values of `schema` are changed: strings, and bytes that are no number."""
        return self.values and (schema.type == "string" or (schema.type == "bytes" and schema.name is None))

    def apply(self, values: Array) -> Array:
        """Return the changed Connect values (`pa.string()` or `pa.binary()`).

        Raise IncsnapError if they would take 2 GiB or more.
        """
        transform = self.transform
        if transform.kind == "mask":
            if len(values) * transform.length > MAX_BYTES:
                raise too_large("The asterisks of a masked column")
            return pa.repeat(pa.scalar("*" * transform.length, pa.string()), len(values))
        if transform.kind == "truncate":
            return cut(values, transform.length)
        return _hashed(values, transform, self.length)


def masked(column: Column, transform: Transform) -> Masked | None:
    """Return how `transform` applies to `column`.

    Return None if it changes nothing: truncation of a text that is never longer than the limit.
    """
    length = declared_length(column)
    if transform.kind == "truncate":
        if 0 <= length <= transform.length:
            return None
        return Masked(transform, ("truncateLength", str(transform.length)), values=True)
    return Masked(transform, ("masked", "true"), column.type in _CHARACTERS, length if length > 0 else -1)


def declared_length(column: Column) -> int:
    """Return the number in brackets behind the type as SHOW CREATE TABLE writes it, -1 if there is none.

    Debezium goes by this number. It takes an ENUM for one character, a SET of n members for 2n - 1, and length 0 for
    10.
    """
    if column.type == "enum":
        return 1
    if column.type == "set":
        return max(0, 2 * len(column.values) - 1)
    if column.type == "decimal":
        return column.precision
    if column.type in ("time", "datetime", "timestamp"):
        return column.fraction or -1
    if column.type in ("char", "varchar", "binary", "varbinary"):
        return column.length // _WIDEST.get(column.charset, 1) or 10
    return column.length or -1


def cut(values: Array, length: int) -> Array:
    """Return the first `length` UTF-16 units of each text, or the first `length` bytes of each binary value.

    A surrogate pair that would be cut in two is left out, because half of a pair is no character.
    """
    if pa.types.is_binary(values.type):
        return pc.binary_slice(values, 0, length)
    offsets, data = dense(values)
    if len(data) == 0 or int(np.diff(offsets).max()) <= length:
        return values
    if int(data.max()) < 0xF0:
        return pc.utf8_slice_codeunits(values, 0, length)
    wide = [
        text and text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "ignore") for text in values.to_pylist()
    ]
    return pa.array(wide, pa.string())


def _hashed(values: Array, transform: Transform, length: int) -> TextArray:
    """Return hexadecimal digests of the salt followed by the value. Each distinct value is hashed once."""
    digest = hashlib.new(DIGESTS[transform.algorithm], transform.salt.encode(), usedforsecurity=False)
    encoded = values.dictionary_encode()
    hashed = []
    for text in encoded.dictionary.to_pylist():
        one = digest.copy()
        one.update(text.encode() if transform.kind == "hash_v2" else _serialized(text))
        hashed.append(one.hexdigest() if length < 0 else one.hexdigest()[:length])
    return pa.array(hashed, pa.string()).take(encoded.indices)


def _serialized(text: str) -> bytes:
    """Return `text` as Java's ObjectOutputStream writes a String: the first version of Debezium's hash is a digest of
    that.

    https://docs.oracle.com/en/java/javase/21/docs/specs/serialization/protocol.html
    """
    data = text.encode()
    if "\0" in text or max(data, default=0) >= 0xF0:
        units = np.frombuffer(text.encode("utf-16-le"), "<u2").tolist()
        data = b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)
    length = b"t" + struct.pack(">H", len(data)) if len(data) <= 0xFFFF else b"|" + struct.pack(">Q", len(data))
    return b"\xac\xed\x00\x05" + length + data
