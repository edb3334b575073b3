"""Tests of chunks whose reading never ends: their reader dies, or the whole job dies, for an unknown reason."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.planner.chunk_readers import Answer, Begun, PutBack, ReaderMessage, ReadOrders
from incsnap.planner.chunk_results import ChunkResults
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import ChunkResult, Window
from incsnap.tasks.partitions import ChunkOrder
from tests.support.files_in_memory import FilesInMemory
from tests.support.snapshots import A, B, Snapshots, execute, position, spans

LIMITS = Limits(parallelism=2, windows=4, start_rows=8, max_rows=8)
DIED = ChunkResult(error="lost: its worker died")


def test_a_chunk_that_is_lost_again_and_again_is_halved_until_it_is_read() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5, 6, 7, 8]}, LIMITS, tick_ms=60_000)
    job.result = lambda window: DIED if len(job.rows(window)) > 2 else ChunkResult()
    job.batch(execute("s", A))
    job.until_done()

    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]
    assert not any("QUARANTINED" in note for note in job.notified())


def test_a_row_whose_reading_is_always_lost_is_given_up_by_name_and_no_other_is() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5, 6, 7, 8], B: [1, 2]}, LIMITS, tick_ms=60_000)
    tried: list[Window] = []

    def read(window: Window) -> ChunkResult | None:
        if window.table == A and 5 in job.rows(window):
            tried.append(window)
            return DIED
        return ChunkResult()

    job.result = read
    job.batch(execute("s", A, B))
    job.until_done()

    given_up = [dict(n.fields) for context in job.log for n in context.notifications if n.type == "QUARANTINED"]
    assert [each["last_key"] for each in given_up] == ["5"]
    assert given_up[0]["error"] == DIED.error
    assert job.notified()[-1] == ("s", "COMPLETED", "")
    assert [window.lost for window in tried] == [0, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9]
    assert sum(len(job.rows(each.window)) for context in job.log for each in context.released) == 7 + 2


def test_a_postponed_chunk_never_counts_as_lost() -> None:
    job = Snapshots({A: [1]}, Limits(2, 4, 1, 1), tick_ms=60_000)
    answers = iter(
        [*[ChunkResult(error="stalled: a commit")] * 30, DIED, DIED, *[ChunkResult(error="unreachable: gone")] * 9]
    )
    job.result = lambda _: next(answers, ChunkResult())
    job.batch(execute("s", A))
    job.until_done()

    assert job.notified()[-2:] == [("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"), ("s", "COMPLETED", "")]
    assert not any("QUARANTINED" in note for note in job.notified())


class Driver:
    """The readers of one process of the job. They only keep what they are asked for."""

    def __init__(self) -> None:
        self.orders: list[ChunkOrder] = []
        self.waiting: list[ReaderMessage] = []

    def order(self, message: ReadOrders) -> None:
        self.orders += message.orders

    def messages(self) -> list[ReaderMessage]:
        messages, self.waiting = self.waiting, []
        return messages

    def close(self) -> None: ...


class Lives:
    """A job that is started again and again.

    It dies when it reads a chunk with the row `deadly`, before it reports the chunk.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, job: Snapshots, deadly: int) -> None:
        self.job, self.deadly = job, deadly
        self.buffers = WindowBuffers("/nowhere")
        monkeypatch.setattr(self.buffers, "_files", FilesInMemory())
        self.count = 0
        self.seconds = 0.0
        self.begin()

    def begin(self) -> None:
        self.driver = Driver()
        self.results = ChunkResults(
            self.driver, self.buffers, 2, lambda table: (str(table),), clock=lambda: self.seconds
        )
        self.count += 1

    def offset(self) -> Offset:
        return Offset("job", self.job.number, position(self.job.pos), TopicLayout(1, {str(A): 1}), self.job.context)

    def batch(self, *names: str) -> tuple[str, ...]:
        """Plan one batch with the signals `names`, and return the plan's warnings."""
        results = self.results.arrived(self.offset())
        self.job.result = lambda window: results.get(window.id)
        plan = self.job.batch(*(execute(name, A) for name in names))
        self.results.order(self.offset())
        return plan.warnings

    def read(self, orders: Iterable[ChunkOrder]) -> None:
        for order in orders:
            window = order.read.window
            if window.lost:
                self.buffers.write_begun(window.id)
            if self.deadly in self.job.rows(window):
                self.begin()
                return
            self.buffers.write_manifest(window.id, self.job.good(window))
            self.driver.waiting.append(Answer(window.id))


