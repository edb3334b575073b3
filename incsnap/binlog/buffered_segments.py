"""The segments that are held in memory, in the stream's order; each keeps the number that it came with."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from incsnap.binlog.buffer_position import BufferPlace
from incsnap.binlog.segments import IS_ROWS, Segment, Stretch


class BufferedSegments:
    """``first``: the number of the oldest one. The stream's first segment has the number 0."""

    def __init__(self) -> None:
        self._segments: deque[Segment] = deque()
        self.first = 0

    @property
    def end(self) -> int:
        """The number that the next segment will have."""
        return self.first + len(self._segments)

    def append(self, segment: Segment) -> None:
        self._segments.append(segment)

    def at(self, number: int) -> Segment | None:
        """None where it is not held: any more, or yet."""
        index = number - self.first
        return self._segments[index] if 0 <= index < len(self._segments) else None

    def drop_first(self) -> Segment:
        self.first += 1
        return self._segments.popleft()

    def cost_from(self, number: int) -> int:
        """Bytes of memory of the segments from that one on."""
        return sum(segment.cost for nth, segment in enumerate(self._segments, self.first) if nth >= number)

    def is_before(self, number: int, place: BufferPlace) -> bool:
        """Is that segment held, and all of it before the place?"""
        segment = self.at(number)
        return segment is not None and (
            number < place.segment or (number == place.segment and 0 < len(segment.kinds) == place.event)
        )

    def is_spent(self, number: int, place: BufferPlace) -> bool:
        """Is nothing of that segment left behind the place that a batch could end at? Table maps at its end, whose rows
        are still to come, are nothing."""
        segment = self.at(number)
        return self.is_before(number, place) or (
            segment is not None
            and number == place.segment
            and place.fragment >= segment.complete
            and not IS_ROWS[segment.kinds[place.event :]].any()
        )

    def resolved(self, place: BufferPlace) -> BufferPlace:
        """The place as it is among these: a forgotten segment's is the beginning of what is left."""
        return place if place.segment >= self.first else BufferPlace(self.first, 0, 0)

    def walk(self, start: BufferPlace, end: BufferPlace | None = None) -> Iterator[Stretch]:
        """What lies between the places, segment by segment; up to the newest segment without ``end``."""
        number, fragment, event = self.resolved(start)
        while (segment := self.at(number)) is not None and (end is None or number <= end.segment):
            last = end.event if end is not None and number == end.segment else len(segment.kinds)
            yield Stretch(number, segment, fragment, event, last)
            number, fragment, event = number + 1, 0, 0

    # -- a transaction that is open at the end

    def begin_of_open(self) -> BufferPlace:
        """Where the transaction begins that the last segment leaves open, or where what is held of it begins; the end
        where none is open."""
        begin = BufferPlace(self.end, 0, 0)
        for number in range(self.end - 1, self.first - 1, -1):
            segment = self._segments[number - self.first]
            if not segment.open:
                break
            last = segment.fragments - 1
            begin = BufferPlace(number, last, int(segment.first[last]))
            if last or not segment.continues:
                break
        return begin

    def drop_open(self) -> None:
        """Drops what is held of that transaction; the last segment leaves nothing open then."""
        begin = self.begin_of_open()
        divided = self.at(begin.segment) if begin.fragment else None
        while self.end > begin.segment:
            self._segments.pop()
        if divided is not None:
            self._segments.append(divided.without_open())
