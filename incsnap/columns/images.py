"""Row images: each is a null bitmap and then the columns, back to back, without the length of the whole image.

The end of an image is known only after a walk over it, so the images of one event must be walked one after another. But
there are thousands of events. `scan` moves one cursor per event over one image in each round. When only a few events
are left, it walks those alone. When all images are known, `ImageLayout.spans` returns where each column lies, for all
images together and in order.

A walk reads lengths for columns of variable length only. The fixed columns between two of them are skipped together:
for each byte of the bitmap, a table gives how many bytes the fixed columns that are not NULL take.

Example with the columns INT and VARCHAR(20). The row (7, "ab") is 8 bytes: the bitmap 0x00, then 07 00 00 00, then the
length 02 and "ab". The row (NULL, "ab") is 4 bytes: the bitmap 0x01, then 02 and "ab".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from incsnap.columns.cursors import prefixed_lengths
from incsnap.columns.packets import Bytes, Packets, Positions, Spans

#: (first byte of a value, how many bytes it has; -1 for NULL).
ValueSpan = tuple[int, int]
_ALL_BYTES = np.arange(256)
#: With at most this many events left, each is walked alone: a round costs 20 µs however few events there are, an image
#: in plain Python costs 0.5 µs.
_FEW = 32


@dataclass(frozen=True, slots=True)
class Field:
    """A column in row images."""

    size: int  #: bytes of the value; with `prefixed` bytes (1 to 4) of the length before the value
    prefixed: bool = False  #: the value has a length before it


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A stretch of fixed columns, and the prefixed column behind it."""

    #: (index of a bitmap byte, table: value of that byte -> bytes that the fixed columns take), for bytes with fixed
    #: columns
    widths: tuple[tuple[int, Positions], ...]
    prefix: int  #: bytes of the prefixed column's length; 0: the row ends here
    byte: int  #: index of the prefixed column's bitmap byte
    present: Positions  #: table: value of that bitmap byte -> 1 if the prefixed column is not NULL, otherwise 0


