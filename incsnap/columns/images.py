"""Row images: a null bitmap and then the columns, back to back, without any length of the whole.

Where an image ends is known only after walking over it, so the images of one event must be walked one after another.
But there are thousands of events: `scan` moves one cursor per event over one image a round (and, when only a few
events are left, walks those alone). When all images are known, `ImageLayout.spans` notes where each column lies, for
all images together and in order.

A walk touches the variable-length columns only: the widths of the fixed columns between two of them, as far as they are
not NULL, are the sum of one table look-up per bitmap byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from incsnap.columns.cursors import prefixed_lengths
from incsnap.columns.packets import Bytes, Packets, Positions, Spans

#: Where a value begins, and how many bytes it has: -1 for a NULL.
ValueSpan = tuple[int, int]
_ALL_BYTES = np.arange(256)
#: A round costs 20 µs however few events are left, an image walked alone in plain Python 0.5 µs.
_FEW = 32


@dataclass(frozen=True, slots=True)
class Field:
    """One column on the wire: ``size`` bytes of value or, when ``prefixed``, ``size`` (1 to 4) bytes of length before
    it.
    """

    size: int
    prefixed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A stretch of fixed columns, and the prefixed column behind it (``prefix`` 0: the row ends here)."""

    #: (bitmap byte, its table: bitmap byte value -> bytes that the fixed columns take), for bytes that have any.
    widths: tuple[tuple[int, Positions], ...]
    prefix: int
    #: of the prefixed column: its bitmap byte and the table: bitmap byte value -> 1 where not NULL, 0 where NULL.
    byte: int
    present: Positions


class ImageLayout:
    """How the columns of a row follow each other; made once per table."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.bitmap_bytes = (len(fields) + 7) // 8
        self._bits = [(index >> 3, 1 << (index & 7), field.size, field.prefixed) for index, field in enumerate(fields)]

    @cached_property
    def _steps(self) -> tuple[_Step, ...]:
        """Made where whole columns are walked: 2 KB for eight columns, and as many for each text."""
        return tuple(_steps(self.fields))

    def advance(self, packets: Packets, cursors: Positions) -> Positions:
        """From cursors at the beginning of an image (its null bitmap) to the byte behind it."""
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
        """All images of one event, one after another: where each begins, and where the last one ends."""
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
        """As ``walk``, of an event that has few images: of each where its columns lie. Stops behind ``most`` images."""
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
        """Where each column lies, one element per image. The images must have been walked by `scan`."""
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
        """Bitmap byte by bitmap byte, one element per cursor."""
        return [packets.data.take(cursors + byte, mode="clip") for byte in range(self.bitmap_bytes)]


@lru_cache(maxsize=1024)
def layout_of(fields: tuple[Field, ...]) -> ImageLayout:
    """One object for equal fields: what it has worked out of them serves every slice and table that has them."""
    return ImageLayout(fields)


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """All row images of some events: image ``i`` begins at ``start[i]`` and belongs to event ``event[i]``.

    In order of events, then of images. ``damaged`` lists the events whose images do not end where the event ends; of
    those, no image is to be believed.
    """

    start: Positions
    event: NDArray[np.int32]
    per_event: Positions
    damaged: Positions


def scan(packets: Packets, starts: Positions, ends: Positions, layout: ImageLayout) -> Images:
    """Find all images between ``starts`` (at a null bitmap) and ``ends``, all events in lock-step.

    Every image is at least one byte long, so this ends whatever the bytes are.
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


def _steps(fields: tuple[Field, ...]) -> list[_Step]:
    steps = []
    pending: list[int] = []
    for index, field in enumerate(fields):
        if field.prefixed:
            present = 1 - (_ALL_BYTES >> (index & 7) & 1)
            steps.append(_Step(_widths(fields, pending), field.size, index >> 3, present))
            pending = []
        else:
            pending.append(index)
    if pending:
        steps.append(_Step(_widths(fields, pending), 0, 0, np.ones(256, np.int64)))
    return steps


def _widths(fields: tuple[Field, ...], indexes: list[int]) -> tuple[tuple[int, Positions], ...]:
    tables: dict[int, Positions] = {}
    for index in indexes:
        table = tables.setdefault(index >> 3, np.zeros(256, np.int64))
        table += fields[index].size * (1 - (_ALL_BYTES >> (index & 7) & 1))
    return tuple(tables.items())
