"""The queue of segments in memory, in the order of the stream. Each segment has a number, and keeps it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from incsnap.binlog.buffer_position import BufferPlace
from incsnap.binlog.segments import IS_ROWS, Segment, Stretch


class BufferedSegments:
    """The segments in memory.

    `first` is the number of the oldest one. The first segment of the stream has the number 0.
    """

    def __init__(self) -> None:
        self._segments: deque[Segment] = deque()
        self.first = 0

    @property
    def end(self) -> int:
        """Return the number that the next segment will have."""
        return self.first + len(self._segments)

    def append(self, segment: Segment) -> None:
        """Append a segment."""
        self._segments.append(segment)

    def at(self, number: int) -> Segment | None:
        """Return the segment `number`, or None if it was dropped or has not come yet."""
        index = number - self.first
        return self._segments[index] if 0 <= index < len(self._segments) else None

    def drop_first(self) -> Segment:
        """Drop the oldest segment and return it."""
        self.first += 1
        return self._segments.popleft()

    def cost_from(self, number: int) -> int:
        """Return the bytes of memory of the segments from `number` on."""
        return sum(segment.cost for nth, segment in enumerate(self._segments, self.first) if nth >= number)

    def is_before(self, number: int, place: BufferPlace) -> bool:
        """Return True if the queue holds the segment `number` and all of the segment lies before `place`."""
        segment = self.at(number)
        return segment is not None and (
            number < place.segment or (number == place.segment and 0 < len(segment.kinds) == place.event)
        )

    def is_spent(self, number: int, place: BufferPlace) -> bool:
        """Return True if a batch that ends at `place` has used up the segment `number`: no later batch can end in it.

        A spent segment may still have table maps after `place`. Their rows events are in a later segment.
        """
        segment = self.at(number)
        return self.is_before(number, place) or (
            segment is not None
            and number == place.segment
            and place.fragment >= segment.complete
            and not IS_ROWS[segment.kinds[place.event :]].any()
        )

    def resolved(self, place: BufferPlace) -> BufferPlace:
        """Return `place`, or the beginning of the oldest segment if the segment of `place` was dropped."""
        return place if place.segment >= self.first else BufferPlace(self.first, 0, 0)

    def walk(self, start: BufferPlace, end: BufferPlace | None = None) -> Iterator[Stretch]:
        """Yield the stretch of each segment between the places. Without `end`, walk to the newest segment."""
        number, fragment, event = self.resolved(start)
        while (segment := self.at(number)) is not None and (end is None or number <= end.segment):
            last = end.event if end is not None and number == end.segment else len(segment.kinds)
            yield Stretch(number, segment, fragment, event, last)
            number, fragment, event = number + 1, 0, 0

    # -- a transaction that is open at the end

    def begin_of_open(self) -> BufferPlace:
        """Return the place where the open transaction begins, or where its part in memory begins.

        Return the end of the queue if no transaction is open.
        """
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
        """Drop the part in memory of the open transaction. The last segment then leaves no transaction open."""
        begin = self.begin_of_open()
        divided = self.at(begin.segment) if begin.fragment else None
        while self.end > begin.segment:
            self._segments.pop()
        if divided is not None:
            self._segments.append(divided.without_open())
