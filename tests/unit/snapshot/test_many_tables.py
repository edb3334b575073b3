"""Tests of many tables.

A small table is one window, and a batch plans many of them; large tables keep their own limits.
"""

from __future__ import annotations

from incsnap.snapshot.commands import Stop
from incsnap.snapshot.questions import (
    Answer,
    Describe,
    Failed,
    LookAhead,
    MaximumKey,
    NextBoundary,
    NotYet,
    Opened,
    Question,
)
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import ChunkResult, Window
from incsnap.tables import TableId
from tests.support.snapshots import A, B, Snapshots, alter, execute, key

LIMITS = Limits(parallelism=2, windows=4, start_rows=10, max_rows=10, small_rows=5, small_windows=20)


def names(count: int) -> list[TableId]:
    """Return `count` tables."""
    return [TableId("db", f"t{number:05d}") for number in range(count)]


def test_small_tables_are_one_window_each_and_many_are_planned_in_one_batch() -> None:
    tables = names(50)
    job = Snapshots({table: [1, 2, 3] for table in tables}, LIMITS)
    job.batch(execute("s", *tables))

    assert [window.table for window in job.context.planned] == tables[:20]
    assert {(window.lower, window.upper) for window in job.context.planned} == {(None, key(3))}
    job.until_done()
    assert max(len(context.in_flight) for context in job.log) == 20
    assert [note[2] for note in job.notified() if note[1] == "TABLE_SCAN_COMPLETED"] == ["SUCCEEDED"] * 50
    assert job.notified()[-1][1] == "COMPLETED"


def test_tables_that_are_about_to_be_asked_about_are_named_first() -> None:
    tables = names(50)
    job = Snapshots({table: [1, 2, 3] for table in tables}, LIMITS)
    job.batch(execute("s", *tables))
    first = job.asked[0]

    assert isinstance(first, LookAhead)
    assert [each.table for each in first.collections] == tables[:20]
    assert [each.table for each in job.asked if isinstance(each, Describe)] == tables[:20]


def test_a_large_table_among_small_ones_keeps_to_the_windows_of_large_ones() -> None:
    tables = names(9)
    rows = {table: [1, 2, 3] for table in tables} | {tables[4]: list(range(100))}
    job = Snapshots(rows, LIMITS)
    job.batch(execute("s", *tables))
    planned = [window.table for window in job.context.planned]
    assert planned == [*tables[:4], tables[4], tables[4]]

    job.until_done()
    for context in job.log:
        assert sum(window.rows > LIMITS.small_rows for window in context.in_flight) <= LIMITS.windows
    assert sum(release.window.table == tables[4] for context in job.log for release in context.released) == 10


def test_a_small_table_that_cannot_be_described_now_holds_up_no_other() -> None:
    tables = names(6)
    job = Snapshots({table: [1, 2, 3] for table in tables}, LIMITS)

    def answer(question: Question) -> Answer:
        if isinstance(question, Describe) and question.table == tables[3] and job.number < 3:
            return Failed("locked")
        return job.truth(question)

    job.answer = answer
    job.batch(execute("s", *tables))
    assert [window.table for window in job.context.planned] == [*tables[:3], *tables[4:]]
    job.until_done()
    assert job.notified()[-1][1] == "COMPLETED"


def test_tables_behind_one_that_is_locked_are_not_asked_about_in_each_batch() -> None:
    tables = names(6)
    job = Snapshots({table: [1, 2, 3] for table in tables}, LIMITS)

    def answer(question: Question) -> Answer:
        if isinstance(question, (MaximumKey, Opened)) and question.table == tables[0] and job.number < 9:
            return Failed("locked")
        return job.truth(question)

    job.answer = answer
    job.batch(execute("s", *tables))
    assert sum(isinstance(each, LookAhead) for each in job.asked) == 1
    for _ in range(7):
        job.batch()
    assert sum(isinstance(each, LookAhead) for each in job.asked) == 1
    job.until_done()
    assert job.notified()[-1][1] == "COMPLETED"


