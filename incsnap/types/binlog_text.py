"""Text and byte strings in the binlog: the column's own bytes in its own character set, unlike a SELECT's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.gather import binary, text, zero_filled
from incsnap.columns.packets import Spans
from incsnap.tables import Column
from incsnap.types.binlog_numbers import Decode

#: Character sets whose bytes are UTF-8 already.
UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
LATIN1 = "latin1"
CHARSETS = UTF8 | {LATIN1}

#: MySQL's latin1 is cp1252 with the five undefined bytes standing for the control characters of the same number.
#: https://dev.mysql.com/doc/refman/en/charset-we-sets.html
_LATIN1 = "".join(
    bytes([b]).decode("cp1252", "replace") if b not in b"\x81\x8d\x8f\x90\x9d" else chr(b) for b in range(256)
)


def characters(column: Column) -> tuple[pa.DataType, Decode]:
    """Strings of a supported character set."""
    decode = _latin1 if column.charset == LATIN1 else text
    return pa.string(), decode


def octets(column: Column) -> tuple[pa.DataType, Decode]:
    """Byte strings. BINARY(n) is stored without its trailing zeros, so they are put back."""
    if column.type != "binary":
        return pa.binary(), binary

    def decode(spans: Spans) -> pa.Array:
        return zero_filled(binary(spans), column.length)

    return pa.binary(), decode


def decode_text(raw: bytes, charset: str) -> str:
    """One value of a supported character set; ``UnicodeDecodeError`` where it is none."""
    return raw.decode("latin-1").translate(_LATIN1) if charset == LATIN1 else raw.decode("utf-8")


def _latin1(spans: Spans) -> pa.Array:
    """ASCII needs no work. Else each distinct value is decoded once in Python and the column takes them by number:
    neither Arrow nor NumPy has a kernel that makes two bytes of one, and such columns (codes, names) repeat themselves.
    """
    raw = binary(spans)
    if not (np.frombuffer(raw.buffers()[2], np.uint8) >= 0x80).any():
        return raw.cast(pa.string())
    encoded = raw.dictionary_encode()
    decoded = [decode_text(value, LATIN1) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(decoded, pa.string()), encoded.indices)
