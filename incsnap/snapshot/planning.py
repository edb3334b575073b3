"""Which chunks the next batch reads. A generator that asks the server for borders and plans windows into the state.

In order: ranges to read again, then new ranges of the tables being read, then the next table of the queue. A next
table is begun while the last windows of the former are still in flight, so the readers never run dry between
tables. Small tables are one chunk each, of which many are planned together: what a batch costs is then shared by
hundreds of tables.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from incsnap.gtid import GtidSet
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.context import Range, Request, Scan
from incsnap.snapshot.failures import LOST_BEFORE_ALONE, back_off_ms
from incsnap.snapshot.keys import Key
from incsnap.snapshot.next_context import NextContext
from incsnap.snapshot.questions import (
    Answer,
    Describe,
    Failed,
    KeyOrder,
    LookAhead,
    MaximumKey,
    NotYet,
    Opened,
    Question,
    Refused,
)
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import Window

#: Tables open at once: more than one only while earlier ones wait for their last windows. Small ones come on top.
MAX_SCANS = 8
#: Tables begun in one batch: each costs three questions, and the stream's batch waits for the answers. Or as many as
#: there may be windows of small ones, whose questions are answered together.
MAX_OPENED = 16

Asking = Generator[Question, Answer, bool]
"""A step of planning a table: False where nothing more can be planned of it now."""


def plan_chunks(state: NextContext, limits: Limits, low_watermark: GtidSet) -> Generator[Question, Answer, None]:
    """Plans at most ``limits.parallelism`` chunks into ``state``, and those of small tables. ``low_watermark``: of this
    batch. Nothing is asked while the throttle allows no chunk."""
    if not state.limits.may_plan(state.now_ms):
        return
    room = _Room.of(state, limits)
    yield from _look_ahead(state, _undescribed(state), limits, low_watermark)
    for number in list(state.scans):
        yield from _plan_scan(state, number, limits, room, low_watermark)
    if all(scan.wholly_planned or _is_passed_by(state, scan) for scan in state.scans.values()):
        yield from _begin_tables(state, limits, room, low_watermark)


def _begin_tables(
    state: NextContext, limits: Limits, room: _Room, low_watermark: GtidSet
) -> Generator[Question, Answer, None]:
    """Begin tables of the queue, the next one only where the one before is wholly planned, or has ended (it is empty,
    or refused), or is passed by."""
    yield from _look_ahead(state, state.queue[: max(0, room.small)], limits, low_watermark)
    for _ in range(max(MAX_OPENED, limits.small_windows)):
        too_many = len(state.scans) >= MAX_SCANS + limits.small_windows
        if not state.queue or too_many or not room.for_another_table(state):
            return
        opened = state.open(state.queue.pop(0), limits.start_rows)
        yield from _plan_scan(state, opened.number, limits, room, low_watermark)
        scan = state.scans.get(opened.number)
        if scan is not None and not scan.wholly_planned and not _is_passed_by(state, scan):
            return


def _is_passed_by(state: NextContext, scan: Scan) -> bool:
    """Whether tables behind this one need not wait for it: somebody has locked it, or its chunks cannot be read now.
    The engine comes back to it."""
    return scan.attempt > 0 or scan.not_before_ms > state.now_ms


@dataclass(slots=True)
class _Room:
    """How many chunks this batch may still plan. Those that are whole tables of at most ``small_rows`` rows are counted
    by themselves."""

    limits: Limits
    large: int
    small: int

    @classmethod
    def of(cls, state: NextContext, limits: Limits) -> _Room:
        small = sum(_is_small(state.scans[window.scan], window, limits) for window in state.held)
        large = min(limits.parallelism, limits.windows - (len(state.held) - small))
        return cls(limits, large, limits.small_windows - small)

    @property
    def for_any(self) -> bool:
        return self.large > 0 or self.small > 0

    def for_chunk(self, state: NextContext, *, small: bool = False) -> bool:
        """Whether another chunk may be planned. ``small``: it is a whole small table."""
        left = self.small if small else self.large
        return left > 0 and state.cuts < self.limits.cuts and state.limits.may_plan(state.now_ms)

    def for_another_table(self, state: NextContext) -> bool:
        """Whether there is room for a table whose size is not known. Where small ones are counted apart, it is taken
        for one."""
        return self.for_chunk(state, small=self.limits.small_rows > 0)

    def take(self, *, small: bool = False) -> None:
        """Count a chunk that was planned."""
        if small:
            self.small -= 1
        else:
            self.large -= 1


def _is_small(scan: Scan, span: Range | Window, limits: Limits) -> bool:
    """Whether it is the whole of a small table. A few rows of a large one are not: their chunks may take as long as
    others, and hundreds of them would wait for a reader."""
    return span.rows <= limits.small_rows and scan.is_whole(span)


def _undescribed(state: NextContext) -> list[Request]:
    """What is described anew behind a DDL, or for the first time because it could not be before. Not what was in the
    way: all others would be asked about in vain."""
    return [scan.request for scan in state.scans.values() if not (scan.described or scan.attempt)]


def _look_ahead(
    state: NextContext, requests: Sequence[Request], limits: Limits, low_watermark: GtidSet
) -> Generator[Question, Answer, None]:
    """Names the tables that are about to be asked about, where they may be many: none that wait for another one, whose
    lock or length would have all of them asked about in each batch."""
    requests = requests[: limits.small_windows]
    if len(requests) > 1:
        yield LookAhead(tuple(request.collection for request in requests), limits.small_rows, low_watermark)


def _plan_scan(
    state: NextContext, number: int, limits: Limits, room: _Room, low_watermark: GtidSet
) -> Generator[Question, Answer, None]:
    """Plans as many chunks of a table as there is room for. A step that says no has ended the table, postponed it, or
    found no room; then the steps behind it have nothing to do."""
    if not room.for_any or state.scans[number].not_before_ms > state.now_ms:
        return
    if not (yield from _described(state, number, low_watermark)):
        return
    if not (yield from _bounded(state, number, low_watermark)):
        return
    if not (yield from _plan_again(state, number, limits, room)):
        return
    if (yield from _plan_small(state, number, limits, room)):
        yield from _plan_new(state, number, limits, room)


def _described(state: NextContext, number: int, low_watermark: GtidSet) -> Asking:
    """Learn the ordering columns: at the table's beginning, after a DDL, and when a chunk met other ones.

    A table whose order, identity or record key has changed begins again.
    """
    scan = state.scans[number]
    if scan.described:
        return True
    if not (yield from _opened(state, number)):
        return False
    collection = scan.request.collection
    asked = _asked(state, number)
    answer = yield Describe(collection.table, collection.surrogate, collection.condition, low_watermark, asked)
    if isinstance(answer, Refused):
        state.end(scan, answer.status, answer.reason)
        return False
    if not isinstance(answer, KeyOrder):
        return _postponed(state, number, answer)
    if scan.fingerprint not in ("", answer.fingerprint) and not state.begin_again(number, "its key has changed"):
        return False
    state.scans[number] = replace(
        state.scans[number],
        columns=answer.columns,
        index=answer.index,
        descending=answer.descending,
        fingerprint=answer.fingerprint,
        described=True,
        attempt=0,
        asked=0,
    )
    return True


def _asked(state: NextContext, number: int) -> int:
    """Return the batch that was the first to ask what is about to be asked about the table: this one, or an earlier one
    that has not been answered."""
    scan = state.scans[number]
    if not scan.asked:
        state.scans[number] = replace(scan, asked=state.batch)
    return state.scans[number].asked


def _bounded(state: NextContext, number: int, low_watermark: GtidSet) -> Asking:
    """Learns the maximum key, once. Rows inserted above it later come by the log."""
    scan = state.scans[number]
    if scan.maximum is not None:
        return True
    if not (yield from _opened(state, number)):
        return False
    asked = _asked(state, number)
    answer = yield MaximumKey(scan.table, scan.columns, scan.index, low_watermark, scan.descending, asked)
    if answer is None:
        state.end(scan, notes.EMPTY)
        return False
    if not isinstance(answer, tuple):
        return _postponed(state, number, answer)
    state.scans[number] = replace(scan, maximum=answer, attempt=0, asked=0)
    return True


def _plan_again(state: NextContext, number: int, limits: Limits, room: _Room) -> Asking:
    """Plan what is due of the ranges to read again; halve those that are to be halved. False where the table must
    wait."""
    for missed in state.scans[number].again:
        if not room.for_chunk(state, small=_is_small(state.scans[number], missed, limits)):
            return False
        if missed.not_before_ms > state.now_ms:
            continue
        halves = [missed]
        if missed.split:
            if not (yield from _opened(state, number)):
                return False
            halves = yield from _halves(state, number, missed)
            if not halves:
                return False
        scan = state.scans[number]
        first, *rest = halves
        place = scan.again.index(missed)
        small = _is_small(scan, first, limits)
        fits = room.for_chunk(state, small=small)  # a half may be counted otherwise than the whole
        unplanned = rest if fits else halves
        state.scans[number] = scan = replace(scan, again=(*scan.again[:place], *unplanned, *scan.again[place + 1 :]))
        if not fits:
            return False
        room.take(small=small)
        state.plan(scan, first)
    return True


def _halves(state: NextContext, number: int, whole: Range) -> Generator[Question, Answer, list[Range]]:
    """``whole`` cut at a key near its middle; one range of one row when there is none to cut at; [] when unanswered.

    A range cut for one row is asked too: a row may have been inserted into it, and must not go down with its neighbour.
    """
    scan = state.scans[number]
    lost = min(whole.lost, LOST_BEFORE_ALONE)
    rows = max(2, whole.rows)
    while rows > 1:
        rows //= 2
        answer = yield scan.border(whole.lower, whole.upper, rows)
        if isinstance(answer, tuple) and answer != whole.upper:
            upper_rows = max(1, whole.rows - rows)
            return [Range(whole.lower, answer, rows, lost=lost), Range(answer, whole.upper, upper_rows, lost=lost)]
        if isinstance(answer, (Failed, Refused, KeyOrder, NotYet)):
            _postponed(state, number, answer)
            return []
    return [whole if whole.rows == 1 else Range(whole.lower, whole.upper, 1, lost=lost)]


def _plan_small(state: NextContext, number: int, limits: Limits, room: _Room) -> Asking:
    """Plan a table that has not been begun in one chunk, if it has few rows. False where the table must wait."""
    scan = state.scans[number]
    rows = state.limits.chunk_rows(min(limits.small_rows, scan.chunk_rows))
    if scan.boundary is not None or scan.maximum is None or not rows:
        return True
    if not room.for_chunk(state, small=True):
        # Its first chunk may be all of it, and would have to be counted among the small ones.
        return scan.chunk_rows > limits.small_rows
    if not (yield from _opened(state, number)):
        return False
    answer = yield scan.border(None, scan.maximum, rows)
    if answer in (None, scan.maximum):
        room.take(small=True)
        state.plan(scan, Range(None, scan.maximum, rows))
        state.scans[number] = replace(scan, boundary=scan.maximum, attempt=0)
    elif not isinstance(answer, tuple):
        return _postponed(state, number, answer)
    elif rows == state.limits.chunk_rows(scan.chunk_rows) and room.for_chunk(state):
        # The border of the first chunk as well. Asked for again, an answer that comes late would never be had by both.
        room.take()
        state.cuts += 1
        state.plan(scan, Range(None, answer, rows))
        state.scans[number] = replace(scan, boundary=answer, attempt=0)
    return True


def _plan_new(state: NextContext, number: int, limits: Limits, room: _Room) -> Generator[Question, Answer, None]:
    """Plan ranges that were never read, up to the maximum key; none while many wait to be read again, nor while the end
    of the next is being looked for. Until a chunk of the table was read, there are few in flight: nobody knows yet how
    long they take, and all would be as much too large."""
    scan = state.scans[number]
    rows = state.limits.chunk_rows(scan.chunk_rows)
    flying = sum(window.scan == number for window in state.held)
    while room.for_chunk(state) and not scan.wholly_planned and len(scan.again) < limits.windows:
        if not scan.times and flying >= limits.first_windows:
            return
        flying += 1
        maximum: Key | None = scan.maximum
        assert maximum is not None
        # Nor does a batch wait a second time for what could not be answered at once.
        beside = rows > limits.boundary_rows or scan.attempt > 0
        answer = yield scan.border(scan.boundary, maximum, rows, beside=beside)
        if isinstance(answer, NotYet):
            return
        if answer is not None and not isinstance(answer, tuple):
            _postponed(state, number, answer)
            return
        state.cuts += answer is not None and not beside
        upper = maximum if answer is None else answer
        room.take()
        state.plan(scan, Range(scan.boundary, upper, rows))
        scan = state.scans[number] = replace(scan, boundary=upper, attempt=0)


def _opened(state: NextContext, number: int) -> Asking:
    """A table that was in the way once may still be locked: that is found out beside the stream."""
    scan = state.scans[number]
    if not scan.attempt:
        return True
    answer = yield Opened(scan.table)
    return answer is None or _postponed(state, number, answer)


def _postponed(state: NextContext, number: int, answer: Answer) -> bool:
    """Let the scan wait for an answer that is being looked for, or ask again later what had no usable answer; end it
    when asking again will not help."""
    if isinstance(answer, NotYet):
        return False
    scan: Scan = state.scans[number]
    message = answer.message if isinstance(answer, Failed) else f"unexpected answer {answer!r}"
    if isinstance(answer, Failed) and answer.permanent:
        state.end(scan, notes.SQL_EXCEPTION, message)
        return False
    attempt = scan.attempt + 1
    state.warn(f"{scan.table}: no chunks planned now, asked {attempt} times: {message}", scan.request.signal)
    state.scans[number] = replace(scan, attempt=attempt, not_before_ms=state.now_ms + back_off_ms(attempt))
    return False
