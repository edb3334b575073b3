"""Gather: the way from Spans (where a column's values lie) to NumPy values and Arrow arrays, a whole column at a time.

Spans must have been checked against the ends of their packets (see `cursors`): positions are not checked again. Byte
strings first become Arrow views on the block (16 bytes each, nothing copied); then one cast copies them together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incsnap.columns.packets import KEEP, Mask, Packets, Spans
from incsnap.columns.variable import bitmap, fixed

#: Offsets of Arrow views are int32, so a larger block is given as several buffers that begin 1 GiB (2**30) apart.
_VIEW_BUFFER_BITS = 30
_INLINE = 12


def integers(spans: Spans, width: int, *, signed: bool, big: bool = False, offset: int = 0) -> NDArray[Any]:
    """Return integers of `width` (1 to 8) bytes that begin `offset` bytes into each value.

    The result is int64, or uint64 if not `signed`. The bytes are little-endian, or big-endian if `big`. An element that
    is NULL may hold any number.
    """
    at = spans.start + offset if offset else spans.start
    if width == 1:
        byte = spans.packets.data[at]
        return byte.view(np.int8).astype(np.int64) if signed else byte.astype(np.uint64)
    words = spans.packets.words[at]
    if big:
        words.byteswap(inplace=True)
    elif width < 8:
        words <<= np.uint64(64 - 8 * width)
    # The value now fills the top bytes; an arithmetic shift brings it down with its sign.
    if signed:
        values = words.view(np.int64)
        if width < 8:
            values >>= np.int64(64 - 8 * width)
        return values
    if width < 8:
        words >>= np.uint64(64 - 8 * width)
    return words


def floats(spans: Spans, width: int) -> NDArray[Any]:
    """Return little-endian IEEE numbers of 4 or 8 bytes as float32 or float64."""
    words = spans.packets.words[spans.start]
    if width == 8:
        return words.view(np.float64)
    return words.astype(np.uint32).view(np.float32)


def primitive(values: NDArray[Any], valid: Mask | None, type_: pa.DataType) -> pa.Array:
    """Return values of a fixed-width Arrow type. They are copied only if there are NULLs.

    The value under a NULL is then 0, because kernels may read it.
    """
    if valid is not None:
        values = np.where(valid, values, values.dtype.type(0))
    return fixed(values, type_, valid)


def views(spans: Spans) -> pa.Array:
    """Return the values as `pa.binary_view()` on the block. Nothing is copied; the array keeps the block alive."""
    data, lengths = spans.packets.data, spans.lengths
    count = len(spans)
    out = np.empty((count, 2), np.uint64)
    words = spans.packets.words
    head = words[spans.start]
    low = lengths.astype(np.uint64)
    long = lengths > _INLINE
    all_long = bool(long.all())
    # First word: length, then the first four bytes (all that there are, when fewer).
    out[:, 0] = low | ((head if all_long else head & KEEP[np.minimum(lengths, 4)]) << np.uint64(32))
    # Second word: buffer number and offset, or bytes 5 to 12 of a short value.
    buffer_number = spans.start >> _VIEW_BUFFER_BITS
    offset = spans.start - (buffer_number << _VIEW_BUFFER_BITS)
    out[:, 1] = buffer_number | (offset << 32)
    if not all_long:
        short = np.flatnonzero(~long)
        rest = words[spans.start[short] + 4] & KEEP[np.clip(lengths[short] - 4, 0, 8)]
        out[short, 1] = rest
    whole = pa.py_buffer(data)
    step = 1 << _VIEW_BUFFER_BITS
    blocks = [whole.slice(begin) for begin in range(0, max(spans.packets.size, 1), step)]
    buffers = [bitmap(spans.valid), pa.py_buffer(out), *blocks]
    return pa.Array.from_buffers(pa.binary_view(), count, buffers)


def binary(spans: Spans) -> pa.Array:
    """Return the values as `pa.binary()`, copied together."""
    return views(spans).cast(pa.binary())


def text(spans: Spans) -> pa.Array:
    """Return the values as `pa.string()`. Raise pa.ArrowInvalid if one is not UTF-8."""
    return views(spans).cast(pa.string())


def zero_filled(values: pa.Array, length: int) -> pa.Array:
    """Return binary values, each filled up to `length` bytes with 0x00 on the right. Longer values stay as they are.

    No Arrow kernel pads binaries, so each value is joined with a view of the right length on one block of zeros.
    """
    missing = length - pc.fill_null(pc.binary_length(values), length).to_numpy(zero_copy_only=False).astype(np.int64)
    if not (missing > 0).any():
        return values
    zeros = Packets.of(bytes(length))
    tail = binary(Spans(zeros, np.zeros(len(values), np.int64), np.maximum(missing, 0)))
    return pc.binary_join_element_wise(values, tail, pa.scalar(b"", pa.binary()))
