"""Arrow columns of variable length as two NumPy vectors, and back: the step between Arrow's kernels and this package.

A column of `n` texts or byte strings is `offsets` (int32, n + 1 elements) into `data` (uint8). Sliced columns are
supported: offsets are absolute in `data`, so `offsets[0]` need not be 0. Nulls have length 0 only if `dense` made the
vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray
from incsnap.errors import IncsnapError

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

#: Arrow's string and binary columns count bytes in 32 bits.
MAX_BYTES = 2**31 - 2


def too_large(what: str) -> IncsnapError:
    """Return the error for a column that would take 2 GiB or more. `what`: the start of the message."""
    return IncsnapError(
        f"{what} would take 2 GiB or more in one column",
        "Lower incremental.snapshot.chunk.size (rows of a chunk) or max.queue.size.in.bytes (changes of a batch).",
    )


def split(column: Array) -> tuple[Offsets, Bytes]:
    """Return `(offsets, data)` of a string or binary array, without a copy."""
    n = len(column)
    _, offsets, data = column.buffers()
    if n == 0 or offsets is None:
        return np.zeros(n + 1, np.int32), np.zeros(0, np.uint8)
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + n + 1]
    return places, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def dense(column: Array) -> tuple[Offsets, Bytes]:
    """Return `(offsets, data)` as `split`, but with `offsets[0] == 0`, data that ends with the last value, and nulls of
    length 0.
    """
    if column.null_count:
        column = column.fill_null("" if pa.types.is_string(column.type) else b"")
    offsets, data = split(column)
    first = int(offsets[0])
    return (offsets - np.int32(first) if first else offsets), data[first : int(offsets[-1])]


def valid(column: Array) -> Bools | None:
    """Return a mask that is False for null; None if no row is null."""
    if not column.null_count:
        return None
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def bitmap(mask: Bools | None) -> Any:
    """Return Arrow's validity buffer for `mask`; None for a column without nulls."""
    return None if mask is None else pa.py_buffer(np.packbits(mask, bitorder="little"))


def fixed(data: npt.NDArray[Any], type_: Any, mask: Bools | None = None) -> Array:
    """Return an Arrow array of the fixed-width `type_` on the bytes of `data`. Rows where `mask` is False are null."""
    n = len(data)
    return pa.Array.from_buffers(type_, n, [bitmap(mask), pa.py_buffer(np.ascontiguousarray(data))])


def variable(offsets: npt.NDArray[Any], data: Any, type_: Any, mask: Bools | None = None) -> Array:
    """Return an Arrow string or binary array of `offsets` into `data`. Raise IncsnapError if it has more than 2 GiB."""
    if int(offsets[-1]) > MAX_BYTES:
        raise too_large("The text of these rows")
    buffers = [bitmap(mask), pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers)


def matrix(data: Bytes, n: int, width: int, type_: Any, mask: Bools | None = None) -> BytesArray:
    """Return an Arrow array of `n` values of exactly `width` bytes each, nulls included."""
    return variable(np.arange(n + 1, dtype=np.int64) * width, data, type_, mask)


def offsets_of(lengths: npt.NDArray[Any]) -> Ints:
    """Return the int64 offsets of values with these lengths: one element more than `lengths`."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def take(texts: Array, index: npt.NDArray[Any]) -> Array:
    """Return `texts[index]`, with null where the index is -1.

    If the index is 0, 1, 2, ... to the end, return `texts` itself. Raise IncsnapError past 2 GiB.
    """
    n = len(index)
    if n == len(texts) and bool((index == np.arange(n)).all()):
        return texts
    missing = index < 0
    if missing.all():
        return pa.nulls(n, texts.type)
    try:
        return texts.take(pa.array(index, mask=missing) if missing.any() else pa.array(index))
    except pa.ArrowInvalid as error:
        raise too_large("The encoded rows of these changes") from error
