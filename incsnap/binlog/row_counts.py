"""The number of rows in each rows event, for the limit `max.batch.size`.

A rows event does not hold this number. So the row images are walked, for all events of a table at once, without
decoding values. Rows are counted only if a batch has a limit of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from incsnap.binlog.buffer_position import BufferPlace
from incsnap.binlog.buffered_segments import BufferedSegments
from incsnap.binlog.protocol.control_events import HEADER, TABLE_MAP
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.protocol.row_images import count_rows
from incsnap.binlog.protocol.table_map import TABLE_ID_BYTES, TableMap, table_maps
from incsnap.binlog.segments import IS_ROWS, Segment
from incsnap.columns.packets import Packets
from incsnap.errors import IncsnapError

_TABLE_ID = slice(HEADER, HEADER + TABLE_ID_BYTES)
#: The length of a value does not depend on its character set, but an unknown one is refused. So give every collation
#: one that accepts all bytes.
_CHARSETS = dict.fromkeys(range(2048), "latin1") | {63: "binary"}


class RowCounts:
    """The rows of each kept event in a buffer's segments. A segment is counted once, when it is first needed."""

    def __init__(self, segments: BufferedSegments) -> None:
        self._segments = segments
        self._maps = table_maps(_CHARSETS)
        self._before: dict[int, Longs] = {}

    def events_within(self, start: BufferPlace, most: int) -> int:
        """Return how many rows events from `start` on have at most `most` rows together.

        The result is at least 1, because an event is never divided.
        """
        events = rows = 0
        for number, segment, _, event, _ in self._segments.walk(start):
            before = self._rows_before(number, segment)
            sums = before[event + 1 : len(segment.kinds) + 1] - before[event] + rows
            fitting = int(np.searchsorted(sums, most, "right"))
            events += int(segment.rows_before[event + fitting] - segment.rows_before[event])
            if fitting < len(sums):
                break
            rows = int(sums[-1]) if len(sums) else rows
        return max(events, 1)

    def forget(self) -> None:
        """Forget the counts of segments that the buffer has dropped."""
        for number in [each for each in self._before if each < self._segments.first]:
            del self._before[number]

    def forget_all(self) -> None:
        """Forget all counts."""
        self._before.clear()

    def _rows_before(self, number: int, segment: Segment) -> Longs:
        before = self._before.get(number)
        if before is None:
            counts = rows_of_events(segment, self._maps)
            before = self._before[number] = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        return before


def rows_of_events(segment: Segment, maps: Callable[[bytes], TableMap]) -> Longs:
    """Return the number of rows of each kept event; 0 for a table map.

    An event that cannot be read counts as one row. Decoding its rows will report the error.
    """
    payload, offsets = segment.payload, segment.offsets
    in_force = {each.event[_TABLE_ID]: each.event[HEADER:] for each in segment.maps if not each.is_query}
    by_map: dict[bytes, list[int]] = defaultdict(list)
    for event, kind in enumerate(segment.kinds.tolist()):
        begin, end = offsets[event] + HEADER, offsets[event + 1]
        table = payload[begin : begin + TABLE_ID_BYTES]
        if kind == TABLE_MAP:
            in_force[table] = payload[begin:end]
        elif IS_ROWS[kind] and table in in_force:
            by_map[in_force[table][TABLE_ID_BYTES:]].append(event)
    counts = IS_ROWS[segment.kinds].astype(np.int64)
    packets = Packets.of(payload)
    for description, numbers in by_map.items():
        events = np.array(numbers)
        try:
            table_map = _with_charsets(maps(description))
            bodies = offsets[events] + HEADER, offsets[events + 1]
            counts[events] = np.maximum(count_rows(packets, *bodies, segment.kinds[events], table_map), 1)
        except IncsnapError:
            continue
    return counts


def rows_of_event(kind: int, body: bytes, table_map: TableMap) -> int:
    """Return the number of rows of one rows event, from its body and the table map in front of it."""
    begin, end = np.zeros(1, np.int64), np.full(1, len(body))
    return int(count_rows(Packets.of(body), begin, end, np.full(1, kind, np.uint8), _with_charsets(table_map))[0])


#: Reads the body of a table map without its table id, for `rows_of_event`.
map_of = table_maps(_CHARSETS)


def _with_charsets(table_map: TableMap) -> TableMap:
    """Return the map with a character set for each ENUM and SET. A map without names has none."""
    if table_map.named:
        return table_map
    columns = tuple(
        replace(column, charset="latin1") if column.type in ("enum", "set") else column
        for column in table_map.shape.columns
    )
    return replace(table_map, shape=replace(table_map.shape, columns=columns))
