"""Integers, floats, bits and decimals as JSON and as Connect values, in Debezium's three forms of a decimal.

``precise``, the default, is Kafka Connect's Decimal: base64 of the unscaled value as Java's
``BigInteger.toByteArray`` writes it, big-endian two's complement in as few bytes as keep the sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.types.java_floats import java_text
from incsnap.types.json_bytes import base64_of_left_aligned
from incsnap.types.json_text import Encoded
from incsnap.types.variable import Bytes, Ints, matrix, offsets_of, valid, variable

#: Unscaled values of at most so many digits fit an int64.
_INT64_DIGITS = 18


def numbers(values: Any) -> Encoded:
    """Booleans, integers, and floats in the shortest text that reads back the same."""
    return Encoded(java_text(values) if pa.types.is_floating(values.type) else values.cast(pa.string()))


def unsigned_bigints(values: Any, handling: str) -> Encoded:
    """``handling``: Modes.bigint_unsigned."""
    if handling == "long":
        return numbers(as_long(values))
    return Encoded(_encode(*_wide(_unsigned_words(values)), valid(values)), quoted=True)


def as_long(values: Any) -> Any:
    """uint64 as signed 64-bit numbers, past 2**63 - 1 negative, as Debezium does."""
    return values.view(pa.int64())


def flags(values: Any) -> Any:
    """Booleans of BIT(1)."""
    return pc.not_equal(values, pa.scalar(0, pa.uint64()))


def low_bytes(values: Any, width: int) -> Any:
    """The ``width`` low bytes of each uint64, little-endian: Debezium's Bits."""
    numbers = np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), "<u8")
    data = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 8)[:, :width])
    return matrix(data.reshape(-1), len(values), width, pa.binary(), valid(values))


def decimals(values: Any, handling: str) -> Encoded:
    """``handling``: Modes.decimal_handling."""
    if handling == "precise":
        return Encoded(_encode(*_left_aligned(values), valid(values)), quoted=True)
    plain = plain_text(values)
    if handling == "string":
        return Encoded(plain, quoted=True)
    return numbers(plain.cast(pa.float64()))


def decimal_bytes(values: Any) -> Any:
    """What Connect's Decimal holds, as ``pa.binary()``: of decimals, or of uint64 with a scale of 0."""
    rows, lengths = _wide(_unsigned_words(values)) if pa.types.is_uint64(values.type) else _left_aligned(values)
    keep = np.arange(rows.shape[1]) < lengths[:, None]
    return variable(offsets_of(lengths), rows[keep], pa.binary(), valid(values))


def plain_text(values: Any) -> Any:
    """Decimals without an exponent, with exactly their scale of digits after the point."""
    scale = values.type.scale
    whole = _unscaled(values).cast(pa.string())
    if scale == 0:
        return whole
    sign = pc.if_else(pc.starts_with(whole, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(whole, "-"), scale + 1, "0")
    return pc.binary_join_element_wise(
        sign, pc.utf8_slice_codeunits(digits, 0, -scale), ".", pc.utf8_slice_codeunits(digits, -scale), ""
    )


def _unscaled(values: Any) -> Any:
    """The same words as a decimal of scale 0."""
    type_ = values.type
    whole = pa.decimal128(type_.precision, 0) if type_.bit_width == 128 else pa.decimal256(type_.precision, 0)
    return pa.Array.from_buffers(whole, len(values), values.buffers(), offset=values.offset)


def _words(values: Any) -> Bytes:
    """The little-endian bytes of each value, a row a value."""
    width = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1], np.uint8) if len(values) else np.zeros(0, np.uint8)
    return data[values.offset * width : (values.offset + len(values)) * width].reshape(len(values), width)


def _unsigned_words(values: Any) -> Bytes:
    words = np.zeros((len(values), 2), np.uint64)
    words[:, 0] = values.fill_null(0).to_numpy(zero_copy_only=False)
    return words.view(np.uint8).reshape(-1, 16)


def _left_aligned(values: Any) -> tuple[Bytes, Ints]:
    """The bytes of each unscaled value, a row a value, and how many of the row's are the value's."""
    words = _words(values)
    if values.type.precision > _INT64_DIGITS:
        return _wide(words)
    unscaled = np.ascontiguousarray(words[:, :8]).view("<i8").reshape(-1)
    size = unscaled ^ (unscaled >> 63)
    lengths = np.ones(len(size), np.int64)
    for bits in range(7, 63, 8):
        longer = size >= (1 << bits)
        if not longer.any():
            break
        lengths += longer
    aligned = (unscaled.view(np.uint64) << (64 - 8 * lengths).astype(np.uint64)).astype(">u8")
    rows = np.zeros((len(size), 9), np.uint8)
    rows[:, :8] = aligned.view(np.uint8).reshape(-1, 8)
    return rows[:, : _three(lengths, 9)], lengths


def _wide(words: Bytes) -> tuple[Bytes, Ints]:
    """Of 16- or 32-byte values: leading bytes that only repeat the sign are dropped by shifting each row to the
    left."""
    width = words.shape[1]
    big = words[:, ::-1]
    sign = np.where(big[:, :1] >= 128, np.uint8(255), np.uint8(0))
    # A byte may go when it is the sign's and the next one still shows the sign.
    spare = (big[:, :-1] == sign) & ((big[:, 1:] >> 7) == (sign >> 7))
    dropped = np.where(spare.all(axis=1), width - 1, np.argmin(spare, axis=1))
    lengths = (width - dropped).astype(np.int64)
    padded = width + (-width % 3)
    columns = np.arange(padded) + dropped[:, None]
    rows = np.where(columns < width, np.take_along_axis(big, np.minimum(columns, width - 1), axis=1), np.uint8(0))
    return rows[:, : _three(lengths, padded)], lengths


def _three(lengths: Ints, most: int) -> int:
    """The longest length, rounded up to a multiple of three."""
    longest = int(lengths.max()) if len(lengths) else 1
    return min(most, longest + (-longest % 3))


def _encode(rows: Bytes, lengths: Ints, mask: Any) -> Any:
    offsets, text = base64_of_left_aligned(rows, lengths)
    return variable(offsets, text, pa.string(), mask)
