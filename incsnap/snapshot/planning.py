"""Which chunks the next batch reads. A generator that asks the server for borders and plans windows into the draft.

In order: ranges to read again, then new ranges of the tables being read, then the next table of the queue. A next
table is begun while the last windows of the former are still in flight, so the pipeline never runs dry between
tables.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from incsnap.gtid import GtidSet
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.context import Range, Scan
from incsnap.snapshot.draft import Draft
from incsnap.snapshot.failures import back_off_ms
from incsnap.snapshot.keys import Key
from incsnap.snapshot.questions import (
    Answer,
    Describe,
    Described,
    Failed,
    MaximumKey,
    NextBoundary,
    Question,
    Refused,
)
from incsnap.snapshot.sizing import Limits

#: Tables open at once: more than one only while earlier ones wait for their last windows.
MAX_SCANS = 8
#: Tables begun in one batch: each costs two questions, and the stream's batch waits for the answers.
MAX_OPENED = 16

Asking = Generator[Question, Answer, bool]


def plan_chunks(draft: Draft, limits: Limits, fence: GtidSet) -> Generator[Question, Answer, None]:
    """Plans at most ``limits.parallelism`` chunks into ``draft``; ``fence`` is the low fence of this batch."""
    opened = 0
    for number in list(draft.scans):
        yield from _plan_scan(draft, number, limits, fence)
    while draft.queue and _room(draft, limits) and len(draft.scans) < MAX_SCANS and opened < MAX_OPENED:
        if not all(scan.wholly_planned for scan in draft.scans.values()):
            return
        opened += 1
        scan = draft.open(draft.queue.pop(0), limits.start_rows)
        yield from _plan_scan(draft, scan.number, limits, fence)


def _room(draft: Draft, limits: Limits) -> int:
    if draft.cuts >= limits.cuts:
        return 0
    in_flight = len(draft.held) + len(draft.planned)
    return min(limits.parallelism - len(draft.planned), limits.windows - in_flight)


def _plan_scan(draft: Draft, number: int, limits: Limits, fence: GtidSet) -> Asking:
    return (
        _room(draft, limits) > 0
        and draft.scans[number].not_before_ms <= draft.now_ms
        and (yield from _described(draft, number, fence))
        and (yield from _bounded(draft, number, fence))
        and (yield from _plan_again(draft, number, limits))
        and (yield from _plan_new(draft, number, limits))
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


def _plan_again(draft: Draft, number: int, limits: Limits) -> Asking:
    """Plans what is due of the ranges to read again; halves those that are to be halved."""
    for missed in draft.scans[number].again:
        if _room(draft, limits) <= 0:
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
        draft.scans[number] = scan = replace(scan, again=(*scan.again[:at], *rest, *scan.again[at + 1 :]))
        draft.plan(scan, first.lower, first.upper, first.rows, first.attempt, first.faults)
    return True


def _halves(draft: Draft, number: int, whole: Range) -> Generator[Question, Answer, list[Range]]:
    """``whole`` cut at a key near its middle; one range of one row when there is none to cut at; [] when unanswered.

    A range cut for one row is asked too: a row may have been inserted into it, and must not go down with its neighbour.
    """
    scan = draft.scans[number]
    rows = max(2, whole.rows)
    while rows > 1:
        rows //= 2
        answer = yield NextBoundary(scan.table, scan.columns, scan.index, whole.lower, whole.upper, rows)
        if isinstance(answer, tuple) and answer != whole.upper:
            return [Range(whole.lower, answer, rows), Range(answer, whole.upper, max(1, whole.rows - rows))]
        if isinstance(answer, (Failed, Refused, Described)):
            _postponed(draft, number, answer)
            return []
    return [whole if whole.rows == 1 else Range(whole.lower, whole.upper, 1)]


def _plan_new(draft: Draft, number: int, limits: Limits) -> Asking:
    """Plans ranges that were never read, up to the maximum key; none while many wait to be read again."""
    scan = draft.scans[number]
    while _room(draft, limits) > 0 and not scan.wholly_planned and len(scan.again) < limits.windows:
        maximum: Key | None = scan.maximum
        assert maximum is not None
        answer = yield NextBoundary(scan.table, scan.columns, scan.index, scan.boundary, maximum, scan.chunk_rows)
        if answer is not None and not isinstance(answer, tuple):
            return _postponed(draft, number, answer)
        draft.cuts += answer is not None
        upper = maximum if answer is None else answer
        draft.plan(scan, scan.boundary, upper, scan.chunk_rows)
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
