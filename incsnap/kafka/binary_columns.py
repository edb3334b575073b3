"""Memory addresses of the values in a binary Arrow column, for C functions that take addresses and lengths."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa

_NOT_NULL = ctypes.create_string_buffer(1)  # address of an empty string that is not NULL


def plain(column: Any) -> Any:
    """Return the column with 32-bit offsets, which `places` reads. Spark may have widened the offsets to 64 bits."""
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def places(column: Any) -> tuple[Any, Any]:
    """Return two arrays: the address and the length of each value. A null has address 0."""
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
