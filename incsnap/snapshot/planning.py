"""The engine's `plan` step: it asks the server for boundaries of chunks and plans the chunks that are read next.

An example with `Limits()`: a signal asks for `shop.orders`, which has 6,000 rows with `id` 1 to 6,000. Batch 7 plans
two chunks of 2,500 rows. They are read quickly, so batch 8 asks for a chunk of 10,000 rows (`sizing`) and gets the rest
of the table.

    batch  question (shortened)                       answer                window, its keys
    7      Describe(shop.orders)                      KeyOrder(("id",))
    7      MaximumKey(shop.orders)                    ("6000",)
    7      NextBoundary(after=None, rows=2500)        ("2500",)             7-0: id <= 2500
    7      NextBoundary(after=("2500",), rows=2500)   ("5000",)             7-1: 2500 < id <= 5000
    8      NextBoundary(after=("5000",), rows=10000)  None: fewer are left  8-0: 5000 < id <= 6000

A batch first plans ranges that must be read again, then new ranges of tables being read, then tables from the queue. A
table may begin while the last windows of the previous one are in flight, so that the readers always have work. A small
table is one chunk. A batch plans many of them, so that hundreds of tables share the cost of a batch.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from incsnap.gtid import GtidSet
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.capacity import Capacity, is_small
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
from incsnap.tables import quote

#: Tables being read at once. More than one only while earlier tables wait for their last windows. Small tables come on
#: top.
MAX_SCANS = 8
#: Tables begun in one batch: each costs three questions, and the batch waits for the answers. The limit is
#: `Limits.small_windows` if that is higher, because questions about small tables are answered together.
MAX_OPENED = 16
#: Keys of a list that one SELECT finds. MySQL plans a range for each of them, in 230 bytes for each column. That is
#: up to 18 MB. https://dev.mysql.com/doc/refman/en/range-optimization.html#range-optimization-memory-use
MAX_LISTED = 5_000

#: A step of planning a table. It yields questions, receives their answers, and returns False if the steps after it must
#: be skipped.
Asking = Generator[Question, Answer, bool]


def plan_chunks(state: NextContext, limits: Limits, low_watermark: GtidSet) -> Generator[Question, Answer, None]:
    """Plan into `state` the chunks that are read next: at most `limits.parallelism`, and those of small tables.

    `low_watermark` is that of this batch. Ask nothing while the throttle allows no chunk.
    """
    if not state.limits.may_plan(state.now_ms):
        return
    capacity = Capacity.of(state, limits)
    yield from _look_ahead(_undescribed(state), limits, low_watermark)
    for number in list(state.scans):
        yield from _plan_scan(state, number, capacity, low_watermark)
    if all(scan.wholly_planned or _is_passed_by(state, scan) for scan in state.scans.values()):
        yield from _begin_tables(state, capacity, low_watermark)


def _begin_tables(state: NextContext, capacity: Capacity, low_watermark: GtidSet) -> Generator[Question, Answer, None]:
    """Begin tables of the queue, one after the other.

    The next table begins only if the one before is planned to its maximum, has ended (empty or refused), or is passed
    by.
    """
    yield from _look_ahead(state.queue[: max(0, capacity.small)], capacity.limits, low_watermark)
    for _ in range(max(MAX_OPENED, capacity.limits.small_windows)):
        too_many = len(state.scans) >= MAX_SCANS + capacity.limits.small_windows
        if not state.queue or too_many or not capacity.for_another_table(state):
            return
        opened = state.open(state.queue.pop(0), capacity.limits.start_rows)
        yield from _plan_scan(state, opened.number, capacity, low_watermark)
        scan = state.scans.get(opened.number)
        if scan is not None and not scan.wholly_planned and not _is_passed_by(state, scan):
            return


def _is_passed_by(state: NextContext, scan: Scan) -> bool:
    """Whether the next tables need not wait for this one.

    The table is locked or away, its chunks cannot be read now, or a question about it takes long. The engine comes back
    to it.
    """
    waits = scan.attempt > 0 or scan.not_before_ms > state.now_ms or scan.number in state.late
    return waits or scan.table.folded in state.away


def _undescribed(state: NextContext) -> list[Request]:
    """Return the tables being read that must be described, for the first time or again after a DDL.

    Leave out tables whose last question failed: a locked table would make the questions about all others useless.
    """
    waits = (scan for scan in state.scans.values() if not (scan.described or scan.attempt))
    return [scan.request for scan in waits if scan.table.folded not in state.away]


def _look_ahead(
    requests: Sequence[Request], limits: Limits, low_watermark: GtidSet
) -> Generator[Question, Answer, None]:
    """Announce the tables that the engine is about to ask about, if there are several (see `LookAhead`).

    `requests` must not hold tables that wait for another table. If that table is locked or long, every batch would ask
    about all of them.
    """
    requests = requests[: limits.small_windows]
    if len(requests) > 1:
        yield LookAhead(tuple(request.collection for request in requests), limits.small_rows, low_watermark)


def _plan_scan(
    state: NextContext, number: int, capacity: Capacity, low_watermark: GtidSet
) -> Generator[Question, Answer, None]:
    """Plan as many chunks of a table as the capacity allows.

    Each step returns False if it has ended the table, postponed it, or may plan no more. Then the next are skipped.
    """
    scan = state.scans[number]
    if not capacity.for_any or scan.not_before_ms > state.now_ms or scan.table.folded in state.away:
        return
    if not (yield from _described(state, number, low_watermark)):
        return
    if not (yield from _bounded(state, number, low_watermark)):
        return
    if not (yield from _plan_again(state, number, capacity)):
        return
    if (yield from _plan_small(state, number, capacity)):
        yield from _plan_new(state, number, capacity)


def _described(state: NextContext, number: int, low_watermark: GtidSet) -> Asking:
    """Ask for the ordering columns: at the table's beginning, after a DDL, and after a chunk found other columns.

    A table whose order, identity or record key has changed begins again. Return False if the table must wait or has
    ended.
    """
    scan = state.scans[number]
    if scan.described:
        return True
    if not (yield from _opened(state, number)):
        return False
    collection = scan.request.collection
    asked = _asked(state, number)
    answer = yield Describe(
        collection.table,
        collection.surrogate,
        collection.condition,
        low_watermark,
        asked,
        collection.chosen,
        scan.keys,
    )
    if isinstance(answer, Refused):
        state.end(scan, answer.status, answer.reason)
        return False
    if not isinstance(answer, KeyOrder):
        return _postponed(state, number, answer)
    if not scan.fingerprint and collection.surrogate and not answer.index:
        _warn_of_sorts(state, scan, answer)
    has_changed = scan.maximum is not None and scan.fingerprint not in ("", answer.fingerprint)
    if has_changed and not state.begin_again(number, "its key has changed"):
        return False
    state.scans[number] = replace(
        state.scans[number],
        columns=answer.columns,
        index=answer.index,
        descending=answer.descending,
        fingerprint=answer.fingerprint,
        is_identified=answer.is_identified,
        first=answer.first,
        last=answer.last,
        described=True,
        attempt=0,
        asked=0,
    )
    return not answer.keys or _listed(state, number, answer)


def _warn_of_sorts(state: NextContext, scan: Scan, order: KeyOrder) -> None:
    """Warn that no index has the order of the table's surrogate key. The table is read all the same."""
    columns, surrogate = ", ".join(map(quote, order.columns)), scan.request.collection.surrogate
    state.warn(
        f"{scan.table}: no index begins with {columns}, the order of its surrogate-key {surrogate},"
        f" so MySQL sorts the table for each chunk; CREATE INDEX ... ON {scan.table.sql} ({columns}) makes it faster",
        scan.request.signal,
    )


