"""Where a batch can end: at the ends of transactions, or inside one that is larger than a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from incsnap.binlog.buffer_position import Cut, Place
from incsnap.binlog.segments import IS_ROWS, Segment, Stretch
from incsnap.events import SchemaChange

#: The stretches from a place on; asked for up to twice.
Walk = Callable[[], Iterable[Stretch]]


def cut(
    walk: Walk,
    start: Place,
    max_bytes: int,
    max_events: int,
    *,
    inside: bool,
    ends_batch: Callable[[SchemaChange], bool],
) -> Cut:
    """The last end of a transaction within the limits, and not behind one whose statement ends a batch. Where not even
    one transaction ends within them, or where (``inside``) more cannot be read for lack of memory: the last rows event
    within them, at least one."""
    end = start
    held = rows = 0
    full = False
    for number, segment, piece, event, _ in walk():
        borders = segment.first[piece + 1 :]
        sizes = segment.offsets[borders] - segment.offsets[event] + held
        counts = segment.rows_before[borders] - segment.rows_before[event] + rows
        fitting = int(np.count_nonzero((sizes <= max_bytes) & (counts <= max_events)))
        whole = piece + min(fitting, segment.complete - piece)
        last = min((at for at, change in segment.changes if at >= piece and ends_batch(change)), default=whole)
        if last < whole:
            return Cut(start, behind(number, segment, last), True)
        if whole > piece:
            end = behind(number, segment, whole - 1)
        full = fitting < len(borders)
        if full:
            break
        held, rows = int(sizes[-1]), int(counts[-1])
    if end == start and (full or inside):
        end = _inside(walk, start, max_bytes, max_events)
    return Cut(start, end, full and end != start)


def behind(number: int, segment: Segment, piece: int) -> Place:
    """The place at the end of a piece, which ends its transaction."""
    if piece + 1 == segment.pieces:
        return Place(number + 1, 0, 0)
    return Place(number, piece + 1, int(segment.first[piece + 1]))


def _inside(walk: Walk, start: Place, max_bytes: int, max_events: int) -> Place:
    end = start
    held = done = 0
    for number, segment, piece, event, _ in walk():
        last = int(segment.first[piece + 1])
        rows = event + np.flatnonzero(IS_ROWS[segment.kinds[event:last]])
        sizes = segment.offsets[rows + 1] - segment.offsets[event] + held
        counts = np.arange(1, len(rows) + 1) + done
        fitting = int(np.count_nonzero((sizes <= max_bytes) & (counts <= max_events)))
        if end == start and len(rows):
            fitting = max(fitting, 1)
        if fitting:
            end = Place(number, piece, int(rows[fitting - 1]) + 1)
        if piece < segment.complete and (end == start or end.event == last):
            # All of the transaction's rest is one event larger than the limits, or table maps alone.
            return behind(number, segment, piece)
        if fitting < len(rows) or piece < segment.complete:
            break
        held += int(segment.offsets[last] - segment.offsets[event])
        done += len(rows)
    return end
