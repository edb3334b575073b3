"""Rows events of a table that has few of them, walked one by one in plain Python.

What ``row_images`` does costs some hundred calls of NumPy a table, however few rows there are: 0.3 ms, where a row of
ten columns is walked in 3 µs. Where anything is not as it must be, nothing is said here: ``row_images`` finds it again,
and knows what is to be done about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from incsnap.binlog.protocol.row_images import DELETE, TABLE_ID_AND_FLAGS, UPDATE, VERSION_1, WRITE
from incsnap.columns.images import ImageLayout, ValueSpan

#: All event types that are known here: none of partial updates.
_KNOWN = frozenset((*WRITE, *UPDATE, *DELETE))
#: A number of columns from here on is more than a byte.
_MOST_COLUMNS = 251


@dataclass(frozen=True, slots=True, eq=False)
class FewRows:
    """As ``RowImages``, before any value is decoded. ``images``: of each event how many it has; ``columns``: of each
    column its place in every image."""

    images: list[int]
    columns: list[tuple[ValueSpan, ...]]

    def __len__(self) -> int:
        return sum(self.images)


def few_rows(data: bytes, events: Iterable[tuple[int, int, int]], layout: ImageLayout, most: int) -> FewRows | None:
    """``events``: of each where its body begins and ends, and its type. None where there are more than ``most`` images
    or none, and where an event is no plain one with full images of these columns."""
    columns = len(layout.fields)
    if not 0 < columns < _MOST_COLUMNS:
        return None
    every, width = (1 << columns) - 1, layout.bitmap_bytes
    images: list[int] = []
    rows: list[list[ValueSpan]] = []
    for begin, end, kind in events:
        at = begin + TABLE_ID_AND_FLAGS
        if kind not in _KNOWN or at + 2 >= end:
            return None
        if kind not in VERSION_1:
            at += int.from_bytes(data[at : at + 2], "little")
        if at >= end or data[at] != columns:
            return None
        at += 1
        pair = kind in UPDATE
        for _ in range(1 + pair):
            if int.from_bytes(data[at : at + width], "little") & every != every:
                return None
            at += width
        image_places, behind = layout.places(data, at, end, most - len(rows) + 1)
        rows += image_places
        if behind != end or len(rows) > most or (pair and len(image_places) & 1):
            return None
        images.append(len(image_places))
    return FewRows(images, list(zip(*rows, strict=True))) if rows else None
