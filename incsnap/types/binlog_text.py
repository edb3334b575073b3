"""Text and byte strings in the binlog: the column's own bytes in its own character set, unlike a SELECT's."""

from __future__ import annotations

import pyarrow as pa

from incsnap.columns.gather import binary, text, zero_filled
from incsnap.columns.packets import Spans
from incsnap.tables import Column
from incsnap.types.binlog_numbers import Decode
from incsnap.types.charsets import UTF8, decode_column


def characters(column: Column) -> tuple[pa.DataType, Decode]:
    """Strings of a character set of ``charsets.CHARSETS``."""
    if column.charset in UTF8:
        return pa.string(), text

    def decode(spans: Spans) -> pa.Array:
        return decode_column(binary(spans), column.charset)

    return pa.string(), decode


def octets(column: Column) -> tuple[pa.DataType, Decode]:
    """Byte strings. BINARY(n) is stored without its trailing zeros, so they are put back."""
    if column.type != "binary":
        return pa.binary(), binary

    def decode(spans: Spans) -> pa.Array:
        return zero_filled(binary(spans), column.length)

    return pa.binary(), decode
