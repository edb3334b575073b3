"""Texts, bytes and JSON documents of the text protocol to canonical columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.types.variable import Bools, Bytes, dense, valid, variable

_QUOTE, _BACKSLASH, _BLANK = ord('"'), ord("\\"), ord(" ")


def texts(raw: Any) -> Any:
    """UTF-8 strings: the connection's character set is utf8mb4 whatever the column's is. Raises if it is not UTF-8."""
    return raw.cast(pa.string())


def byte_strings(raw: Any) -> Any:
    return raw


def documents(raw: Any) -> Any:
    """JSON text without the blanks the server prints after ``,`` and ``:``, blanks inside strings kept.

    The whole column is one text: a blank is inside a string when the quotes before it are odd in number, and since
    every document closes its quotes the count runs on over all documents.
    """
    mask = valid(raw)
    offsets, data = dense(raw)
    outside = (data == _BLANK) & ~_inside(data)
    if outside.any():
        removed = np.zeros(len(data) + 1, np.int32)
        np.cumsum(outside, out=removed[1:])
        offsets, data = offsets - removed[offsets], data[~outside]
    return variable(offsets, data, pa.binary(), mask).cast(pa.string())


def _inside(data: Bytes) -> Bools:
    """For each byte: have an odd number of string quotes passed?"""
    quotes = data == _QUOTE
    slashes = np.flatnonzero(data == _BACKSLASH)
    if len(slashes):
        first = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
        lengths = np.diff(first, append=len(slashes))
        after = slashes[first] + lengths
        escaped = after[(lengths & 1) == 1]
        quotes[escaped[escaped < len(data)]] = False
    inside: Bools = (np.cumsum(quotes, dtype=np.int32) & 1).astype(np.bool_)
    return inside