def _listed(state: NextContext, number: int, answer: KeyOrder) -> bool:
    """Note the list of keys that the table's rows are chosen by. Return False if the list is empty: the table ends.

    The list is in a file by now, so the offset needs the signal's keys no longer.
    """
    scan = state.scans[number]
    collection = replace(scan.request.collection, chosen=replace(scan.chosen, keys=""))
    state.scans[number] = scan = replace(
        scan,
        request=replace(scan.request, collection=collection),
        keys=answer.keys,
        maximum=(str(answer.count),),
        chunk_rows=min(scan.chunk_rows, MAX_LISTED),
    )
    if not answer.count:
        state.end(scan, notes.EMPTY)
    return answer.count > 0


def _border(
    scan: Scan, after: Key | None, upto: Key, rows: int, *, beside: bool = False
) -> Generator[Question, Answer, Answer]:
    """Return the end of a chunk of `rows` rows, as `NextBoundary` is answered. A list of keys needs no question."""
    if scan.keys:
        return scan.place_after(after, upto, rows)
    return (yield scan.border(after, upto, rows, beside=beside))


def _asked(state: NextContext, number: int) -> int:
    """Return the batch that was the first to ask the next question about the table.

    That is this batch, or an earlier one whose question has no answer yet.
    """
    scan = state.scans[number]
    if not scan.asked:
        state.scans[number] = replace(scan, asked=state.batch)
    return state.scans[number].asked


