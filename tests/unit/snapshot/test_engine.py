"""The engine, scene by scene. The rules under crashes and concurrency are in tests/property."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.events import BinlogPosition, SchemaChange
from incsnap.snapshot.commands import DataCollection, Execute, Pause, Resume, Stop
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import awaited
from incsnap.snapshot.notifications import Notification, key_ranges
from incsnap.snapshot.questions import Answer, Describe, Failed, MaximumKey, NextBoundary, Question, Refused
from incsnap.snapshot.sizing import Limits, next_chunk_rows
from incsnap.snapshot.window import Reading, Window
from tests.support.snapshots import SERVER, A, B, C, Snapshots, alter, execute, position, spans, truncate


def test_two_chunks_of_one_table_are_read_in_one_batch_and_released_in_the_next() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5]})

    first = job.batch(execute("s", A)).context
    second = job.batch().context
    third = job.batch().context

    assert spans(first.planned) == [("a", None, "2"), ("a", "2", "4")]
    assert spans(second.released) == [("a", None, "2"), ("a", "2", "4")]
    assert spans(second.planned) == [("a", "4", "5")]
    assert spans(third.released) == [("a", "4", "5")]
    assert not third.active


def test_a_signal_is_told_from_start_to_completion() -> None:
    job = Snapshots({A: [1, 2, 3], B: []})
    job.batch(Execute("s", (DataCollection(A), DataCollection(B)), unresolved=("db.nothing",)))
    job.until_done()

    assert job.told() == [
        ("s", "STARTED", "db.a,db.b,db.nothing"),
        ("s", "TABLE_SCAN_COMPLETED", "UNKNOWN_SCHEMA"),
        ("s", "TABLE_SCAN_COMPLETED", "EMPTY"),
        ("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"),
        ("s", "COMPLETED", ""),
    ]


def test_a_completed_table_tells_how_many_rows_were_read() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    log = job.until_done()

    (found,) = [n for context in log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert found.value("prefix")["additional_data"] == {
        "connector_name": "prefix",
        "data_collections": "",
        "scanned_collection": "db.a",
        "total_rows_scanned": "3",
        "status": "SUCCEEDED",
    }


def test_progress_names_the_table_its_maximum_and_the_last_key() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5]})
    job.batch(execute("s", A))
    told = job.batch().context.notifications

    assert told == (
        Notification(
            "s",
            "IN_PROGRESS",
            2_000,
            (
                ("data_collections", "db.a"),
                ("current_collection_in_progress", "db.a"),
                ("maximum_key", "5"),
                ("last_processed_key", "4"),
            ),
        ),
    )


def test_a_window_is_held_until_the_end_of_a_batch_has_passed_its_high_watermark() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A), pos=1_000)  # high watermark: 1100

    assert job.batch(pos=1_099).context.released == ()
    assert job.context.held_tables() == {A}
    assert spans(job.batch(pos=1_100).context.released) == [("a", None, "2")]
    assert job.context.held_tables() == frozenset()


def test_no_more_windows_are_in_flight_than_the_limit() -> None:
    job = Snapshots({A: list(range(100))})
    job.batch(execute("s", A), pos=10)
    for _ in range(5):
        job.batch(pos=10)

    assert len(job.context.in_flight) == job.limits.windows


def test_the_position_to_wait_for_is_the_highest_high_watermark() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A), pos=10)
    first, second = job.context.planned
    readings = {
        first.id: Reading(high_file="binlog.000002", high_pos=4, server_uuid=SERVER),
        second.id: Reading(high_file="binlog.000001", high_pos=900, server_uuid=SERVER),
    }

    assert awaited(job.context, readings, SERVER) == BinlogPosition("binlog.000002", 4)
    assert awaited(job.context, readings, "other") is None
    assert awaited(job.context, {}, SERVER) is None


def test_the_next_table_begins_while_the_last_window_of_the_former_is_in_flight() -> None:
    job = Snapshots({A: [1, 2], B: [1, 2]})

    assert spans(job.batch(execute("s", A, B)).context.planned) == [("a", None, "2"), ("b", None, "2")]


def test_a_table_is_read_once_for_a_signal_that_names_it_twice() -> None:
    job = Snapshots({A: [1]})
    job.batch(execute("s", A, A))

    assert [request.table for request in job.context.queue] == []
    assert len(job.context.scans) == 1


def test_a_later_signal_for_the_same_table_is_a_request_of_its_own() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    job.batch(execute("t", A))
    job.until_done()

    assert [told for told in job.told() if told[1] == "COMPLETED"] == [("s", "COMPLETED", ""), ("t", "COMPLETED", "")]


def test_a_repeated_signal_is_ignored_while_its_snapshot_runs() -> None:
    job = Snapshots({A: list(range(9))})
    job.batch(execute("s", A))
    plan = job.batch(execute("s", A))

    assert plan.warnings == ("signal s is repeated while its snapshot runs; ignored",)
    assert len(plan.context.scans) == 1
    assert plan.context.queue == ()


def test_a_signal_repeated_after_its_snapshot_is_obeyed_with_a_warning() -> None:
    job = Snapshots({A: [1]})
    job.batch(execute("s", A))
    job.until_done()
    plan = job.batch(execute("s", A))

    assert plan.warnings == ("signal s is repeated after its snapshot has finished; obeyed again",)
    assert plan.context.active


def test_a_signal_without_tables_changes_nothing() -> None:
    job = Snapshots({})
    plan = job.batch(Execute("s", ()))

    assert plan.context == SnapshotContext()
    assert plan.warnings == ("signal s asks for no table; ignored",)


@pytest.mark.parametrize("change", [alter(A), truncate(A), SchemaChange(None, "db", "?"), SchemaChange(None, "", "?")])
def test_a_schema_change_drops_the_windows_of_its_table_and_reads_them_again(change: SchemaChange) -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    before = job.context.planned
    after = job.batch(changes=(change,)).context

    assert after.released == ()
    assert sorted(after.dropped) == sorted(window.id for window in before)
    assert sorted(spans(after.planned), key=str) == sorted(spans(before), key=str)
    assert not {window.id for window in after.planned} & {window.id for window in before}


def test_a_schema_change_of_another_table_is_no_matter() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))

    assert len(job.batch(changes=(alter(B), SchemaChange(None, "elsewhere", "?"))).context.released) == 2


def test_a_table_whose_key_changes_is_begun_again() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5, 6, 7]})
    job.batch(execute("s", A))
    job.batch()
    job.fingerprint = "k varchar"
    plan = job.batch(changes=(alter(A),))

    assert spans(plan.context.planned) == [("a", None, "2"), ("a", "2", "4")]
    assert any("key has changed" in warning for warning in plan.warnings)


def test_a_table_dropped_on_the_way_ends_as_unknown() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    del job.keys[A]
    job.batch(changes=(alter(A),))

    assert job.told()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "UNKNOWN_SCHEMA"), ("s", "COMPLETED", "")]


def test_rows_read_on_another_server_are_read_again() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A), pos=10)
    job.batch(pos=10)
    assert len(job.context.held) == 1
    job.server_uuid = "another"
    job.batch()

    assert job.context.released == ()
    assert spans(job.context.planned) == [("a", None, "2")]


def test_windows_are_read_again_when_the_layout_changes() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A))
    job.batch(outdated=True)

    assert job.context.released == ()
    assert spans(job.context.planned) == [("a", None, "2")]


def test_a_failing_chunk_waits_before_it_is_read_again_and_others_go_on() -> None:
    job = Snapshots({A: list(range(1, 9))}, tick_ms=100)
    job.reading = lambda window: Reading(error="deadlock: found") if window.lower is None else Reading()
    job.batch(execute("s", A))
    job.batch()

    assert spans(job.context.planned) == [("a", "4", "6"), ("a", "6", "8")]
    job.batch()
    assert job.context.planned == ()
    job.batch()
    job.batch()
    assert spans(job.context.planned) == [("a", None, "2")]


def bad_row(job: Snapshots, *bad: int, error: str = "row: it is bad") -> None:
    job.reading = lambda window: Reading(error=error) if {*bad} & {*job.rows(window)} else Reading()


def test_a_bad_row_is_isolated_by_halving_and_put_into_quarantine() -> None:
    job = Snapshots({A: list(range(1, 17))}, Limits(2, 4, 8, 8), tick_ms=60_000)
    bad_row(job, 5)
    job.batch(execute("s", A))
    log = job.until_done()

    sent = sorted(row for context in log for window in context.released for row in job.rows(window.window))
    assert sent == [row for row in range(1, 17) if row != 5]
    (told,) = [n for context in log for n in context.notifications if n.type == "QUARANTINED"]
    assert (dict(told.fields)["first_key"], dict(told.fields)["last_key"]) == ("4", "5")
    assert job.told()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]
    (completed,) = [n for context in log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert dict(completed.fields)["missing_keys"] == "(4, 5]"


def test_the_end_of_a_table_names_ten_of_the_ranges_that_are_missing() -> None:
    assert key_ranges([(None, ("1", None)), (("3",), ("4",))]) == "(<null>, 1,<null>]; (3, 4]"
    assert key_ranges([(("1",), ("2",))] * 12).endswith("; (1, 2]; ... 2 more")


def test_a_chunk_is_halved_after_three_readings_and_a_row_given_up_after_five() -> None:
    job = Snapshots({A: [1, 2]}, tick_ms=60_000)
    bad_row(job, 1)
    job.batch(execute("s", A))
    log = job.until_done()

    tried = [window for context in log for window in context.planned if 1 in job.rows(window)]
    assert [len(job.rows(window)) for window in tried] == [2, 2, 2, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["timeout", "too_large"])
def test_a_chunk_that_is_too_much_is_halved_at_once_and_the_next_are_cut_smaller(kind: str) -> None:
    job = Snapshots({A: list(range(100))}, Limits(1, 4, 8, 8))
    job.reading = lambda window: Reading(error=f"{kind}: of 8 rows") if window.rows == 8 else Reading()
    job.batch(execute("s", A))
    job.batch()

    assert spans(job.context.planned) == [("a", None, "3")]
    assert job.context.scans[0].chunk_rows == 4


@pytest.mark.parametrize("kind", ["stalled", "unreachable", "shape"])
def test_a_chunk_that_is_not_to_blame_is_never_given_up(kind: str) -> None:
    job = Snapshots({A: [1]}, Limits(1, 4, 1, 1), tick_ms=60_000)
    job.reading = lambda window: Reading(error=f"{kind}: still") if window.batch < 300 else Reading()
    job.batch(execute("s", A))
    job.until_done()

    assert job.number == 302  # a chunk that failed is read again in the batch after the next
    assert job.told()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]


def test_a_table_with_a_type_that_cannot_be_read_is_skipped_and_the_next_is_read() -> None:
    job = Snapshots({A: [1, 2, 3], B: [1]}, Limits(2, 4, 1, 1))
    job.reading = lambda window: Reading(error="unsupported: column g is geometry") if window.table == A else Reading()
    job.batch(execute("s", A, B))
    plan = job.batch()

    assert any("geometry" in warning for warning in plan.warnings)
    assert spans(plan.context.planned) == [("b", None, "1")]
    assert ("s", "TABLE_SCAN_COMPLETED", "SKIPPED") in job.told()


def test_a_table_of_which_nothing_can_be_read_ends_loudly_and_the_offset_stays_small() -> None:
    job = Snapshots({A: list(range(10_000))}, Limits(2, 8, 1_000, 1_000), tick_ms=60_000)
    job.reading = lambda window: Reading(error="1142: SELECT command denied")
    job.batch(execute("s", A))
    job.until_done()

    assert max(len(context.scans[0].again) for context in job.log if context.scans) < 40
    assert job.told()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SQL_EXCEPTION"), ("s", "COMPLETED", "")]


def test_a_question_that_fails_is_asked_again_later() -> None:
    job = Snapshots({A: [1]}, tick_ms=100)

    def answer(question: Question) -> Answer:
        return Failed("gone away") if job.number < 4 else job.truth(question)

    job.answer = answer
    plan = job.batch(execute("s", A))

    assert plan.warnings == ("db.a: no chunks planned now, asked 1 times: gone away",)
    assert job.batch().warnings == ()
    job.until_done()
    assert job.told()[-1] == ("s", "COMPLETED", "")


@pytest.mark.parametrize("question", [Describe, MaximumKey, NextBoundary])
def test_a_question_that_can_never_be_answered_ends_the_table(question: type[Question]) -> None:
    job = Snapshots({A: [1], B: [1]})

    def answer(asked: Question) -> Answer:
        broken = isinstance(asked, question) and asked.table == A  # type: ignore[union-attr]
        return Failed("no such column", permanent=True) if broken else job.truth(asked)

    job.answer = answer
    job.batch(execute("s", A, B))

    assert spans(job.context.planned) == [("b", None, "1")]
    assert job.told()[-1] == ("s", "TABLE_SCAN_COMPLETED", "SQL_EXCEPTION")


def test_a_chunk_that_meets_other_columns_lets_the_table_be_described_anew() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    job.reading = lambda window: Reading(error="shape: the key is no longer the one it was cut by")
    job.fingerprint = "l int"
    job.asked.clear()
    job.batch()
    job.reading = None
    job.batch()

    assert [type(question) for question in job.asked[:2]] == [Describe, MaximumKey]
    assert spans(job.context.planned)[0] == ("a", None, "2")
    job.until_done()
    assert job.told()[-1] == ("s", "COMPLETED", "")


def test_what_was_read_by_another_key_is_dropped_when_the_table_begins_again() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    first, second = job.context.planned
    job.reading = lambda window: Reading(error="shape: another key") if window.id == second.id else job.good(window)
    job.fingerprint = "l int"
    waiting = job.batch(pos=100).context
    after = job.batch(pos=100).context

    assert [window.id for window in waiting.held] == [first.id]
    assert after.dropped == (first.id,)
    assert (after.held, after.released) == ((), ())
    assert spans(after.planned) == [("a", None, "2"), ("a", "2", "4")]


def test_a_table_without_a_primary_key_is_refused_by_name() -> None:
    job = Snapshots({A: [1]})
    job.answer = lambda question: Refused("NO_PRIMARY_KEY", "it has no primary key; name a surrogate-key")
    plan = job.batch(execute("s", A))

    assert plan.warnings == ("db.a: NO_PRIMARY_KEY: it has no primary key; name a surrogate-key",)
    assert job.told()[1:] == [("s", "TABLE_SCAN_COMPLETED", "NO_PRIMARY_KEY"), ("s", "COMPLETED", "")]


def test_condition_and_surrogate_key_reach_the_chunk() -> None:
    job = Snapshots({A: [1]})
    job.batch(Execute("s", (DataCollection(A, "k > 0", "k"),)))
    chunk = job.context.scans[0].chunk(job.context.planned[0])

    assert job.asked[0] == Describe(A, "k", "k > 0", position(100).delivered)
    assert (chunk.columns, chunk.condition, chunk.lower, chunk.upper) == (("k",), "k > 0", None, ("1",))


def test_a_paused_snapshot_plans_nothing_but_releases_what_was_read() -> None:
    job = Snapshots({A: list(range(1, 9))})
    job.batch(execute("s", A))
    paused = job.batch(Pause("p")).context
    still = job.batch().context
    resumed = job.batch(Resume("r")).context

    assert len(paused.released) == 2
    assert paused.planned == still.planned == ()
    assert spans(resumed.planned) == [("a", "4", "6"), ("a", "6", "8")]
    assert [told[:2] for told in job.told()] == [("s", "STARTED"), ("s", "PAUSED"), ("s", "RESUMED")]


def test_pause_and_resume_without_a_snapshot_only_warn() -> None:
    job = Snapshots({A: [1]})

    assert job.batch(Pause("p")).warnings == ("signal p: no running snapshot to pause",)
    assert job.batch(Resume("r")).warnings == ("signal r: no paused snapshot to resume",)
    assert job.context == SnapshotContext()


def test_a_pause_ends_with_the_snapshot_that_was_paused() -> None:
    job = Snapshots({A: [1, 2, 3], B: [1]})
    job.batch(execute("s", A))
    job.batch(Pause("p"), Stop("x"))

    assert job.batch(execute("t", B)).context.planned


def test_a_pause_ends_with_its_snapshot_though_another_is_asked_for_in_the_same_batch() -> None:
    job = Snapshots({A: list(range(1, 9)), B: [1]})
    job.batch(execute("s", A))
    job.batch(Pause("p"))
    after = job.batch(Stop("x"), execute("t", B)).context

    assert (after.paused, after.paused_by) == (False, "")
    assert spans(after.planned) == [("b", None, "1")]


def test_stop_leaves_nothing_of_a_table_and_sends_nothing_of_it() -> None:
    job = Snapshots({A: list(range(9)), B: [1], C: [1]})
    job.batch(execute("s", A, B), execute("t", C))
    read = job.context.planned
    after = job.batch(Stop("x", frozenset({A, B}))).context

    assert after.released == ()
    assert after.dropped == tuple(window.id for window in read)
    assert spans(after.planned) == [("c", None, "1")]
    assert job.told()[2:] == [("s", "ABORTED", "db.a,db.b")]
    job.until_done()
    assert [told for told in job.told() if told[1] == "COMPLETED"] == [("t", "COMPLETED", "")]


def test_stop_of_one_table_lets_the_others_of_the_signal_complete() -> None:
    job = Snapshots({A: list(range(9)), B: [1]})
    job.batch(execute("s", A, B))
    job.batch(Stop("x", frozenset({B})))
    job.until_done()

    assert job.told()[1:] == [
        ("s", "ABORTED", "db.b"),
        ("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"),
        ("s", "COMPLETED", ""),
    ]


def test_stop_of_everything_and_of_nothing() -> None:
    job = Snapshots({A: list(range(9)), B: [1]})
    job.batch(execute("s", A, B))

    assert job.batch(Stop("w", frozenset())).warnings == ("signal w: no running or waiting snapshot to stop",)
    assert not job.batch(Stop("x")).context.active
    assert job.batch(Stop("y")).warnings == ("signal y: no running or waiting snapshot to stop",)


def test_chunks_grow_at_most_fourfold_and_shrink_at_once() -> None:
    job = Snapshots({A: list(range(100_000))}, Limits(1, 4, 100, 1_000, target_bytes=10_000, target_seconds=1.0))
    bytes_a_row, seconds = 1, 0.001
    job.reading = lambda window: job.good(window, seconds=seconds, bytes_a_row=bytes_a_row)
    job.batch(execute("s", A))
    for _ in range(5):
        job.batch()

    assert [context.planned[0].rows for context in job.log] == [100, 400, 1_000, 1_000, 1_000, 1_000]

    bytes_a_row = 100
    assert job.batch().context.planned[0].rows == 100
    bytes_a_row, seconds = 1, 20.0
    assert job.batch().context.planned[0].rows == 5


def test_a_chunk_is_cut_smaller_where_its_records_are_much_larger_than_its_rows() -> None:
    limits = Limits(target_bytes=1_000)
    reading = Reading(rows=100, bytes=100, seconds=0.001, record_bytes=4_000)
    read = Window("w", 1, A, "s", None, ("1",), 100, 1, reading=reading)

    assert next_chunk_rows(100, [read], limits) == 50


def test_a_configured_chunk_size_is_the_first_and_the_largest() -> None:
    limits = Limits.configured(1_024, parallelism=3)

    assert (limits.start_rows, limits.max_rows, limits.parallelism, limits.windows) == (1_024, 1_024, 3, 12)
    assert Limits.configured(None) == Limits()


def test_nothing_to_do_is_idle_and_the_end_of_a_snapshot_is_not() -> None:
    job = Snapshots({A: [1]})

    assert job.batch().idle
    assert not job.batch(execute("s", A)).idle
    assert not job.batch().idle  # released
    assert not job.batch().idle  # forgets what was released
    assert job.batch().idle


def test_windows_keep_the_reading_by_which_they_were_judged() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A), pos=10)
    reading = Reading(2, 2, 0.1, "binlog.000001", 500, SERVER, file="first")
    job.reading = lambda window: reading
    job.batch(pos=20)
    job.reading = lambda window: replace(reading, high_pos=15, file="second")

    assert job.batch(pos=30).context.released == ()
    released = job.batch(pos=500).context.released
    assert [release.window.reading for release in released] == [reading]
