"""Byte strings as base64 or hexadecimal text, a whole column in one call.

Base64 works on groups of three bytes, so values padded to a multiple of three encode independently of each other: all
of them are laid out so in one buffer, encoded by one ``binascii`` call (more than 1 GB/s), and the last characters
overwritten with ``=``.
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
    """Lower-case hexadecimal digits."""
    offsets, data = dense(values)
    text = binascii.hexlify(data.data)
    return variable(offsets.astype(np.int64) * 2, text, pa.string(), valid(values))


def base64(values: Any, *, url_safe: bool = False) -> Any:
    """Base64 with padding."""
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
    """``(offsets, text)`` of the first ``lengths[i]`` bytes of each row of ``rows``, zeros after them, width a
    multiple of 3."""
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
