"""Byte strings as base64 or hexadecimal text, a whole column in one call.

Base64 encodes groups of three bytes. If values are padded to a multiple of three, they encode independently of each
other. So one buffer holds all padded values, one `binascii` call encodes it (more than 1 GB/s), and `=` then overwrites
the last characters.
https://www.rfc-editor.org/rfc/rfc4648
"""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.variable import Bytes, Ints, dense, offsets_of, valid, variable

_PAD = ord("=")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def hexadecimal(values: Any) -> Any:
    """Return the lower-case hexadecimal digits of each value (`pa.string()`), null for null."""
    offsets, data = dense(values)
    text = binascii.hexlify(data.data)
    return variable(offsets.astype(np.int64) * 2, text, pa.string(), valid(values))


def base64(values: Any, *, url_safe: bool = False) -> Any:
    """Return the base64 of each value with padding (`pa.string()`), null for null.

    `url_safe`: with - and _ for + and /.
    """
    offsets, data = dense(values)
    lengths = np.diff(offsets).astype(np.int64)
    missing = -lengths % 3
    if missing.any():
        data = _padded(data, offsets, missing)
    text = np.frombuffer(bytearray(_encode(data, url_safe)), np.uint8)
    out = offsets_of((lengths + missing) // 3 * 4)
    ends = out[1:]
    text[ends[missing >= 1] - 1] = _PAD
    text[ends[missing == 2] - 2] = _PAD
    return variable(out, text, pa.string(), valid(values))


def base64_of_left_aligned(rows: Bytes, lengths: Ints) -> tuple[Ints, Bytes]:
    """Return base64 of the first `lengths[i]` bytes of each row of the matrix `rows`, for decimals.

    The result is `(offsets, text)`, the two buffers of an Arrow array of strings. The other bytes of a row must be 0,
    and the width of `rows` a multiple of 3.
    """
    n, width = rows.shape
    chars = width // 3 * 4
    text = np.frombuffer(bytearray(_encode(rows.reshape(-1), False)), np.uint8).reshape(n, chars)
    groups = (lengths + 2) // 3 * 4
    index, missing = np.arange(n), -lengths % 3
    one, two = missing >= 1, missing == 2
    text[index[one], groups[one] - 1] = _PAD
    text[index[two], groups[two] - 2] = _PAD
    if n and bool((groups == groups[0]).all()):
        flat = np.ascontiguousarray(text[:, : int(groups[0])]).reshape(-1)
    else:
        flat = text[np.arange(chars) < groups[:, None]]
    return offsets_of(groups), flat


def _padded(data: Bytes, offsets: Any, missing: Ints) -> Bytes:
    out = np.zeros(len(data) + int(missing.sum()), np.uint8)
    keep = np.ones(len(out), np.bool_)
    ends = offsets[1:] + np.cumsum(missing)
    keep[ends[missing >= 1] - 1] = False
    keep[ends[missing == 2] - 2] = False
    out[keep] = data
    return out


def _encode(data: Bytes, url_safe: bool) -> bytes:
    text = binascii.b2a_base64(np.ascontiguousarray(data).data, newline=False)
    return text.translate(_URL_SAFE) if url_safe else text
