"""The part of the stream that is held in memory, and cuts through it.

A *place* is a cut as the buffer sees it; a ``StreamPosition`` is the same cut as the offset remembers it. After a
restart only positions are left, so a place is found again by counting transactions from the first position.
No locks here: the tail holds one around every call.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from incsnap.binlog.buffer_position import BufferPlace, Contents, Cut, UnnamedRows
from incsnap.binlog.buffered_segments import BufferedSegments
from incsnap.binlog.capture_options import CHANGES, CaptureOptions
from incsnap.binlog.cuts import cut
from incsnap.binlog.place_search import search
from incsnap.binlog.prepared import XaMark
from incsnap.binlog.protocol.control_events import HEADER, TABLE_MAP
from incsnap.binlog.protocol.table_map import TABLE_ID_BYTES
from incsnap.binlog.row_counts import RowCounts
from incsnap.binlog.segments import IS_ROWS, Names, Segment, Stretch
from incsnap.errors import OffsetError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId

#: Positions whose places are remembered.
_REMEMBERED = 32
#: More rows events than a buffer can hold.
_ALL = 1 << 62
#: The place before all that is held.
_OLDEST = BufferPlace(0, 0, 0)


class Buffer:
    def __init__(self, start: StreamPosition, names: Names, options: CaptureOptions = CHANGES) -> None:
        self._ends_batch = options.ends_batch
        #: How far the stream was read, by heartbeats too.
        self.newest = start.at
        #: Bytes of memory, of all segments and of those not handed out yet.
        self.cost = 0
        self.ahead = 0
        #: Grows with every segment that has rows events of included tables or schema changes.
        self.work = 0
        self._names = names
        self._segments = BufferedSegments()
        self._row_counts = RowCounts(self._segments)
        self._handed_out = 0
        self._base = start
        self._base_place = _OLDEST
        self._places: dict[StreamPosition, BufferPlace] = {}

    def append(self, segment: Segment) -> None:
        empty = segment.continues and segment.open and segment.fragments == 1 and not len(segment.kinds)
        if empty and not segment.changes:
            return  # of a large transaction of excluded tables nothing must pile up
        self._segments.append(segment)
        self.cost += segment.cost
        self.ahead += segment.cost
        self.work += bool(segment.rows_before[-1]) or bool(segment.changes)

    def drop_open(self) -> None:
        """Drop the half of a transaction at the end: another server may divide it into other events, so they cannot be
        counted off there. ``OffsetError``, and nothing is dropped, where some of that half was handed out.
        """
        segments = self._segments
        begin = segments.begin_of_open()
        goes_back_further = self._base.open_gtid and begin <= (segments.first, 0, 0)
        if goes_back_further or max(self._base_place, *self._places.values(), begin) > begin:
            raise OffsetError(
                "the server was exchanged while a large transaction was half delivered; its rest cannot be told apart",
                "Go back to the server before, or start with a new checkpoint.location and read the tables again.",
            )
        segments.drop_open()
        self._row_counts.forget_all()
        # What ended where the transaction began is the end of a segment that leaves nothing open now.
        end = BufferPlace(segments.end, 0, 0)
        self._places = {position: place if place < begin else end for position, place in self._places.items()}
        self._base_place = self._base_place if self._base_place < begin else end
        self._handed_out = min(self._handed_out, segments.end)
        self.cost, self.ahead = segments.cost_from(segments.first), segments.cost_from(self._handed_out)

    def reached(self) -> GtidSet:
        """Every whole transaction up to the buffer's end."""
        return self._base.delivered | self._names.gtids(
            (each, 0, each.complete) for _, each, _, _, _ in self._segments.walk(_OLDEST)
        )

    def hand_out(self, end: BufferPlace) -> None:
        """What is before ``end`` does not count as lying ahead any more."""
        segments = self._segments
        while (segment := segments.at(self._handed_out)) is not None and segments.is_spent(self._handed_out, end):
            self.ahead -= segment.cost
            self._handed_out += 1

    def forget(self, end: StreamPosition) -> None:
        """Free what is before ``end``, a position that is buffered (or older than the buffer: then nothing)."""
        try:
            place = self.place_of(end)
        except OffsetError:
            return
        if place is None:
            return
        self.hand_out(place)
        while self._segments.is_before(self._segments.first, place):
            self.cost -= self._segments.drop_first().cost
        self._row_counts.forget()
        if self._base_place <= place:
            self._base, self._base_place = end, place
            self._places = {position: at for position, at in self._places.items() if at >= place}

    # -- places ------------------------------------------------------------------------------------------------------

    def place_of(self, position: StreamPosition) -> BufferPlace | None:
        """None while the stream has not come that far. ``OffsetError`` where it never will."""
        place = self._base_place if position == self._base else self._places.get(position)
        if place is None:
            place = search(self._segments, self._names, self._base, self._base_place, position)
            if place is None:
                return None
            self.remember(position, place)
        # It may be inside a transaction, behind the last event of a segment that was forgotten.
        return self._segments.resolved(place)

    def remember(self, position: StreamPosition, place: BufferPlace) -> None:
        """So that it need not be searched for. The last few are enough: an idle server gives new ones all the time."""
        self._places[position] = place
        if len(self._places) > _REMEMBERED:
            del self._places[next(iter(self._places))]

    def stretches(self, start: BufferPlace, end: BufferPlace) -> list[Stretch]:
        """What lies between the places, for ``cut_slices``."""
        return list(self._segments.walk(start, end))

    def changes_behind(self, place: BufferPlace) -> tuple[SchemaChange, ...]:
        """Every statement that was read and lies behind it."""
        return tuple(
            change
            for _, segment, fragment, _, _ in self._segments.walk(place)
            for at, change in segment.changes
            if at >= fragment
        )

    def contents(self, start: BufferPlace, end: BufferPlace) -> Contents:
        tables: set[int] = set()
        changes: list[SchemaChange] = []
        marks: list[XaMark] = []
        unnamed: dict[int, UnnamedRows] = {}
        size = rows = ts_us = 0
        for number, segment, fragment, event, last in self._segments.walk(start, end):
            if number == end.segment:
                inside = end.fragment < segment.fragments and end.event > segment.first[end.fragment]
                fragments = end.fragment + inside
            else:
                fragments = segment.fragments
            # A segment has statements or rows.
            changes += [change for at, change in segment.changes if fragment <= at < fragments]
            if fragments > fragment:
                marks += segment.marks
                ts_us = int(segment.transactions["ts_us"][fragments - 1])
            size += int(segment.offsets[last] - segment.offsets[event])
            rows += int(segment.rows_before[last] - segment.rows_before[event])
            own = set(np.unique(segment.tables[event:last][IS_ROWS[segment.kinds[event:last]]]).tolist())
            tables |= own
            for table in own & self._names.unnamed:
                before = len(changes)
                met = unnamed.get(table) or self._unnamed(table, segment, event, before)
                unnamed[table] = replace(met, last=before)
        included = frozenset(self._names.tables[table] for table in tables)
        return Contents(included, tuple(changes), size, rows, ts_us, tuple(marks), tuple(unnamed.values()))

    def _unnamed(self, table: int, segment: Segment, event: int, before: int) -> UnnamedRows:
        first = event + int(np.argmax((segment.tables[event:] == table) & IS_ROWS[segment.kinds[event:]]))
        place = f"{segment.file}:{int(segment.positions[first])}"
        return UnnamedRows(self._names.tables[table], place, before, before)

    def unnamed_maps(self, start: BufferPlace, end: BufferPlace) -> dict[TableId, set[bytes]]:
        """Return the table maps without names between the places, behind their table ids, by table."""
        maps: dict[TableId, set[bytes]] = defaultdict(set)
        unnamed = list(self._names.unnamed)
        for _, segment, _, event, last in self._segments.walk(start, end):
            is_map = segment.kinds[event:last] == TABLE_MAP
            for number in (event + np.flatnonzero(is_map & np.isin(segment.tables[event:last], unnamed))).tolist():
                begin = int(segment.offsets[number]) + HEADER + TABLE_ID_BYTES
                table = self._names.tables[segment.tables[number]]
                maps[table].add(segment.payload[begin : segment.offsets[number + 1]])
        return maps

    # -- cuts --------------------------------------------------------------------------------------------------------

    def cut(self, start: BufferPlace, max_bytes: int, max_rows: int | None, *, inside: bool) -> Cut:
        """Where a batch that begins at ``start`` can end (see ``cuts``). Not before a transaction larger than a batch
        if nothing but transactions without events lies before it: nobody makes a batch of those, and asks again.
        ``max_rows``: None where rows are not to be counted; the first rows event may have more.
        """
        begin = self._segments.resolved(start)
        max_events = _ALL if max_rows is None else self._row_counts.events_within(begin, max_rows)
        chosen = self._cut(begin, max_bytes, max_events, inside=inside)
        if chosen.end != begin and (chosen.full or inside):
            passed = self.contents(begin, chosen.end)
            if not passed.events and not passed.changes:
                further = self._cut(self._segments.resolved(chosen.end), max_bytes, max_events, inside=inside)
                return Cut(begin, further.end, further.full)
        return chosen

    def _cut(self, begin: BufferPlace, max_bytes: int, max_events: int, *, inside: bool) -> Cut:
        # Rows that do not name their columns are read by one definition of their table in a batch.
        ends_batch = (lambda _: True) if self._names.unnamed else self._ends_batch
        return cut(
            lambda: self._segments.walk(begin), begin, max_bytes, max_events, inside=inside, ends_batch=ends_batch
        )

    def position_of(self, start: StreamPosition, cut: Cut) -> StreamPosition:
        """The end of a cut as a position that survives the process; in one server's binlog never before ``start``."""
        place = cut.end
        if place == cut.start and start.open_gtid:
            return start
        delivered = start.delivered | self._names.gtids(
            (segment, fragment, place.fragment if number == place.segment else segment.complete)
            for number, segment, fragment, _, _ in self._segments.walk(cut.start, place)
        )
        segment_there = self._segments.at(place.segment)
        ended = replace(start, delivered=delivered, open_gtid="", events_done=0)
        if segment_there is None:
            return ended.moved_to(self.newest)
        if place.event > segment_there.first[place.fragment]:
            at = segment_there.at(int(segment_there.positions[place.event - 1]))
            return replace(
                ended,
                open_gtid=self._names.gtid(segment_there, place.fragment),
                events_done=segment_there.rows_of_fragment_before(place.fragment, place.event),
            ).moved_to(at)
        return ended.moved_to(segment_there.at(int(segment_there.transactions["pos"][place.fragment])))
