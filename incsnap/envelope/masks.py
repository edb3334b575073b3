"""Values that leave the house changed: cut, replaced by asterisks, or hashed, as Debezium's ``column.mask.*`` and
``column.truncate.*`` do it.

They work on Connect values, so on what a mode has made of a column. Masks and hashes touch character types only,
ENUM and SET among them; cutting touches every value that is a string or bytes, a DECIMAL in the mode ``string`` or a
TIMESTAMP too. Whatever else a pattern matches keeps its values; only its schema gets the parameter, as with Debezium.
A NULL is replaced by asterisks too, stays NULL otherwise.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import MAX_BYTES, dense, too_large
from incsnap.connect.schema import Schema
from incsnap.tables import TEXTS, Column

#: Java's names of digests, in capitals, and hashlib's. MD2, which Java has too, nobody offers here.
DIGESTS = {
    "MD5": "md5",
    **dict.fromkeys(("SHA", "SHA1", "SHA-1"), "sha1"),
    **{f"SHA-{bits}": f"sha{bits}" for bits in (224, 256, 384, 512)},
    **{f"SHA-512/{bits}": f"sha512_{bits}" for bits in (224, 256)},
    **{f"SHA3-{bits}": f"sha3_{bits}" for bits in (224, 256, 384, 512)},
}

_CHARACTERS = TEXTS | {"enum", "set"}
#: Bytes of the longest character, by which the declared length of a column divides.
_WIDEST = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "utf8", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "big5", "gbk", "gb2312", "sjis", "cp932", "euckr"), 2),
}


@dataclass(frozen=True, slots=True)
class Transform:
    """``kind``: truncate (to ``length`` characters), mask (by ``length`` asterisks), hash or hash_v2 (by ``algorithm``,
    a name of ``DIGESTS``).
    """

    kind: str
    length: int = 0
    algorithm: str = ""
    salt: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Masked:
    """A transform as one column has it. ``parameter`` goes to the field's schema; ``values``: are values changed?

    ``length``: what is left of a hash in characters; -1: all of it.
    """

    transform: Transform
    parameter: tuple[str, str]
    values: bool
    length: int = -1

    def touches(self, schema: Schema) -> bool:
        """Are values of ``schema`` changed?  Strings, and bytes that are no number."""
        return self.values and (schema.type == "string" or (schema.type == "bytes" and schema.name is None))

    def apply(self, values: Any) -> Any:
        """Connect values (``pa.string()`` or ``pa.binary()``) changed; raises ``IncsnapError`` past 2 GiB."""
        transform = self.transform
        if transform.kind == "mask":
            if len(values) * transform.length > MAX_BYTES:
                raise too_large("The asterisks of a masked column")
            return pa.repeat(pa.scalar("*" * transform.length, pa.string()), len(values))
        if transform.kind == "truncate":
            return cut(values, transform.length)
        return _hashed(values, transform, self.length)


def masked(column: Column, transform: Transform) -> Masked | None:
    """``transform`` for ``column``; None where it changes nothing: a text that is never longer than it may be."""
    length = declared_length(column)
    if transform.kind == "truncate":
        if 0 <= length <= transform.length:
            return None
        return Masked(transform, ("truncateLength", str(transform.length)), values=True)
    return Masked(transform, ("masked", "true"), column.type in _CHARACTERS, length if length > 0 else -1)


def declared_length(column: Column) -> int:
    """The number in brackets behind the type as SHOW CREATE TABLE writes it, which is what Debezium goes by; -1: none.

    It takes an ENUM for one character, a SET of n members for 2n - 1, and 0 for 10.
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


def cut(values: Any, length: int) -> Any:
    """The first ``length`` UTF-16 units of texts, or bytes. A surrogate pair that would be cut in two is left out
    whole: half of one is no character.
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


def _hashed(values: Any, transform: Transform, length: int) -> Any:
    """Hexadecimal digests of the salt followed by the value; each distinct value is hashed once."""
    digest = hashlib.new(DIGESTS[transform.algorithm], transform.salt.encode(), usedforsecurity=False)
    encoded = values.dictionary_encode()
    hashed = []
    for text in encoded.dictionary.to_pylist():
        one = digest.copy()
        one.update(text.encode() if transform.kind == "hash_v2" else _serialized(text))
        hashed.append(one.hexdigest() if length < 0 else one.hexdigest()[:length])
    return pa.array(hashed, pa.string()).take(encoded.indices)


def _serialized(text: str) -> bytes:
    """``text`` as Java's ObjectOutputStream writes a String: what the first version of Debezium's hash goes over.
    https://docs.oracle.com/en/java/javase/21/docs/specs/serialization/protocol.html
    """
    data = text.encode()
    if "\0" in text or max(data, default=0) >= 0xF0:
        units = np.frombuffer(text.encode("utf-16-le"), "<u2").tolist()
        data = b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)
    length = b"t" + struct.pack(">H", len(data)) if len(data) <= 0xFFFF else b"|" + struct.pack(">Q", len(data))
    return b"\xac\xed\x00\x05" + length + data
