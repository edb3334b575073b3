"""The part of the stream that is held in memory, and cuts through it.

A *place* is a cut as the buffer sees it; a ``StreamPosition`` is the same cut as the offset remembers it. After a
restart only positions are left, so a place is found again by counting transactions from the first position.
No locks here: the tail holds one around every call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from incsnap.binlog.cuts import Stretch, cut
from incsnap.binlog.places import Contents, Cut, Place
from incsnap.binlog.prepared import XaMark
from incsnap.binlog.segments import IS_ROWS, Names, Segment
from incsnap.binlog.slices import Extent
from incsnap.binlog.wanted import CHANGES, Wanted
from incsnap.errors import OffsetError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet

_REMEMBERED = 32


class Buffer:
    def __init__(self, start: StreamPosition, names: Names, wanted: Wanted = CHANGES) -> None:
        self._ends_batch = wanted.ends_batch
        #: How far the stream was read, by heartbeats too.
        self.newest = start.at
        #: Bytes of memory, of all segments and of those not handed out yet.
        self.cost = 0
        self.ahead = 0
        #: Grows with every segment that has rows events of included tables or schema changes.
        self.work = 0
        self._names = names
        self._segments: deque[Segment] = deque()
        self._first = 0
        self._handed_out = 0
        self._base = start
        self._base_place = Place(0, 0, 0)
        self._places: dict[StreamPosition, Place] = {}

    def append(self, segment: Segment) -> None:
        empty = segment.continues and segment.open and segment.pieces == 1 and not len(segment.kinds)
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
        following = self._first + len(self._segments)
        begun = Place(following, 0, 0)
        for number in range(following - 1, self._first - 1, -1):
            segment = self._segments[number - self._first]
            if not segment.open:
                break
            begun = Place(number, segment.pieces - 1, int(segment.first[-2]))
            if segment.pieces > 1 or not segment.continues:
                break
        inside = self._base.open_gtid and begun <= (self._first, 0, 0)
        if inside or max((self._base_place, *self._places.values())) > begun:
            raise OffsetError(
                "the server was exchanged while a large transaction was half delivered; its rest cannot be told apart",
                "Go back to the server before, or start with a new checkpoint.location and read the tables again.",
            )
        while following > begun.segment:
            following -= 1
            segment = self._segments.pop()
            whole = segment.without_open() if following == begun.segment and begun.piece else None
            change = (whole.cost if whole else 0) - segment.cost
            self.cost += change
            self.ahead += change if following >= self._handed_out else 0
            if whole:
                self._segments.append(whole)
                following += 1
                break
        # What ended where the transaction began is the end of a segment that leaves nothing open now.
        end = Place(following, 0, 0)
        self._handed_out = min(self._handed_out, following)
        self._places = {position: place if place < begun else end for position, place in self._places.items()}
        self._base_place = self._base_place if self._base_place < begun else end

    def reached(self) -> GtidSet:
        """Every whole transaction up to the buffer's end."""
        return self._base.delivered | self._names.gtids((each, 0, each.complete) for each in self._segments)

    def hand_out(self, end: Place) -> None:
        """What is before ``end`` does not count as lying ahead any more."""
        while (segment := self._at(self._handed_out)) is not None and self._is_behind(self._handed_out, end):
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
        while self._segments and self._is_behind(self._first, place):
            self.cost -= self._segments.popleft().cost
            self._first += 1
        if self._base_place <= place:
            self._base, self._base_place = end, place
            self._places = {position: at for position, at in self._places.items() if at >= place}

    def _is_behind(self, number: int, place: Place) -> bool:
        segment = self._at(number)
        return segment is not None and (
            number < place.segment or (number == place.segment and 0 < len(segment.kinds) == place.event)
        )

    # -- places ------------------------------------------------------------------------------------------------------

    def place_of(self, position: StreamPosition) -> Place | None:
        """None while the stream has not come that far. ``OffsetError`` where it never will."""
        place = self._base_place if position == self._base else self._places.get(position)
        if place is None:
            place = self._search(position)
            if place is None:
                return None
            self.remember(position, place)
        # Inside a transaction, behind the last event of a segment that was forgotten.
        return place if place.segment >= self._first else Place(self._first, 0, 0)

    def remember(self, position: StreamPosition, place: Place) -> None:
        """So that it need not be searched for. The last few are enough: an idle server gives new ones all the time."""
        self._places[position] = place
        if len(self._places) > _REMEMBERED:
            del self._places[next(iter(self._places))]

    def _search(self, position: StreamPosition) -> Place | None:
        base = self._base
        missing = position.delivered - base.delivered
        left = sum(last - first + 1 for _, spans in missing for first, last in spans)
        backwards = not left and base.open_gtid and not position.open_gtid
        if backwards or not base.delivered <= position.delivered:
            raise OffsetError("a position before the tail's start was asked for", "Start the tail there.")
        place = self._resolved(self._base_place)
        passed: list[tuple[Segment, int, int]] = []
        while left:
            segment = self._at(place.segment)
            if segment is None:
                return None
            step = min(left, segment.complete - place.piece)
            passed.append((segment, place.piece, place.piece + step))
            left -= step
            piece = place.piece + step
            place = Place(place.segment, piece, int(segment.first[piece]))
            if left or piece == segment.pieces:
                place = Place(place.segment + 1, 0, 0)
        if base.delivered | self._names.gtids(passed) != position.delivered:
            raise OffsetError(
                "the binlog does not hold the transactions of the saved offset in the order in which they were read",
                "Was it another server before? Go back to that one, or start with a new checkpoint.location.",
            )
        return self._search_inside(position, place) if position.open_gtid else place

    def _search_inside(self, position: StreamPosition, place: Place) -> Place | None:
        while (segment := self._at(place.segment)) is not None:
            gtid = self._names.gtid(segment, place.piece)
            if gtid != position.open_gtid:
                raise OffsetError(f"the binlog holds {gtid} where {position.open_gtid} was expected")
            begin, end = int(segment.first[place.piece]), int(segment.first[place.piece + 1])
            missing = position.events_done - segment.rows_of_piece_before(place.piece, begin)
            if missing <= 0:
                return place
            rows = begin + np.flatnonzero(IS_ROWS[segment.kinds[begin:end]])
            if missing <= len(rows):
                return Place(place.segment, place.piece, int(rows[missing - 1]) + 1)
            if place.piece < segment.complete:
                raise OffsetError(
                    f"{gtid} has fewer events of included tables than the saved offset has seen",
                    "table.include.list was changed while a large transaction was half done; change it back once.",
                )
            place = Place(place.segment + 1, 0, 0)
        return None

    def _resolved(self, place: Place) -> Place:
        return place if place.segment >= self._first else Place(self._first, 0, 0)

    def _at(self, number: int) -> Segment | None:
        index = number - self._first
        return self._segments[index] if 0 <= index < len(self._segments) else None

    def _walk(self, start: Place, end: Place | None = None) -> Iterator[Stretch]:
        """What lies between the places, segment by segment."""
        number, piece, event = self._resolved(start)
        while (segment := self._at(number)) is not None and (end is None or number <= end.segment):
            last = end.event if end is not None and number == end.segment else len(segment.kinds)
            yield Stretch(number, segment, piece, event, last)
            number, piece, event = number + 1, 0, 0

    def extents(self, start: Place, end: Place) -> list[Extent]:
        return [Extent(segment, piece, event, last) for _, segment, piece, event, last in self._walk(start, end)]

    def changes_behind(self, place: Place) -> tuple[SchemaChange, ...]:
        """Every statement that was read and lies behind it."""
        return tuple(
            change for _, segment, piece, _, _ in self._walk(place) for at, change in segment.changes if at >= piece
        )

    def contents(self, start: Place, end: Place) -> Contents:
        tables: set[int] = set()
        changes: list[SchemaChange] = []
        marks: list[XaMark] = []
        held = rows = ts_us = 0
        for number, segment, piece, event, last in self._walk(start, end):
            if number == end.segment:
                inside = end.piece < segment.pieces and end.event > segment.first[end.piece]
                pieces = end.piece + inside
            else:
                pieces = segment.pieces
            changes += [change for at, change in segment.changes if piece <= at < pieces]
            if pieces > piece:
                marks += segment.marks
                ts_us = int(segment.ts_us[pieces - 1])
            held += int(segment.offsets[last] - segment.offsets[event])
            rows += int(segment.rows_before[last] - segment.rows_before[event])
            tables.update(np.unique(segment.tables[event:last][IS_ROWS[segment.kinds[event:last]]]).tolist())
        named = frozenset(self._names.tables[table] for table in tables)
        return Contents(named, tuple(changes), held, rows, ts_us, tuple(marks))

    # -- cuts --------------------------------------------------------------------------------------------------------

    def cut(self, start: Place, max_bytes: int, max_events: int, *, inside: bool) -> Cut:
        """Where a batch that begins at ``start`` can end (see ``cuts``). Not before a transaction larger than a batch
        if nothing but transactions without events lies before it: nobody makes a batch of those, and asks again.
        """
        begin = self._resolved(start)
        found = self._cut(begin, max_bytes, max_events, inside=inside)
        if found.end != begin and (found.full or inside):
            passed = self.contents(begin, found.end)
            if not passed.events and not passed.changes:
                further = self._cut(self._resolved(found.end), max_bytes, max_events, inside=inside)
                return Cut(begin, further.end, further.full)
        return found

    def _cut(self, begin: Place, max_bytes: int, max_events: int, *, inside: bool) -> Cut:
        return cut(lambda: self._walk(begin), begin, max_bytes, max_events, inside=inside, ends_batch=self._ends_batch)

    def position_of(self, start: StreamPosition, cut: Cut) -> StreamPosition:
        """The end of a cut as a position that survives the process; in one server's binlog never before ``start``."""
        place = cut.end
        if place == cut.start and start.open_gtid:
            return start
        delivered = start.delivered | self._names.gtids(
            (segment, piece, place.piece if number == place.segment else segment.complete)
            for number, segment, piece, _, _ in self._walk(cut.start, place)
        )
        holder = self._at(place.segment)
        ended = replace(start, delivered=delivered, open_gtid="", events_done=0)
        if holder is None:
            return ended.moved_to(self.newest)
        if place.event > holder.first[place.piece]:
            at = holder.at(int(holder.positions[place.event - 1]))
            return replace(
                ended,
                open_gtid=self._names.gtid(holder, place.piece),
                events_done=holder.rows_of_piece_before(place.piece, place.event),
            ).moved_to(at)
        return ended.moved_to(holder.at(int(holder.pos[place.piece])))
