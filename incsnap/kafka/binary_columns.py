"""Where the values of a binary Arrow column lie in memory, for C functions that take addresses and lengths."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa

_NOT_NULL = ctypes.create_string_buffer(1)  # where an empty string that is not NULL points to


def plain(column: Any) -> Any:
    """With 32-bit offsets, which is what ``RECORDS`` has; Spark may widen them."""
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def places(column: Any) -> tuple[Any, Any]:
    """Address and length of each value of a binary column; a null has address 0."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.uint64)
    base = data.address if data is not None and data.address else ctypes.addressof(_NOT_NULL)
    addresses = ends[:-1] + np.uint64(base)
    lengths = np.diff(ends)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        addresses[nulls] = 0
        lengths[nulls] = 0
    return addresses, lengths
