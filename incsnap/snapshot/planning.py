"""Which chunks the next batch reads. A generator that asks the server for borders and plans windows into the draft.

In order: ranges to read again, then new ranges of the tables being read, then the next table of the queue. A next
table is begun while the last windows of the former are still in flight, so the pipeline never runs dry between
tables. Small tables are one chunk each, of which many are planned together: what a batch costs is then shared by
hundreds of tables.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

from incsnap.gtid import GtidSet
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.context import Range, Scan
from incsnap.snapshot.draft import Draft
from incsnap.snapshot.failures import LOST_BEFORE_ALONE, back_off_ms
from incsnap.snapshot.keys import Key
from incsnap.snapshot.questions import (
    Answer,
    Describe,
    Described,
    Failed,
    LookAhead,
    MaximumKey,
    NextBoundary,
    Question,
    Refused,
)
from incsnap.snapshot.sizing import Limits

#: Tables open at once: more than one only while earlier ones wait for their last windows. Small ones come on top.
MAX_SCANS = 8
#: Tables begun in one batch: each costs three questions, and the stream's batch waits for the answers. Or as many as
#: there may be windows of small ones, whose questions are answered together.
MAX_OPENED = 16

Asking = Generator[Question, Answer, bool]


def plan_chunks(draft: Draft, limits: Limits, fence: GtidSet) -> Generator[Question, Answer, None]:
    """Plans at most ``limits.parallelism`` chunks into ``draft``, and those of small tables; ``fence`` is the low fence
    of this batch."""
    room = _Room.of(draft, limits)
    yield from _look_ahead(draft, limits, room, fence)
    for number in list(draft.scans):
        yield from _plan_scan(draft, number, limits, room, fence)
    if not all(scan.wholly_planned for scan in draft.scans.values()):
        return
    opened, most = 0, max(MAX_OPENED, limits.small_windows)
    while draft.queue and room.for_another_table(draft) and opened < most:
        if len(draft.scans) >= MAX_SCANS + limits.small_windows:
            return
        opened += 1
        scan = draft.open(draft.queue.pop(0), limits.start_rows)
        yield from _plan_scan(draft, scan.number, limits, room, fence)
        if scan.number in draft.scans and not draft.scans[scan.number].wholly_planned:
            return


@dataclass(slots=True)
class _Room:
    """For chunks in this batch; those of at most ``small_rows`` rows are counted by themselves."""

    limits: Limits
    large: int
    small: int

    @classmethod
    def of(cls, draft: Draft, limits: Limits) -> _Room:
        small = sum(window.rows <= limits.small_rows for window in draft.held)
        large = min(limits.parallelism, limits.windows - (len(draft.held) - small))
        return cls(limits, large, limits.small_windows - small)

    def for_chunk(self, draft: Draft, rows: int) -> bool:
        left = self.small if rows <= self.limits.small_rows else self.large
        return left > 0 and draft.cuts < self.limits.cuts

    def for_another_table(self, draft: Draft) -> bool:
        """Where small tables are told apart, each next one is taken for one."""
        return self.for_chunk(draft, self.limits.small_rows or self.limits.start_rows)

    def take(self, rows: int) -> None:
        if rows <= self.limits.small_rows:
            self.small -= 1
        else:
            self.large -= 1


def _look_ahead(draft: Draft, limits: Limits, room: _Room, fence: GtidSet) -> Generator[Question, Answer, None]:
    """Names the tables that are about to be asked about, where they may be many."""
    known = [scan for scan in draft.scans.values() if not scan.described and scan.not_before_ms <= draft.now_ms]
    next_ = draft.queue[: max(0, room.small)]
    requests = [*(scan.request for scan in known), *next_][: limits.small_windows]
    if len(requests) > 1:
        yield LookAhead(tuple(request.collection for request in requests), limits.small_rows, fence)


def _plan_scan(draft: Draft, number: int, limits: Limits, room: _Room, fence: GtidSet) -> Asking:
    return (
        (room.large > 0 or room.small > 0)
        and draft.scans[number].not_before_ms <= draft.now_ms
        and (yield from _described(draft, number, fence))
        and (yield from _bounded(draft, number, fence))
        and (yield from _plan_again(draft, number, room))
        and (yield from _plan_small(draft, number, limits, room))
        and (yield from _plan_new(draft, number, limits, room))
    )


def _described(draft: Draft, number: int, fence: GtidSet) -> Asking:
    """Learns the ordering columns: at the table's beginning, after a DDL, and when a chunk met other ones.

    A table whose key changed begins again.
    """
    scan = draft.scans[number]
    if scan.described:
        return True
    wanted = scan.request.collection
    answer = yield Describe(wanted.table, wanted.surrogate, wanted.condition, fence)
    if isinstance(answer, Refused):
        draft.end(scan, answer.status, answer.reason)
        return False
    if not isinstance(answer, Described):
        return _postponed(draft, number, answer)
    if scan.fingerprint not in ("", answer.fingerprint):
        draft.warn(f"{scan.table}: its key has changed; the table is read from its beginning")
        draft.drop_windows(number)
        scan = replace(scan, maximum=None, boundary=None, again=())
    draft.scans[number] = replace(
        scan,
        columns=answer.columns,
        index=answer.index,
        fingerprint=answer.fingerprint,
        described=True,
        attempt=0,
    )
    return True


def _bounded(draft: Draft, number: int, fence: GtidSet) -> Asking:
    """Learns the maximum key, once. Rows inserted above it later come by the log."""
    scan = draft.scans[number]
    if scan.maximum is not None:
        return True
    answer = yield MaximumKey(scan.table, scan.columns, scan.index, fence)
    if answer is None:
        draft.end(scan, notes.EMPTY)
        return False
    if not isinstance(answer, tuple):
        return _postponed(draft, number, answer)
    draft.scans[number] = replace(scan, maximum=answer, attempt=0)
    return True


def _plan_again(draft: Draft, number: int, room: _Room) -> Asking:
    """Plans what is due of the ranges to read again; halves those that are to be halved."""
    for missed in draft.scans[number].again:
        if not room.for_chunk(draft, missed.rows):
            return False
        if missed.not_before_ms > draft.now_ms:
            continue
        halves = [missed]
        if missed.split:
            halves = yield from _halves(draft, number, missed)
            if not halves:
                return False
        scan = draft.scans[number]
        first, *rest = halves
        at = scan.again.index(missed)
        fits = room.for_chunk(draft, first.rows)  # a half may be a small one
        left = rest if fits else halves
        draft.scans[number] = scan = replace(scan, again=(*scan.again[:at], *left, *scan.again[at + 1 :]))
        if not fits:
            return False
        room.take(first.rows)
        draft.plan(scan, first)
    return True


def _halves(draft: Draft, number: int, whole: Range) -> Generator[Question, Answer, list[Range]]:
    """``whole`` cut at a key near its middle; one range of one row when there is none to cut at; [] when unanswered.

    A range cut for one row is asked too: a row may have been inserted into it, and must not go down with its neighbour.
    """
    scan = draft.scans[number]
    lost = min(whole.lost, LOST_BEFORE_ALONE)
    rows = max(2, whole.rows)
    while rows > 1:
        rows //= 2
        answer = yield NextBoundary(scan.table, scan.columns, scan.index, whole.lower, whole.upper, rows)
        if isinstance(answer, tuple) and answer != whole.upper:
            more = max(1, whole.rows - rows)
            return [Range(whole.lower, answer, rows, lost=lost), Range(answer, whole.upper, more, lost=lost)]
        if isinstance(answer, (Failed, Refused, Described)):
            _postponed(draft, number, answer)
            return []
    return [whole if whole.rows == 1 else Range(whole.lower, whole.upper, 1, lost=lost)]


def _plan_small(draft: Draft, number: int, limits: Limits, room: _Room) -> Asking:
    """Plans a table that has not been begun in one chunk, if it has few rows."""
    scan = draft.scans[number]
    rows = min(limits.small_rows, scan.chunk_rows)
    if scan.boundary is not None or scan.maximum is None or not rows or not room.for_chunk(draft, rows):
        return True
    answer = yield NextBoundary(scan.table, scan.columns, scan.index, None, scan.maximum, rows)
    if answer is None:
        room.take(rows)
        draft.plan(scan, Range(None, scan.maximum, rows))
        draft.scans[number] = replace(scan, boundary=scan.maximum, attempt=0)
    elif not isinstance(answer, tuple):
        return _postponed(draft, number, answer)
    return True


def _plan_new(draft: Draft, number: int, limits: Limits, room: _Room) -> Asking:
    """Plans ranges that were never read, up to the maximum key; none while many wait to be read again."""
    scan = draft.scans[number]
    while room.for_chunk(draft, scan.chunk_rows) and not scan.wholly_planned and len(scan.again) < limits.windows:
        maximum: Key | None = scan.maximum
        assert maximum is not None
        answer = yield NextBoundary(scan.table, scan.columns, scan.index, scan.boundary, maximum, scan.chunk_rows)
        if answer is not None and not isinstance(answer, tuple):
            return _postponed(draft, number, answer)
        draft.cuts += answer is not None
        upper = maximum if answer is None else answer
        room.take(scan.chunk_rows)
        draft.plan(scan, Range(scan.boundary, upper, scan.chunk_rows))
        scan = draft.scans[number] = replace(scan, boundary=upper, attempt=0)
    return scan.wholly_planned


def _postponed(draft: Draft, number: int, answer: Answer) -> bool:
    """No usable answer: the scan waits and asks again, or ends when asking again will not help."""
    scan: Scan = draft.scans[number]
    message = answer.message if isinstance(answer, Failed) else f"unexpected answer {answer!r}"
    if isinstance(answer, Failed) and answer.permanent:
        draft.end(scan, notes.SQL_EXCEPTION, message)
        return False
    attempt = scan.attempt + 1
    draft.warn(f"{scan.table}: no chunks planned now, asked {attempt} times: {message}")
    draft.scans[number] = replace(scan, attempt=attempt, not_before_ms=draft.now_ms + back_off_ms(attempt))
    return False
