"""Numbers, BIT, ENUM and SET in the binlog.

https://dev.mysql.com/doc/dev/mysql-server/latest/ (Rows_event, Field::pack).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incsnap.columns.gather import floats, integers, primitive
from incsnap.columns.packed_decimal import decimal_type, packed_decimals, packed_size
from incsnap.columns.packets import Spans
from incsnap.tables import Column

Decode = Callable[[Spans], pa.Array]

INTEGER_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}


def integer(column: Column) -> tuple[pa.DataType, int, Decode]:
    """Arrow type, bytes on the wire, decoder. Only BIGINT UNSIGNED needs uint64."""
    width = INTEGER_BYTES[column.type]
    type_ = pa.uint64() if column.unsigned and width == 8 else pa.int64()

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, width, signed=not column.unsigned), spans.valid, type_)

    return type_, width, decode


def floating(column: Column) -> tuple[pa.DataType, int, Decode]:
    width = 4 if column.type == "float" else 8
    type_ = pa.float32() if width == 4 else pa.float64()

    def decode(spans: Spans) -> pa.Array:
        return primitive(floats(spans, width), spans.valid, type_)

    return type_, width, decode


def decimal(column: Column) -> tuple[pa.DataType, int, Decode]:
    precision, scale = column.precision, column.scale

    def decode(spans: Spans) -> pa.Array:
        return packed_decimals(spans, precision, scale)

    return decimal_type(precision, scale), packed_size(precision, scale), decode


def year(column: Column) -> tuple[pa.DataType, int, Decode]:
    """One byte: years since 1900, and 0 for the year 0000."""

    def decode(spans: Spans) -> pa.Array:
        value = integers(spans, 1, signed=False).view(np.int64)
        return primitive(value + 1900 * (value > 0), spans.valid, pa.int64())

    return pa.int64(), 1, decode


def bits(column: Column) -> tuple[int, Decode]:
    """BIT(n): n bits in as few bytes as hold them, big-endian. Bytes on the wire, decoder."""
    width = (column.length + 7) // 8

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, width, signed=False, big=True), spans.valid, pa.uint64())

    return width, decode


def enumeration(column: Column) -> Decode:
    """The index of the literal, from 1, in one byte, or in two when there are over 255; 0 is the error value ""."""
    literals = pa.array(["", *column.values], pa.string())

    def decode(spans: Spans) -> pa.Array:
        return literals.take(primitive(_number(spans).view(np.int64), spans.valid, pa.int64()))

    return decode


def choices(column: Column) -> Decode:
    """SET: a bit for each literal, the first one's the lowest, in 1 to 8 bytes. The texts, joined with commas."""
    literals, most = column.values, len(column.values)

    def text(chosen: int | None) -> str | None:
        if chosen is None:
            return None
        if chosen >> most:
            raise ValueError(f"a SET of {most} literals holds bit {chosen.bit_length()}")
        written = ""
        for place, literal in enumerate(literals):
            if chosen >> place & 1:
                # As the server does: no comma before the first text, which an empty literal is not.
                written += "," + literal if written else literal
        return written

    def decode(spans: Spans) -> pa.Array:
        # Combinations repeat themselves: each is written once.
        encoded = primitive(_number(spans), spans.valid, pa.uint64()).dictionary_encode()
        return pa.array(map(text, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)

    return decode


def _number(spans: Spans) -> NDArray[np.uint64]:
    return integers(spans, spans.length if isinstance(spans.length, int) else 1, signed=False)