def test_a_chunk_that_ends_the_whole_job_is_halved_and_given_up_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Snapshots({A: list(range(1, 33))}, LIMITS, tick_ms=60_000)
    lives = Lives(monkeypatch, job, deadly=13)
    lives.batch("s")
    for _ in range(100):
        if not job.context.active:
            break
        orders, lives.driver.orders = lives.driver.orders, []
        lives.read(orders)
        lives.batch()

    given_up = [dict(n.fields) for context in job.log for n in context.notifications if n.type == "QUARANTINED"]
    assert [each["last_key"] for each in given_up] == ["13"]
    assert job.notified()[-1] == ("s", "COMPLETED", "")
    assert lives.count < 20


def test_chunks_left_by_a_single_job_end_are_read_at_once_without_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Snapshots({A: list(range(1, 17))}, LIMITS)
    lives = Lives(monkeypatch, job, deadly=0)
    lives.batch("s")
    before = spans(job.context.planned)
    lives.begin()

    assert lives.batch() == ()
    assert job.context.dropped == ("1-0", "1-1")
    assert sorted(spans(job.context.planned), key=str) == sorted(before, key=str)
    assert [order.read.window.id for order in lives.driver.orders] == ["2-0", "2-1"]


def test_the_lease_of_a_chunk_begins_when_its_reading_does(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Snapshots({A: [1, 2, 3, 4]}, Limits(2, 4, 2, 2))
    lives = Lives(monkeypatch, job, deadly=0)
    lives.batch("s")
    for _ in range(50):  # it waits for a reader
        lives.seconds += 100.0
        assert lives.batch() == ()
    assert spans(job.context.held) == [("a", None, "2"), ("a", "2", "4")]

    lives.driver.waiting = [Begun(("1-0", "1-1")), PutBack(("1-1",))]
    assert lives.batch() == ()
    lives.seconds += 199.0
    assert lives.batch() == ()
    lives.seconds += 2.0
    (warning,) = lives.batch()

    assert warning == "chunk db.a (<null>, 2] failed, attempt 1: lost: no answer of its reader for 200 s"
    assert spans(job.context.held) == [("a", "2", "4")]
    job.batch()
    assert spans(job.context.planned) == [("a", None, "2")]


def test_a_chunk_that_was_read_is_not_lost_because_its_answer_is(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Snapshots({A: [1, 2]}, LIMITS)
    lives = Lives(monkeypatch, job, deadly=0)
    lives.batch("s")
    lives.driver.waiting = [Begun(("1-0",))]
    lives.batch()
    lives.buffers.write_manifest("1-0", job.good(job.context.held[0]))
    lives.seconds += 1_000.0

    assert lives.batch() == ()
    assert spans(job.context.released) == [("a", None, "2")]


def test_a_chunk_that_no_reader_had_begun_counts_nothing_however_often_the_job_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Snapshots({A: list(range(1, 17))}, LIMITS)
    lives = Lives(monkeypatch, job, deadly=0)
    lives.batch("s")
    for _ in range(30):
        lives.begin()
        assert lives.batch() == ()

    assert {(window.rows, window.attempt, window.lost) for window in job.context.planned} == {(8, 1, 1)}
    lives.read(lives.driver.orders)
    lives.batch()
    assert not any("QUARANTINED" in note for note in job.notified())
