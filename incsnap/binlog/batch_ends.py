"""The search for the end of a batch: after a transaction, or inside a transaction that is larger than a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from incsnap.binlog.buffer_position import BufferPlace, Cut
from incsnap.binlog.segments import IS_ROWS, Segment, Stretch
from incsnap.events import SchemaChange

#: A function that yields the stretches from the batch's beginning on. It is called up to twice.
Walk = Callable[[], Iterable[Stretch]]


def cut(
    walk: Walk,
    start: BufferPlace,
    max_bytes: int,
    max_events: int,
    *,
    inside: bool,
    ends_batch: Callable[[SchemaChange], bool],
) -> Cut:
    """Return the cut at the last end of a transaction within the limits.

    The cut lies at the latest after the first statement for which `ends_batch` is true. If the first transaction
    exceeds the limits, the cut lies inside it, after the last rows event within the limits, at least one. The same
    holds if `inside`: the memory is full, and the rest of the transaction cannot be read yet.
    """
    end = start
    size = rows = 0
    full = False
    for number, segment, fragment, event, _ in walk():
        borders = segment.first[fragment + 1 :]
        sizes = segment.offsets[borders] - segment.offsets[event] + size
        counts = segment.rows_before[borders] - segment.rows_before[event] + rows
        fitting = int(np.count_nonzero((sizes <= max_bytes) & (counts <= max_events)))
        whole = fragment + min(fitting, segment.complete - fragment)
        last = min((at for at, change in segment.changes if at >= fragment and ends_batch(change)), default=whole)
        if last < whole:
            return Cut(start, behind(number, segment, last), True)
        if whole > fragment:
            end = behind(number, segment, whole - 1)
        full = fitting < len(borders)
        if full:
            break
        size, rows = int(sizes[-1]), int(counts[-1])
    if end == start and (full or inside):
        end = _inside(walk, start, max_bytes, max_events)
    return Cut(start, end, full and end != start)


def behind(number: int, segment: Segment, fragment: int) -> BufferPlace:
    """Return the place at the end of a fragment, which ends its transaction."""
    if fragment + 1 == segment.fragments:
        return BufferPlace(number + 1, 0, 0)
    return BufferPlace(number, fragment + 1, int(segment.first[fragment + 1]))


def _inside(walk: Walk, start: BufferPlace, max_bytes: int, max_events: int) -> BufferPlace:
    """Return the place inside the first transaction, after the last rows event within the limits, at least one."""
    end = start
    size = done = 0
    for number, segment, fragment, event, _ in walk():
        last = int(segment.first[fragment + 1])
        rows = event + np.flatnonzero(IS_ROWS[segment.kinds[event:last]])
        sizes = segment.offsets[rows + 1] - segment.offsets[event] + size
        counts = np.arange(1, len(rows) + 1) + done
        fitting = int(np.count_nonzero((sizes <= max_bytes) & (counts <= max_events)))
        if end == start and len(rows):
            fitting = max(fitting, 1)
        if fitting:
            end = BufferPlace(number, fragment, int(rows[fitting - 1]) + 1)
        if fragment < segment.complete and (end == start or end == BufferPlace(number, fragment, last)):
            # The rest of the transaction is one event larger than the limits, or only table maps.
            return behind(number, segment, fragment)
        if fitting < len(rows) or fragment < segment.complete:
            break
        size += int(segment.offsets[last] - segment.offsets[event])
        done += len(rows)
    return end