def _bounded(state: NextContext, number: int, low_watermark: GtidSet) -> Asking:
    """Ask for the table's maximum key, once.

    Rows above it come by the binlog. Return False if the table must wait or has ended.
    """
    scan = state.scans[number]
    if scan.maximum is not None:
        return True
    if not (yield from _opened(state, number)):
        return False
    asked = _asked(state, number)
    answer = yield MaximumKey(
        scan.table, scan.columns, scan.index, low_watermark, scan.descending, asked, scan.first, scan.last
    )
    if answer is None:
        state.end(scan, notes.EMPTY)
        return False
    if not isinstance(answer, tuple):
        return _postponed(state, number, answer)
    state.scans[number] = replace(scan, maximum=answer, attempt=0, asked=0)
    return True


def _plan_again(state: NextContext, number: int, capacity: Capacity) -> Asking:
    """Plan the ranges that are due to be read again, and halve those that must be halved.

    Return False if the table must wait.
    """
    for missed in state.scans[number].again:
        if not capacity.for_chunk(state, small=is_small(state.scans[number], missed, capacity.limits)):
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
        small = is_small(scan, first, capacity.limits)
        fits = capacity.for_chunk(state, small=small)  # the whole may be a small table, a half is not
        unplanned = rest if fits else halves
        state.scans[number] = scan = replace(scan, again=(*scan.again[:place], *unplanned, *scan.again[place + 1 :]))
        if not fits:
            return False
        capacity.take(small=small)
        state.plan(scan, first)
    return True


def _halves(state: NextContext, number: int, whole: Range) -> Generator[Question, Answer, list[Range]]:
    """Return the two halves of `whole`, cut at a key near its middle.

    Return `whole` as a range of one row if there is no key to cut at, and [] if the question was not answered. A range
    for one row is halved as well: a row may have been inserted into it, and must not be given up with its neighbour.
    """
    scan = state.scans[number]
    lost = min(whole.lost, LOST_BEFORE_ALONE)
    rows = max(2, whole.rows)
    while rows > 1:
        rows //= 2
        answer = yield from _border(scan, whole.lower, whole.upper, rows)
        if isinstance(answer, tuple) and answer != whole.upper:
            upper_rows = max(1, whole.rows - rows)
            return [Range(whole.lower, answer, rows, lost=lost), Range(answer, whole.upper, upper_rows, lost=lost)]
        if isinstance(answer, (Failed, Refused, KeyOrder, NotYet)):
            _postponed(state, number, answer)
            return []
    return [whole if whole.rows == 1 else Range(whole.lower, whole.upper, 1, lost=lost)]


