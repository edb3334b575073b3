"""How many rows the next chunk has, after what was read."""

from __future__ import annotations

from incsnap.snapshot.questions import Answer, NextBoundary, NotYet, Question
from incsnap.snapshot.sizing import Limits, next_chunk_rows
from incsnap.snapshot.window import Reading, Window
from tests.support.snapshots import A, Snapshots, execute, spans


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


def test_no_batch_waits_for_the_end_of_a_large_chunk() -> None:
    job = Snapshots({A: list(range(1, 31))}, Limits(2, 4, start_rows=5, max_rows=10, boundary_rows=5))
    is_answered = False

    def answer(question: Question) -> Answer:
        beside = isinstance(question, NextBoundary) and question.beside
        return NotYet() if beside and not is_answered else job.truth(question)

    job.answer = answer
    assert spans(job.batch(execute("s", A)).context.planned) == [("a", None, "5"), ("a", "5", "10")]
    # The next is one of ten rows.
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
