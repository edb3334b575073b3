"""A position is looked for in what is held of the stream: transactions are counted off from a place that is known.

After a restart only positions are left, and the server sends the same transactions in the same order again.
"""

from __future__ import annotations

import numpy as np

from incsnap.binlog.buffer_position import BufferPlace
from incsnap.binlog.buffered_segments import BufferedSegments
from incsnap.binlog.cuts import behind
from incsnap.binlog.segments import IS_ROWS, Names, Segment
from incsnap.errors import OffsetError
from incsnap.events import StreamPosition

#: Fragments ``[1]`` to ``[2]`` of a segment, all of which end their transactions.
_Passed = tuple[Segment, int, int]


def search(
    segments: BufferedSegments, names: Names, base: StreamPosition, base_place: BufferPlace, position: StreamPosition
) -> BufferPlace | None:
    """The place of ``position``, where ``base`` is at ``base_place``. None while the stream has not come that far.

    Raises ``OffsetError`` where it never will: the position is before ``base``, or the stream holds other transactions.
    """
    count = _transactions_between(base, position)
    counted_off = _behind_transactions(segments, base_place, count)
    if counted_off is None:
        return None
    place, passed = counted_off
    if base.delivered | names.gtids(passed) != position.delivered:
        raise OffsetError(
            "the binlog does not hold the transactions of the saved offset in the order in which they were read",
            "Was it another server before? Go back to that one, or start with a new checkpoint.location.",
        )
    return _inside_transaction(segments, names, place, position) if position.open_gtid else place


def _transactions_between(base: StreamPosition, position: StreamPosition) -> int:
    """How many transactions end between the two."""
    missing = position.delivered - base.delivered
    count = sum(last - first + 1 for _, spans in missing for first, last in spans)
    if not base.delivered <= position.delivered or (not count and _is_earlier_inside(position, base)):
        raise OffsetError("a position before the tail's start was asked for", "Start the tail there.")
    return count


def _is_earlier_inside(position: StreamPosition, base: StreamPosition) -> bool:
    """Is ``position`` before ``base`` within the transaction in which that lies? The same transactions are delivered
    at both."""
    if not base.open_gtid:
        return False
    return not position.open_gtid or (position.open_gtid == base.open_gtid and position.events_done < base.events_done)


def _behind_transactions(
    segments: BufferedSegments, start: BufferPlace, count: int
) -> tuple[BufferPlace, list[_Passed]] | None:
    """The place at the end of the ``count``-th transaction that ends behind ``start``, and what was passed by."""
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
    segments: BufferedSegments, names: Names, start: BufferPlace, position: StreamPosition
) -> BufferPlace | None:
    """The place behind as many rows events of the transaction at ``start`` as ``position`` has seen of it."""
    for number, segment, fragment, begin, _ in segments.walk(start):
        gtid = names.gtid(segment, fragment)
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
                "table.include.list was changed while a large transaction was half done; change it back once.",
            )
    return None