class ImageLayout:
    """The order of a row's columns in images. It is made once per table."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.bitmap_bytes = (len(fields) + 7) // 8
        self._bits = [(index >> 3, 1 << (index & 7), field.size, field.prefixed) for index, field in enumerate(fields)]

    @cached_property
    def _steps(self) -> list[_Step]:
        """Return the steps.

        They are made only if whole columns are walked: 2 KB for eight columns, and 2 KB for each text.
        """
        steps = []
        pending: list[int] = []
        for index, field in enumerate(self.fields):
            if field.prefixed:
                present = 1 - (_ALL_BYTES >> (index & 7) & 1)
                steps.append(_Step(_widths(self.fields, pending), field.size, index >> 3, present))
                pending = []
            else:
                pending.append(index)
        if pending:
            steps.append(_Step(_widths(self.fields, pending), 0, 0, np.ones(256, np.int64)))
        return steps

    def advance(self, packets: Packets, cursors: Positions) -> Positions:
        """Return the cursors behind the images that begin at `cursors`."""
        bitmap = self._bitmap(packets, cursors)
        cursors = cursors + self.bitmap_bytes
        for step in self._steps:
            for byte, table in step.widths:
                cursors += table.take(bitmap[byte])
            if step.prefix:
                lengths = prefixed_lengths(packets, cursors, step.prefix)
                lengths += step.prefix
                lengths *= step.present.take(bitmap[step.byte])
                cursors += lengths
        return cursors

    def walk(self, packets: Packets, at: int, end: int) -> tuple[list[int], int]:
        """Return where each image of one event begins, and where the last one ends.

        `at` and `end` are the bounds of the event's images. The end that is returned is past `end` if the event is
        damaged.
        """
        data = memoryview(packets.data.data)[: packets.size]
        steps = [
            ([(byte, table.tolist()) for byte, table in step.widths], step.prefix, step.byte, step.present.tolist())
            for step in self._steps
        ]
        images = []
        try:
            while at < end:
                images.append(at)
                bitmap = at
                at += self.bitmap_bytes
                for widths, prefix, place, present in steps:
                    for byte, table in widths:
                        at += table[data[bitmap + byte]]
                    if prefix and present[data[bitmap + place]]:
                        at += prefix + (data[at] if prefix == 1 else int.from_bytes(data[at : at + prefix], "little"))
        except IndexError:
            at = end + 1
        return images, at

    def places(self, data: bytes, at: int, end: int, most: int) -> tuple[list[list[ValueSpan]], int]:
        """Return the `ValueSpan` of each column in each image of one event, and where the last image ends.

        Use this for events with few images, and `spans` for whole columns. The walk stops behind `most` images. The end
        that is returned is past `end` if the event is damaged.
        """
        rows: list[list[ValueSpan]] = []
        try:
            while at < end and len(rows) < most:
                bitmap, row = at, []
                at += self.bitmap_bytes
                for byte, bit, size, prefixed in self._bits:
                    if data[bitmap + byte] & bit:
                        row.append((at, -1))
                        continue
                    length = size
                    if prefixed:
                        length = data[at] if size == 1 else int.from_bytes(data[at : at + size], "little")
                        at += size
                    row.append((at, length))
                    at += length
                rows.append(row)
        except IndexError:
            at = end + 1
        return rows, at

    def spans(self, packets: Packets, cursors: Positions) -> list[Spans]:
        """Return where each column lies, one element per image. `scan` must have walked the images."""
        bitmap = self._bitmap(packets, cursors)
        cursors = cursors + self.bitmap_bytes
        columns = []
        for index, field in enumerate(self.fields):
            null = (bitmap[index >> 3] >> np.uint8(index & 7)) & np.uint8(1)
            present = (null ^ np.uint8(1)).view(np.bool_) if null.any() else None
            if not field.prefixed:
                columns.append(Spans(packets, cursors, field.size, present))
                cursors = cursors + (field.size if present is None else field.size * present)
                continue
            lengths = prefixed_lengths(packets, cursors, field.size)
            if present is None:
                start = cursors + field.size
            else:
                lengths *= present
                start = cursors + field.size * present
            columns.append(Spans(packets, start, lengths, present))
            cursors = start + lengths
        return columns

    def _bitmap(self, packets: Packets, cursors: Positions) -> list[Bytes]:
        """Return the bytes of the null bitmaps: one array per byte, one element per cursor."""
        return [packets.data.take(cursors + byte, mode="clip") for byte in range(self.bitmap_bytes)]


@lru_cache(maxsize=1024)
def layout_of(fields: tuple[Field, ...]) -> ImageLayout:
    """Return the layout of the fields.

    Equal fields share one object, so that its tables are made once for all slices.
    """
    return ImageLayout(fields)


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """The row images of some events, in order of events, then of images."""

    start: Positions  #: first byte of each image
    event: NDArray[np.int32]  #: event of each image
    per_event: Positions  #: how many images each event has
    damaged: Positions  #: events whose images do not end where the event ends; none of their images can be trusted


def scan(packets: Packets, starts: Positions, ends: Positions, layout: ImageLayout) -> Images:
    """Return all images of the events, which are scanned in lock-step.

    The images of event `i` lie between `starts[i]` (at a null bitmap) and `ends[i]`. Each image has at least one byte,
    so the scan ends whatever the bytes are.
    """
    steps: list[tuple[NDArray[np.intp], Positions]] = []
    events = np.flatnonzero(starts < ends)
    damaged = [np.flatnonzero(starts > ends)]
    cursors, limits = starts[events], ends[events]
    while len(events) > _FEW:
        steps.append((events, cursors))
        cursors = layout.advance(packets, cursors)
        open_ = cursors < limits
        if not open_.all():
            damaged.append(events[cursors > limits])
            events, cursors, limits = events[open_], cursors[open_], limits[open_]
    per_event = np.zeros(len(starts), np.int64)
    for walked, _ in steps:
        per_event[walked] += 1
    alone = [layout.walk(packets, *bounds) for bounds in zip(cursors.tolist(), limits.tolist(), strict=True)]
    for event, (images, behind) in zip(events.tolist(), alone, strict=True):
        per_event[event] += len(images)
        if behind != ends[event]:
            damaged.append(np.array([event]))
    before = np.cumsum(per_event) - per_event
    start = np.empty(int(per_event.sum()), np.int64)
    for image, (walked, at) in enumerate(steps):
        start[before[walked] + image] = at
    for event, (images, _) in zip(events.tolist(), alone, strict=True):
        first = int(before[event]) + len(steps)
        start[first : first + len(images)] = images
    number = np.repeat(np.arange(len(starts), dtype=np.int32), per_event)
    return Images(start, number, per_event, np.unique(np.concatenate(damaged)))


def _widths(fields: tuple[Field, ...], indexes: list[int]) -> tuple[tuple[int, Positions], ...]:
    tables: dict[int, Positions] = {}
    for index in indexes:
        table = tables.setdefault(index >> 3, np.zeros(256, np.int64))
        table += fields[index].size * (1 - (_ALL_BYTES >> (index & 7) & 1))
    return tuple(tables.items())
