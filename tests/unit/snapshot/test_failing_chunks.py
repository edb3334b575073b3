"""Tests of chunks, rows and questions that fail: they are repeated, halved or given up, and reported by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.snapshot.notifications import key_ranges
from incsnap.snapshot.questions import Answer, Describe, Failed, MaximumKey, NextBoundary, Question
from incsnap.snapshot.refused import RefusedRow
from incsnap.snapshot.sizing import Limits, select_seconds
from incsnap.snapshot.window import ChunkResult, Window
from tests.support.snapshots import A, B, Snapshots, execute, spans


def test_a_failing_chunk_waits_before_it_is_read_again_and_others_go_on() -> None:
    job = Snapshots({A: list(range(1, 9))}, tick_ms=100)
    job.result = lambda window: ChunkResult(error="deadlock: found") if window.lower is None else ChunkResult()
    job.batch(execute("s", A))
    job.batch()

    assert spans(job.context.planned) == [("a", "4", "6"), ("a", "6", "8")]
    job.batch()
    assert job.context.planned == ()
    job.batch()
    job.batch()
    assert spans(job.context.planned) == [("a", None, "2")]


def bad_row(job: Snapshots, *bad: int, error: str = "row: it is bad") -> None:
    """Let each chunk with a row of `bad` fail with `error`."""
    job.result = lambda window: ChunkResult(error=error) if {*bad} & {*job.rows(window)} else ChunkResult()


def test_a_bad_row_is_isolated_by_halving_and_put_into_quarantine() -> None:
    job = Snapshots({A: list(range(1, 17))}, Limits(2, 4, 8, 8), tick_ms=60_000)
    bad_row(job, 5)
    job.batch(execute("s", A))
    log = job.until_done()

    sent = sorted(row for context in log for window in context.released for row in job.rows(window.window))
    assert sent == [row for row in range(1, 17) if row != 5]
    (notification,) = [n for context in log for n in context.notifications if n.type == "QUARANTINED"]
    assert (dict(notification.fields)["first_key"], dict(notification.fields)["last_key"]) == ("4", "5")
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "INCOMPLETE"), ("s", "COMPLETED", "")]
    (completed,) = [n for context in log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert dict(completed.fields)["missing_keys"] == "(4, 5]"


def test_a_row_that_kafka_refused_is_put_into_quarantine_before_its_table_ends() -> None:
    job = Snapshots({A: [1, 2]}, tick_ms=60_000)
    job.result = lambda window: replace(job.good(window), file="w/1.arrow")
    job.batch(execute("s", A))
    while not job.context.released:
        job.batch()
    row = RefusedRow("w/1.arrow", "2", "too large for Kafka (1200000 bytes): max.message.bytes")
    job.batch(refused=(row, RefusedRow("w/another.arrow", "9", "of a window that is gone")))
    log = job.until_done()

    (notification,) = [n for context in log for n in context.notifications if n.type == "QUARANTINED"]
    content = dict(notification.fields)
    assert (content["data_collections"], content["last_key"]) == ("db.a", "2")
    assert "too large for Kafka" in content["error"]
    (completed,) = [n for context in log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert dict(completed.fields)["missing_keys"] == "2"


def test_many_refused_rows_are_told_by_fifty_names_and_their_number() -> None:
    job = Snapshots({A: [1, 2]}, tick_ms=60_000)
    job.result = lambda window: replace(job.good(window), file="w/1.arrow")
    job.batch(execute("s", A))
    while not job.context.released:
        job.batch()
    plan = job.batch(refused=tuple(RefusedRow("w/1.arrow", str(key), "too large") for key in range(300)))

    content = [dict(n.fields)["last_key"] for n in plan.context.notifications if n.type == "QUARANTINED"]
    assert (len(content), content[-1]) == (51, "... 250 more")
    assert any("236 more rows are given up" in warning and "only the first 64" in warning for warning in plan.warnings)
    job.until_done()
    (ended,) = [n for context in job.log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert "at least 64 ranges" in dict(ended.fields)["reason"]


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
    job = Snapshots({A: list(range(100))}, Limits(1, 4, 8, 8, least_rows=1))
    job.result = lambda window: ChunkResult(error=f"{kind}: of 8 rows") if window.rows == 8 else ChunkResult()
    job.batch(execute("s", A))
    job.batch()

    assert spans(job.context.planned) == [("a", None, "3")]
    assert job.context.scans[0].chunk_rows == 4


def needs(job: Snapshots, seconds: float) -> list[int]:
    """Let each SELECT take `seconds`. Return a list that gets the number of rows of each chunk whose time ran out."""
    late: list[int] = []

    def read(window: Window) -> ChunkResult:
        may_take = select_seconds(window.doublings, job.limits.query_seconds)
        if seconds <= may_take:
            return job.good(window, seconds=seconds)
        late.append(len(job.rows(window)))
        return ChunkResult(error=f"timeout: more than {may_take:g} seconds")

    job.result = read
    return late


def test_a_select_that_runs_out_of_time_gets_twice_the_time() -> None:
    job = Snapshots({A: list(range(1_000))}, Limits(2, 2, 100, 500, least_rows=10))
    late = needs(job, 130.0)
    job.batch(execute("s", A))
    log = job.until_done()

    assert late == [100, 100, 50, 50, 25, 25]
    assert sum(len(job.rows(each.window)) for context in log for each in context.released) == 1_000
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]


def test_a_slow_select_of_one_row_counts_no_failure_before_the_longest_time_out() -> None:
    job = Snapshots({A: [1]}, Limits(1, 1, 1, 1, query_seconds=100.0), tick_ms=60_000)
    late = needs(job, 101.0)
    job.batch(execute("s", A))
    job.until_done()

    assert len(late) == 3 + 5  # three attempts with 20, 40 and 80 s, then five with 100 s
    assert any(note[1] == "QUARANTINED" for note in job.notified())


@pytest.mark.parametrize("kind", ["stalled", "unreachable", "shape"])
def test_a_chunk_that_is_not_to_blame_is_never_given_up(kind: str) -> None:
    job = Snapshots({A: [1]}, Limits(1, 4, 1, 1), tick_ms=60_000)
    job.result = lambda window: ChunkResult(error=f"{kind}: still") if window.batch < 300 else ChunkResult()
    job.batch(execute("s", A))
    job.until_done()

    # a failed chunk is read again two batches later, and the end is reported one batch after that
    assert job.number == 303
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]


def test_a_table_with_a_type_that_cannot_be_read_is_skipped_and_the_next_is_read() -> None:
    job = Snapshots({A: [1, 2, 3], B: [1]}, Limits(2, 4, 1, 1))
    job.result = lambda window: (
        ChunkResult(error="unsupported: column g is geometry") if window.table == A else ChunkResult()
    )
    job.batch(execute("s", A, B))
    plan = job.batch()

    assert any("geometry" in warning for warning in plan.warnings)
    assert spans(plan.context.planned) == [("b", None, "1")]
    assert ("s", "TABLE_SCAN_COMPLETED", "SKIPPED") in job.notified()


def test_a_table_of_which_nothing_can_be_read_ends_loudly_and_the_offset_stays_small() -> None:
    job = Snapshots({A: list(range(10_000))}, Limits(2, 8, 1_000, 1_000), tick_ms=60_000)
    job.result = lambda window: ChunkResult(error="1142: SELECT command denied")
    job.batch(execute("s", A))
    job.until_done()

    assert max(len(context.scans[0].again) for context in job.log if context.scans) < 40
    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SQL_EXCEPTION"), ("s", "COMPLETED", "")]


def test_a_question_that_fails_is_asked_again_later() -> None:
    job = Snapshots({A: [1]}, tick_ms=100)

    def answer(question: Question) -> Answer:
        return Failed("gone away") if job.number < 4 else job.truth(question)

    job.answer = answer
    plan = job.batch(execute("s", A))

    assert plan.warnings == ("db.a: no chunks planned now, asked 1 times: gone away",)
    assert job.batch().warnings == ()
    job.until_done()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


@pytest.mark.parametrize("question", [Describe, MaximumKey, NextBoundary])
def test_a_question_that_can_never_be_answered_ends_the_table(question: type[Question]) -> None:
    job = Snapshots({A: [1], B: [1]})

    def answer(asked: Question) -> Answer:
        broken = isinstance(asked, question) and asked.table == A  # type: ignore[union-attr]
        return Failed("no such column", permanent=True) if broken else job.truth(asked)

    job.answer = answer
    job.batch(execute("s", A, B))

    assert spans(job.context.planned) == [("b", None, "1")]
    assert job.notified()[-1] == ("s", "TABLE_SCAN_COMPLETED", "SQL_EXCEPTION")


def test_lost_readings_are_counted_and_told_once() -> None:
    job = Snapshots({A: list(range(1, 9)), B: [1]}, tick_ms=60_000)
    losing = True
    job.result = lambda window: (
        ChunkResult(error="lost: no answer") if losing and window.table == A else job.good(window)
    )
    job.batch(execute("s", A, B))
    warned = [warning for _ in range(6) for warning in job.batch().warnings]
    lost = job.context.scans[0].lost_readings
    losing = False
    job.until_done()

    assert lost > 4
    assert len([warning for warning in warned if "lost" in warning]) == 1
    progress = [dict(n.fields) for context in job.log for n in context.notifications if n.type == "IN_PROGRESS"]
    assert {each.get("lost_readings", "") for each in progress} == {"", str(lost)}
