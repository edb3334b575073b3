"""The search for the place of a position in the buffer, by counting transactions from a known place.

After a restart only positions are left. The server sends the same transactions in the same order again.
"""

from __future__ import annotations

import numpy as np

from incsnap.binlog.batch_ends import behind
from incsnap.binlog.buffer_position import BufferPlace
from incsnap.binlog.buffered_segments import BufferedSegments
from incsnap.binlog.segments import IS_ROWS, IdTable, Segment
from incsnap.errors import OffsetError
from incsnap.events import StreamPosition

#: A segment and its fragments `[1]` to `[2]`. Each of these ends its transaction.
_Passed = tuple[Segment, int, int]


def search(
    segments: BufferedSegments, ids: IdTable, base: StreamPosition, base_place: BufferPlace, position: StreamPosition
) -> BufferPlace | None:
    """Return the place of `position`, or None if the stream has not come to it yet. `base` lies at `base_place`.

    Raise OffsetError if `position` is before `base`, or if the stream has other transactions than `position`.
    """
    count = _transactions_between(base, position)
    counted_off = _behind_transactions(segments, base_place, count)
    if counted_off is None:
        return None
    place, passed = counted_off
    if base.delivered | ids.gtids(passed) != position.delivered:
        raise OffsetError(
            "the binlog does not hold the transactions of the saved offset in the order in which they were read",
            "If the job read another server before, go back to it; else start with a new checkpoint.location.",
        )
    return _inside_transaction(segments, ids, place, position) if position.open_gtid else place


def _transactions_between(base: StreamPosition, position: StreamPosition) -> int:
    """Return how many transactions end between the two positions. Raise OffsetError if `position` is before `base`."""
    missing = position.delivered - base.delivered
    count = sum(last - first + 1 for _, spans in missing for first, last in spans)
    if not base.delivered <= position.delivered or (not count and _is_earlier_inside(position, base)):
        raise OffsetError("the position is before the start of the tail", "Start the tail there.")
    return count


def _is_earlier_inside(position: StreamPosition, base: StreamPosition) -> bool:
    """Return True if `base` lies inside a transaction, and `position` lies earlier in it or at its beginning.

    The caller knows that the same transactions are delivered at both positions.
    """
    if not base.open_gtid:
        return False
    return not position.open_gtid or (position.open_gtid == base.open_gtid and position.events_done < base.events_done)


def _behind_transactions(
    segments: BufferedSegments, start: BufferPlace, count: int
) -> tuple[BufferPlace, list[_Passed]] | None:
    """Return the place at the end of the `count`-th transaction after `start`, and the fragments before that place."""
    if not count:
        return segments.resolved(start), []
    passed: list[_Passed] = []
    for number, segment, fragment, _, _ in segments.walk(start):
        end = min(fragment + count, segment.complete)
        passed.append((segment, fragment, end))
        count -= end - fragment
        if not count:
            return behind(number, segment, end - 1), passed
    return None


def _inside_transaction(
    segments: BufferedSegments, ids: IdTable, start: BufferPlace, position: StreamPosition
) -> BufferPlace | None:
    """Return the place inside the transaction at `start`, after `position.events_done` of its rows events.

    Return None if these events have not come yet. Raise OffsetError if another transaction is there.
    """
    for number, segment, fragment, begin, _ in segments.walk(start):
        gtid = ids.gtid(segment, fragment)
        if gtid != position.open_gtid:
            raise OffsetError(f"the binlog holds {gtid} where {position.open_gtid} was expected")
        missing = position.events_done - segment.rows_of_fragment_before(fragment, begin)
        if missing <= 0:
            return BufferPlace(number, fragment, begin)
        rows = begin + np.flatnonzero(IS_ROWS[segment.kinds[begin : int(segment.first[fragment + 1])]])
        if missing <= len(rows):
            return BufferPlace(number, fragment, int(rows[missing - 1]) + 1)
        if fragment < segment.complete:
            raise OffsetError(
                f"{gtid} has fewer events of included tables than the saved offset has seen",
                "table.include.list was changed inside a large transaction. Change it back until that is delivered.",
            )
    return None
