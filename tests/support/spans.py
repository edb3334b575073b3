"""Spans made by hand: the places of a column's values in a payload."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incsnap.columns.packets import Packets, Spans


def spans_of(values: Sequence[bytes | None], length: int | None = None) -> Spans:
    """Return the spans of values that lie one behind another.

    `length` is that of each value in a column of fixed width.
    """
    payload, start = bytearray(b"?"), []
    for value in values:
        start.append(len(payload))
        payload += value or b""
    valid = np.array([value is not None for value in values], np.bool_)
    lengths = np.array([len(value or b"") for value in values], np.int64)
    sizes = lengths if length is None else length
    return Spans(Packets.of(bytes(payload)), np.array(start, np.int64), sizes, None if valid.all() else valid)
