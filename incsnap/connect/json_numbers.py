"""Numbers as JSON text, and decimals as Connect's Decimal: as bytes, as base64 of these bytes, or as plain digits.

The bytes are the unscaled value as Java's `BigInteger.toByteArray` writes it: big-endian two's complement, in as few
bytes as keep the sign. Decimals are Arrow's, as in `columns.decimals`. A uint64 counts as a decimal of scale 0.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.decimals import INT64_DIGITS, decimal_type
from incsnap.columns.variable import Bytes, Ints, offsets_of, valid, variable
from incsnap.connect.java_floats import java_text
from incsnap.connect.json_bytes import base64_of_left_aligned
from incsnap.connect.json_text import Encoded

#: The greatest scale at which Java never writes an exponent.
_PLAIN_SCALE = 6


def numbers(values: Any) -> Encoded:
    """Return the JSON of booleans, integers or floats.

    A float has the shortest text that reads back as the same number.
    """
    return Encoded(java_text(values) if pa.types.is_floating(values.type) else values.cast(pa.string()))


def decimal_base64(values: Any) -> Encoded:
    """Return Connect's Decimals as JSON: base64 of their bytes.

    The bytes are not made as a column of their own first.
    """
    offsets, text = base64_of_left_aligned(*_left_aligned(values))
    return Encoded(variable(offsets, text, pa.string(), valid(values)), quoted=True)


def decimal_json(values: Any, form: str) -> Encoded:
    """Return Connect's Decimals as JSON: base64 of their bytes (`form` is base64), or numbers (numeric)."""
    return decimal_base64(values) if form == "base64" else Encoded(_java_decimals(values))


def decimal_bytes(values: Any) -> Any:
    """Return the bytes of Connect's Decimals (`pa.binary()`)."""
    rows, lengths = _left_aligned(values)
    keep = np.arange(rows.shape[1]) < lengths[:, None]
    return variable(offsets_of(lengths), rows[keep], pa.binary(), valid(values))


def _java_decimals(values: Any) -> Any:
    """Return decimals as Java's BigDecimal prints them: below 10^-6 with an exponent, zeros with scale above 6 too."""
    plain = plain_text(values)
    if pa.types.is_uint64(values.type) or values.type.scale <= _PLAIN_SCALE:
        return plain
    short = pc.fill_null(pc.less(pc.abs(values), pa.scalar(Decimal("0.000001"))), False)
    # Python's Decimal has Java's rule.
    written = [str(value) for value in values.filter(short).to_pylist()]
    return pc.replace_with_mask(plain, short, pa.array(written, pa.string()))


def plain_text(values: Any) -> Any:
    """Return decimals without an exponent (`pa.string()`), with as many digits after the point as their scale."""
    if pa.types.is_uint64(values.type):
        return values.cast(pa.string())
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
    """Return the unscaled values: the same bytes as decimals of scale 0."""
    type_ = values.type
    return pa.Array.from_buffers(decimal_type(type_.precision, 0), len(values), values.buffers(), offset=values.offset)


def _words(values: Any) -> Bytes:
    """Return the little-endian bytes of each value as a matrix with one row per value."""
    width = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1], np.uint8) if len(values) else np.zeros(0, np.uint8)
    return data[values.offset * width : (values.offset + len(values)) * width].reshape(len(values), width)


def _unsigned_words(values: Any) -> Bytes:
    words = np.zeros((len(values), 2), np.uint64)
    words[:, 0] = values.fill_null(0).to_numpy(zero_copy_only=False)
    return words.view(np.uint8).reshape(-1, 16)


def _left_aligned(values: Any) -> tuple[Bytes, Ints]:
    """Return the big-endian bytes of each unscaled value as a matrix with one row per value, and how many of them
    count.
    """
    if pa.types.is_uint64(values.type):
        return _wide(_unsigned_words(values))
    words = _words(values)
    if values.type.precision > INT64_DIGITS:
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
    """Return the shortest bytes of 16- or 32-byte values, as `_left_aligned` does.

    Each row is shifted to the left, so that leading bytes which only repeat the sign are dropped.
    """
    width = words.shape[1]
    big = words[:, ::-1]
    sign = np.where(big[:, :1] >= 128, np.uint8(255), np.uint8(0))
    # A byte can be dropped if it only repeats the sign and the next byte still shows the sign.
    spare = (big[:, :-1] == sign) & ((big[:, 1:] >> 7) == (sign >> 7))
    dropped = np.where(spare.all(axis=1), width - 1, np.argmin(spare, axis=1))
    lengths = (width - dropped).astype(np.int64)
    padded = width + (-width % 3)
    columns = np.arange(padded) + dropped[:, None]
    rows = np.where(columns < width, np.take_along_axis(big, np.minimum(columns, width - 1), axis=1), np.uint8(0))
    return rows[:, : _three(lengths, padded)], lengths


def _three(lengths: Ints, most: int) -> int:
    """Return the longest length, rounded up to a multiple of three, at most `most`."""
    longest = int(lengths.max()) if len(lengths) else 1
    return min(most, longest + (-longest % 3))