def test_a_locked_table_blocks_no_other_tables_or_signals_and_is_tried_again() -> None:
    tables = names(5)
    rows = {table: [1, 2, 3] for table in tables} | {tables[2]: list(range(30))}
    job = Snapshots(rows, LIMITS)
    is_locked = True

    def answer(question: Question) -> Answer:
        if isinstance(question, (MaximumKey, Opened)) and question.table == tables[1] and is_locked:
            return Failed("locked")
        return job.truth(question)

    job.answer = answer
    job.batch(execute("s", *tables[:4]))
    job.batch(execute("t", tables[4]))
    for _ in range(20):
        job.batch()
    assert [scan.table for scan in job.context.scans] == [tables[1]]
    assert ("t", "COMPLETED", "") in job.notified()
    is_locked = False
    job.until_done()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_a_table_that_is_locked_while_it_is_read_does_not_block_those_behind_it() -> None:
    tables = names(2)
    job = Snapshots({tables[0]: list(range(100)), tables[1]: [1]}, LIMITS)
    is_locked = True

    def read(window: Window) -> ChunkResult:
        stalled = is_locked and window.table == tables[0]
        return ChunkResult(error="stalled: it is locked") if stalled else ChunkResult()

    job.result = read
    job.batch(execute("s", *tables))
    for _ in range(10):
        job.batch()
    assert [scan.table for scan in job.context.scans] == [tables[0]]
    is_locked = False
    job.until_done()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_a_table_with_a_late_answer_blocks_no_others_and_is_tried_again() -> None:
    job = Snapshots({A: list(range(9)), B: list(range(9))})
    is_late = is_answered = False

    def answer(question: Question) -> Answer:
        asked_for_a = isinstance(question, NextBoundary) and question.table == A
        return NotYet(is_late) if asked_for_a and not is_answered else job.truth(question)

    job.answer = answer
    job.batch(execute("s", A, B))
    job.batch()
    assert not job.context.in_flight
    is_late = True
    for _ in range(20):
        job.batch()
    assert ("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED") in job.notified()
    assert [scan.table for scan in job.context.scans] == [A]
    is_answered = True
    job.until_done()

    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]


def test_an_open_question_keeps_its_first_batch_until_the_table_changes() -> None:
    (table,) = names(1)
    job = Snapshots({table: [1, 2, 3]}, LIMITS)
    is_answered = False

    def answer(question: Question) -> Answer:
        return job.truth(question) if is_answered else NotYet()

    job.answer = answer
    job.batch(execute("s", table))
    plans = [job.batch() for _ in range(3)]
    assert all(plan.idle and plan.warned == () for plan in plans)
    job.batch(changes=(alter(table),))
    job.batch()
    is_answered = True
    job.batch()

    assert [each.asked for each in job.asked if isinstance(each, Describe)] == [1, 1, 1, 1, 5, 5, 5]
    assert [each.asked for each in job.asked if isinstance(each, MaximumKey)] == [7]
    assert job.context.scans[0].asked == 0
    job.until_done()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_tables_behind_one_that_takes_many_batches_are_not_asked_about_in_each() -> None:
    tables = names(6)
    rows = {table: [1, 2, 3] for table in tables} | {tables[0]: list(range(200))}
    job = Snapshots(rows, LIMITS)
    job.batch(execute("s", *tables))
    while not job.context.scans[0].wholly_planned:
        asked = len(job.asked)
        job.batch()
        if not job.context.scans[0].wholly_planned:
            assert not any(isinstance(each, LookAhead) for each in job.asked[asked:])
    job.until_done()
    assert job.number > 5


def test_a_table_that_was_locked_is_asked_about_again_when_it_can_be_opened() -> None:
    (table,) = names(1)
    job = Snapshots({table: [1, 2, 3]}, LIMITS)
    opens: list[Answer] = [NotYet(), NotYet(), Failed("still locked"), NotYet()]

    def answer(question: Question) -> Answer:
        if isinstance(question, Opened):
            return opens.pop(0) if opens else None
        if isinstance(question, MaximumKey) and job.number == 1:
            return Failed("locked")
        return job.truth(question)

    job.answer = answer
    job.batch(execute("s", table))
    while opens:
        asked = len(job.asked)
        job.batch()
        assert all(isinstance(each, Opened) for each in job.asked[asked:])
    assert [context.scans[0].attempt for context in job.log] == [1, 1, 1, 2, 2]
    job.until_done()
    assert job.notified()[-1][1] == "COMPLETED"


def test_empty_tables_do_not_use_up_the_batch_without_bound() -> None:
    tables = names(100)
    job = Snapshots({table: list[int]() for table in tables}, LIMITS)
    job.batch(execute("s", *tables))

    assert len(job.context.queue) == 80


def test_a_stop_takes_tables_out_of_the_middle_of_the_queue() -> None:
    tables = names(60)
    job = Snapshots({table: [1] for table in tables}, LIMITS)
    job.batch(execute("s", *tables))
    job.batch(Stop("stop", frozenset(tables[30:40])))
    job.until_done()

    ended = [
        dict(n.fields)["scanned_collection"] for c in job.log for n in c.notifications if "scanned" in str(n.fields)
    ]
    assert ended == [str(table) for table in tables if table not in tables[30:40]]


def test_notifications_of_thousands_of_tables_are_short() -> None:
    tables = names(3_000)
    job = Snapshots({table: [1] for table in tables}, LIMITS)
    job.batch(execute("s", *tables))
    job.batch()
    job.batch()
    (first, *_) = [n for n in job.context.notifications if n.type == "TABLE_SCAN_COMPLETED"]

    assert dict(first.fields)["data_collections"] == "db.t00000,db.t00001,db.t00002,db.t00003,db.t00004,... 2995 more"