def _plan_small(state: NextContext, number: int, capacity: Capacity) -> Asking:
    """Plan a table that has not begun as one chunk if it has few rows. Return False if the table must wait."""
    scan = state.scans[number]
    rows = state.limits.chunk_rows(_most_rows(scan, min(capacity.limits.small_rows, scan.chunk_rows)))
    if scan.boundary is not None or scan.maximum is None or not rows:
        return True
    if not capacity.for_chunk(state, small=True):
        # The first chunk may be the whole table, and would have to be counted among the small ones.
        return scan.chunk_rows > capacity.limits.small_rows
    if not (yield from _opened(state, number)):
        return False
    answer = yield from _border(scan, None, scan.maximum, rows)
    if answer in (None, scan.maximum):
        capacity.take(small=True)
        state.plan(scan, Range(None, scan.maximum, rows))
        state.scans[number] = replace(scan, boundary=scan.maximum, attempt=0)
    elif not isinstance(answer, tuple):
        return _postponed(state, number, answer)
    elif rows == state.limits.chunk_rows(scan.chunk_rows) and capacity.for_chunk(state):
        # This is also the boundary of the first chunk. The search gives a late answer only once, so do not ask for it
        # again.
        capacity.take()
        state.cuts += 1
        state.plan(scan, Range(None, answer, rows))
        state.scans[number] = replace(scan, boundary=answer, attempt=0)
    return True


def _plan_new(state: NextContext, number: int, capacity: Capacity) -> Generator[Question, Answer, None]:
    """Plan ranges that were never read, up to the maximum key.

    Plan none while many ranges wait to be read again, or while the planner looks for the next boundary. Before the
    first chunk of a table is read, only `limits.first_windows` are in flight: the time of a chunk is unknown, and all
    of them could be too large.
    """
    scan = state.scans[number]
    rows = state.limits.chunk_rows(_most_rows(scan, scan.chunk_rows))
    flying = sum(window.scan == number for window in state.held)
    while capacity.for_chunk(state) and not scan.wholly_planned and len(scan.again) < capacity.limits.windows:
        if not scan.times and flying >= capacity.limits.first_windows:
            return
        flying += 1
        maximum: Key | None = scan.maximum
        assert maximum is not None
        # A batch does not wait a second time for a question that could not be answered at once.
        beside = rows > capacity.limits.boundary_rows or scan.attempt > 0
        answer = yield from _border(scan, scan.boundary, maximum, rows, beside=beside)
        if answer is not None and not isinstance(answer, tuple):
            _postponed(state, number, answer)
            return
        state.cuts += answer is not None and not beside and not scan.keys
        upper = maximum if answer is None else answer
        capacity.take()
        state.plan(scan, Range(scan.boundary, upper, rows))
        scan = state.scans[number] = replace(scan, boundary=upper, attempt=0)


def _most_rows(scan: Scan, rows: int) -> int:
    """Return `rows`, or fewer if a SELECT could not find so many keys of a list."""
    return min(rows, MAX_LISTED) if scan.keys else rows


def _opened(state: NextContext, number: int) -> Asking:
    """Return True if the table can be read, as far as is known. If its last question failed, ask `Opened` first."""
    scan = state.scans[number]
    if not scan.attempt:
        return True
    answer = yield Opened(scan.table)
    return answer is None or _postponed(state, number, answer)


def _postponed(state: NextContext, number: int, answer: Answer) -> bool:
    """Let the table wait after an unusable answer, or end it if it is useless to ask again. Return False.

    After `NotYet` the engine asks again with the next batch. After another answer it waits longer each time
    (`back_off_ms`).
    """
    if isinstance(answer, NotYet):
        if answer.is_late:
            state.late.add(number)
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
