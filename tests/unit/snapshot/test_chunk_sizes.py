"""Tests of chunk sizes: how many rows the next chunk is planned for after the chunks that were read."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from incsnap.snapshot.questions import Answer, NextBoundary, NotYet, Question
from incsnap.snapshot.sizing import Limits, measured_times, next_chunk_rows
from incsnap.snapshot.window import ChunkResult, ChunkTime, Window
from tests.support.snapshots import A, B, Snapshots, execute, spans


def test_chunks_grow_at_most_fourfold_and_shrink_at_once() -> None:
    limits = Limits(1, 4, 100, 1_000, target_bytes=10_000, target_seconds=1.0, least_rows=5)
    job = Snapshots({A: list(range(100_000))}, limits)
    bytes_a_row, seconds = 1, 0.001
    job.result = lambda window: job.good(window, seconds=seconds, bytes_a_row=bytes_a_row)
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
    result = ChunkResult(rows=100, bytes=100, seconds=0.001, record_bytes=4_000)
    read = Window("w", 1, A, "s", None, ("1",), 100, 1, result=result)

    assert next_chunk_rows(100, measured_times((), [read]), [read], limits) == 50


def took(rows: int, seconds: float) -> Window:
    """Return a window whose SELECT took `seconds` for `rows` rows."""
    result = ChunkResult(rows=rows, bytes=rows, seconds=seconds)
    return Window("w", 1, A, "s", None, ("1",), rows, 1, result=result)


def sizes_of(own: float, each: float, count: int = 12, limits: Limits = Limits()) -> list[int]:  # noqa: B008
    """Return the sizes of a table's chunks.

    A SELECT has the fixed cost `own`, and each row costs `each`, in seconds.
    """
    times: tuple[ChunkTime, ...] = ()
    sizes = [limits.start_rows]
    for _ in range(count):
        read = [took(sizes[-1], own + each * sizes[-1])]
        times = measured_times(times, read)
        sizes.append(next_chunk_rows(sizes[-1], times, read, limits))
    return sizes


def test_chunks_of_slow_rows_keep_to_the_time_they_may_take() -> None:
    assert sizes_of(0.0, 0.004)[1:] == [500] * 12


def test_a_select_that_is_slow_by_itself_has_more_rows_not_fewer() -> None:
    sizes = sizes_of(4.0, 0.000_004)
    assert min(sizes) == 1_246
    assert sizes[-1] == 50_000


def test_the_rows_of_a_slow_select_take_as_long_again_as_the_select() -> None:
    assert 950 < sizes_of(4.0, 0.004)[-1] < 1_050


def test_time_alone_makes_no_chunk_smaller_than_fifty_rows_but_bytes_do() -> None:
    assert sizes_of(0.0, 30.0)[-1] == 50
    large = replace(took(50, 0.1), result=ChunkResult(rows=50, bytes=50 << 24, seconds=0.1))
    assert next_chunk_rows(50, measured_times((), [large]), [large], Limits()) == 2


def test_times_that_waver_shrink_no_chunk_of_a_select_that_is_slow_by_itself() -> None:
    rng = random.Random(7)
    for _ in range(200):
        times: tuple[ChunkTime, ...] = ()
        rows = 2_500
        for _ in range(20):
            read = [took(rows, rng.uniform(3.8, 4.2) + rows * 0.000_004)]
            times = measured_times(times, read)
            rows = next_chunk_rows(rows, times, read, Limits())
        assert rows > 2_500


def test_a_configured_chunk_size_is_the_first_and_the_largest() -> None:
    limits = Limits.configured(1_024, parallelism=3)

    assert (limits.start_rows, limits.max_rows, limits.parallelism, limits.windows) == (1_024, 1_024, 3, 12)
    assert Limits.configured(None) == Limits()


def test_no_batch_waits_for_the_end_of_a_large_chunk() -> None:
    job = Snapshots({A: list(range(1, 31))}, Limits(2, 4, start_rows=5, max_rows=10, boundary_rows=5))
    is_answered = False

    def answer(question: Question) -> Answer:
        beside = isinstance(question, NextBoundary) and question.beside
        return NotYet() if beside and not is_answered else job.truth(question)

    job.answer = answer
    assert spans(job.batch(execute("s", A)).context.planned) == [("a", None, "5"), ("a", "5", "10")]
    # The next chunk has ten rows, so its boundary is looked for beside the stream.
    for _ in range(3):
        plan = job.batch()
        assert plan.context.planned == ()
        assert plan.warned == ()
    assert plan.idle
    is_answered = True
    assert spans(job.batch().context.planned) == [("a", "10", "20"), ("a", "20", "30")]
    job.until_done()
    assert job.notified()[-1] == ("s", "COMPLETED", "")


def test_borders_that_no_batch_waited_for_are_not_counted() -> None:
    sizes = {"start_rows": 10, "max_rows": 10}
    beside = Snapshots({A: list(range(1, 61))}, Limits(3, 3, **sizes, cuts=1, boundary_rows=5))
    waited_for = Snapshots({A: list(range(1, 61))}, Limits(3, 3, **sizes, cuts=1))

    assert len(beside.batch(execute("s", A)).context.planned) == 3
    assert len(waited_for.batch(execute("s", A)).context.planned) == 1


@pytest.mark.parametrize("size", [5, 12, 40])
def test_a_table_whose_borders_all_come_late_is_read_whatever_its_chunk_size(size: int) -> None:
    """The search gives a late answer only once.

    Two steps of one batch that ask the same question must not wait for each other.
    """
    limits = Limits(2, 4, start_rows=size, max_rows=size, small_rows=12, small_windows=20)
    job = Snapshots({A: list(range(1, 31)), B: [1, 2]}, limits)
    answered: set[Question] = set()

    def answer(question: Question) -> Answer:
        if isinstance(question, NextBoundary) and question not in answered:
            answered.add(question)
            return NotYet()
        answered.discard(question)
        return job.truth(question)

    job.answer = answer
    job.batch(execute("s", A, B))
    for _ in range(60):
        job.batch()

    assert job.notified()[-1] == ("s", "COMPLETED", "")
