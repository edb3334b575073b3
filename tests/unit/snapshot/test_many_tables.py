"""Many small tables: one window each, many in a batch, while large tables keep to their own bounds."""

from __future__ import annotations

from incsnap.snapshot.commands import Stop
from incsnap.snapshot.questions import Answer, Describe, Failed, LookAhead, MaximumKey, NotYet, Opened, Question
from incsnap.snapshot.sizing import Limits
from incsnap.tables import TableId
from tests.support.snapshots import Snapshots, execute, key

LIMITS = Limits(parallelism=2, windows=4, start_rows=10, max_rows=10, small_rows=5, small_windows=20)


def names(count: int) -> list[TableId]:
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


def test_a_small_table_that_cannot_be_described_now_does_not_hold_up_those_before_it() -> None:
    tables = names(6)
    job = Snapshots({table: [1, 2, 3] for table in tables}, LIMITS)

    def answer(question: Question) -> Answer:
        if isinstance(question, Describe) and question.table == tables[3] and job.number < 3:
            return Failed("locked")
        return job.truth(question)

    job.answer = answer
    job.batch(execute("s", *tables))
    assert [window.table for window in job.context.planned] == tables[:3]
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


def test_what_is_told_of_each_of_thousands_of_tables_is_short() -> None:
    tables = names(3_000)
    job = Snapshots({table: [1] for table in tables}, LIMITS)
    job.batch(execute("s", *tables))
    job.batch()
    job.batch()
    (first, *_) = [n for n in job.context.notifications if n.type == "TABLE_SCAN_COMPLETED"]

    assert dict(first.fields)["data_collections"] == "db.t00001,db.t00002,db.t00003,db.t00004,db.t00005,... 2994 more"
