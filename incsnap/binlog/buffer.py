"""The part of the stream that is held in memory, and the search for ends of batches in it.

A *place* names a cut in the buffer; a `StreamPosition` names the same cut in the saved offset. After a restart only
positions are left. A place is then found again by counting transactions from the first position. The buffer has no
locks: the tail holds one around every call.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from incsnap.binlog.batch_ends import cut
from incsnap.binlog.buffer_position import BufferPlace, Contents, Cut, UnnamedRows
from incsnap.binlog.buffered_segments import BufferedSegments
from incsnap.binlog.capture_options import CHANGES, CaptureOptions
from incsnap.binlog.place_search import search
from incsnap.binlog.protocol.control_events import HEADER, TABLE_MAP
from incsnap.binlog.protocol.table_map import TABLE_ID_BYTES
from incsnap.binlog.row_counts import RowCounts
from incsnap.binlog.segments import IS_ROWS, IdTable, Segment, Stretch
from incsnap.binlog.xa_parts import XaMark
from incsnap.errors import OffsetError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId

#: Most positions whose places are remembered.
_REMEMBERED = 32
#: More rows events than a buffer can hold.
_ALL = 1 << 62
#: The place before everything in the buffer.
_OLDEST = BufferPlace(0, 0, 0)


class Buffer:
    """The segments in memory, from the oldest place that may still be needed to the newest event."""

    def __init__(self, start: StreamPosition, ids: IdTable, options: CaptureOptions = CHANGES) -> None:
        self._ends_batch, self._is_captured = options.ends_batch, options.is_captured
        #: Position up to which the stream was read; heartbeats move it too.
        self.newest = start.at
        #: Bytes of memory: `cost` of all segments, `ahead` of those that are not handed out yet.
        self.cost = 0
        self.ahead = 0
        #: Number of segments appended with rows events of included tables or statements that changed tables.
        self.work = 0
        self._ids = ids
        self._segments = BufferedSegments()
        self._row_counts = RowCounts(self._segments)
        self._handed_out = 0
        self._base = start
        self._base_place = _OLDEST
        self._places: dict[StreamPosition, BufferPlace] = {}

    def append(self, segment: Segment) -> None:
        """Append a segment, unless it is a part from inside a large transaction and has neither events nor statements.

        Such a segment is skipped so that a large transaction of excluded tables does not fill the memory.
        """
        empty = segment.continues and segment.open and segment.fragments == 1 and not len(segment.kinds)
        if empty and not segment.changes:
            return  # a large transaction of excluded tables must not fill the memory
        self._segments.append(segment)
        self.cost += segment.cost
        self.ahead += segment.cost
        self.work += bool(segment.rows_before[-1]) or bool(segment.changes)

    def drop_open(self) -> None:
        """Drop the incomplete transaction at the end: the next connection is to another server, or the binlog undoes
        its rows.

        Another server may divide the transaction into other events, so events cannot be counted there. Raise
        OffsetError, and drop nothing, if a part of the transaction was handed out.
        """
        segments = self._segments
        begin = segments.begin_of_open()
        goes_back_further = self._base.open_gtid and begin <= (segments.first, 0, 0)
        if goes_back_further or max(self._base_place, *self._places.values(), begin) > begin:
            raise OffsetError(
                "the server changed while a large transaction was delivered in part; its rest cannot be identified",
                "Go back to the previous server, or start with a new checkpoint.location and snapshot the tables.",
            )
        segments.drop_open()
        self._row_counts.forget_all()
        # Cuts where the transaction began now lie at the end of the last segment, which leaves nothing open.
        end = BufferPlace(segments.end, 0, 0)
        self._places = {position: place if place < begin else end for position, place in self._places.items()}
        self._base_place = self._base_place if self._base_place < begin else end
        self._handed_out = min(self._handed_out, segments.end)
        self.cost, self.ahead = segments.cost_from(segments.first), segments.cost_from(self._handed_out)

    def reached(self) -> GtidSet:
        """Return the GTIDs of all whole transactions up to the buffer's end."""
        return self._base.delivered | self._ids.gtids(
            (each, 0, each.complete) for _, each, _, _, _ in self._segments.walk(_OLDEST)
        )

    def hand_out(self, end: BufferPlace) -> None:
        """Note that a batch up to `end` was handed out: subtract the segments that the batch used up from `ahead`."""
        segments = self._segments
        while (segment := segments.at(self._handed_out)) is not None and segments.is_spent(self._handed_out, end):
            self.ahead -= segment.cost
            self._handed_out += 1

    def forget(self, end: StreamPosition) -> None:
        """Free the memory of the segments before `end`.

        Do nothing if the stream has not come to `end`, or if `end` is before everything in the buffer.
        """
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
        """Return the place of `position`, or None if the stream has not come to it.

        Raise OffsetError if it never will.
        """
        place = self._base_place if position == self._base else self._places.get(position)
        if place is None:
            place = search(self._segments, self._ids, self._base, self._base_place, position)
            if place is None:
                return None
            self.remember(position, place)
        # The place may be inside a transaction, after the last event of a segment that was dropped.
        return self._segments.resolved(place)

    def remember(self, position: StreamPosition, place: BufferPlace) -> None:
        """Remember the place of `position`, so that no search is needed.

        Only the newest 32 are remembered, because an idle server gives new positions all the time.
        """
        self._places[position] = place
        if len(self._places) > _REMEMBERED:
            del self._places[next(iter(self._places))]

    def stretches(self, start: BufferPlace, end: BufferPlace) -> list[Stretch]:
        """Return the stretches between two places, for `cut_slices`."""
        return list(self._segments.walk(start, end))

    def changes_behind(self, place: BufferPlace) -> tuple[SchemaChange, ...]:
        """Return all statements that changed tables, from `place` to the end of the buffer, in order."""
        return tuple(
            change
            for _, segment, fragment, _, _ in self._segments.walk(place)
            for at, change in segment.changes
            if at >= fragment
        )

    def contents(self, start: BufferPlace, end: BufferPlace) -> Contents:
        """Return a summary of the events between two places."""
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
            # A segment has either statements or rows.
            changes += [change for at, change in segment.changes if fragment <= at < fragments]
            if fragments > fragment:
                marks += segment.marks
                ts_us = int(segment.transactions["ts_us"][fragments - 1])
            size += int(segment.offsets[last] - segment.offsets[event])
            rows += int(segment.rows_before[last] - segment.rows_before[event])
            own = set(np.unique(segment.tables[event:last][IS_ROWS[segment.kinds[event:last]]]).tolist())
            tables |= own
            for table in own & self._ids.unnamed:
                before = len(changes)
                met = unnamed.get(table) or self._unnamed(table, segment, event, before)
                unnamed[table] = replace(met, last=before)
        included = frozenset(self._ids.tables[table] for table in tables)
        return Contents(included, tuple(changes), size, rows, ts_us, tuple(marks), tuple(unnamed.values()))

    def _unnamed(self, table: int, segment: Segment, event: int, before: int) -> UnnamedRows:
        first = event + int(np.argmax((segment.tables[event:] == table) & IS_ROWS[segment.kinds[event:]]))
        place = f"{segment.file}:{int(segment.positions[first])}"
        return UnnamedRows(self._ids.tables[table], place, before, before)

    def unnamed_maps(self, start: BufferPlace, end: BufferPlace) -> dict[TableId, set[bytes]]:
        """Return the table maps without column names between two places, by table.

        The planner compares its definitions with them. Each map is given as its body without the table id.
        """
        maps: dict[TableId, set[bytes]] = defaultdict(set)
        unnamed = list(self._ids.unnamed)
        for _, segment, _, event, last in self._segments.walk(start, end):
            is_map = segment.kinds[event:last] == TABLE_MAP
            for number in (event + np.flatnonzero(is_map & np.isin(segment.tables[event:last], unnamed))).tolist():
                begin = int(segment.offsets[number]) + HEADER + TABLE_ID_BYTES
                table = self._ids.tables[segment.tables[number]]
                maps[table].add(segment.payload[begin : segment.offsets[number + 1]])
        return maps

    # -- cuts --------------------------------------------------------------------------------------------------------

    def cut(self, start: BufferPlace, max_bytes: int, max_rows: int | None, *, inside: bool) -> Cut:
        """Return the cut at which a batch that begins at `start` can end (see `batch_ends.cut`).

        The batch has at most `max_bytes` and `max_rows`, or one event that is larger. `max_rows=None` means no limit.
        If the batch would have neither rows nor statements, because a transaction larger than the limits follows, the
        batch also takes the beginning of that transaction.
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
        # In a batch, all rows of a table without column names are decoded by one definition. So the batch ends at a
        # change of it.
        ends_batch = self._is_captured if self._ids.unnamed else self._ends_batch
        return cut(
            lambda: self._segments.walk(begin), begin, max_bytes, max_events, inside=inside, ends_batch=ends_batch
        )

    def position_of(self, start: StreamPosition, cut: Cut) -> StreamPosition:
        """Return the end of `cut` as a position, for the offset.

        `start` is the position at which the batch of `cut` begins.
        """
        place = cut.end
        if place == cut.start and start.open_gtid:
            return start
        delivered = start.delivered | self._ids.gtids(
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
                open_gtid=self._ids.gtid(segment_there, place.fragment),
                events_done=segment_there.rows_of_fragment_before(place.fragment, place.event),
            ).moved_to(at)
        return ended.moved_to(segment_there.at(int(segment_there.transactions["pos"][place.fragment])))
