"""The planner and the driver's readers over their real socket. Only Spark is replaced, so that its jobs can fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from incsnap.planner.chunk_readers import Answer, Begun, ChunkReaders, PutBack, ReaderMessage, ReadersGone, ReadOrders
from incsnap.snapshot.window import ChunkResult
from incsnap.spark import reader_jobs
from incsnap.spark.owned_folders import sweep
from incsnap.spark.reader_jobs import ReaderJobs, ReaderPool
from incsnap.tasks.partitions import ChunkOrder
from lab.addresses import MySqlAddress
from tests.support.chunk_orders import order
from tests.support.files_in_memory import FilesInMemory
from tests.support.planned_job import settings_of
from tests.support.waiting import wait_until

SECONDS = 20.0


class Spark:
    """A session that runs a job's one task on a thread of its own.

    A cancelled job ends at once, though its task may hang.
    """

    def __init__(self) -> None:
        self.sparkContext = self
        self._of_thread = threading.local()
        self._ended: dict[str, Future[list[Answer]]] = {}

    def setJobGroup(self, group: str, *_: object) -> None:  # noqa: N802
        self._of_thread.group = group

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        if group in self._ended:
            with suppress(InvalidStateError):
                self._ended[group].set_exception(OSError("the job was cancelled"))

    def parallelize(self, *_: object) -> Spark:
        return self

    def mapPartitions(self, task: Callable[[Iterator[Any]], Iterator[Answer]]) -> Spark:  # noqa: N802
        self._of_thread.task = task
        return self

    def collect(self) -> list[Answer]:
        task, ended = self._of_thread.task, Future[list[Answer]]()
        self._ended[self._of_thread.group] = ended

        def run() -> None:
            try:
                answers = list(task(iter(())))
            except Exception as error:  # noqa: BLE001 - any error that a test raises
                ended.set_exception(error)
                return
            with suppress(InvalidStateError):
                ended.set_result(answers)

        threading.Thread(target=run, daemon=True).start()
        return ended.result(9 * SECONDS)


class Pool:
    """The readers of one job, and its planner's end of the socket. `spark`: a session that another job uses too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, readers: int, spark: Any = None) -> None:
        self.task: Callable[[list[str]], None] = lambda _: None
        #: Most chunks that a job has time for.
        self.most = 99

        def read(
            _settings: str, _root: str, _level: int, _many: bool, orders: tuple[ChunkOrder, ...], _: object
        ) -> Iterator[Answer]:
            ids = [order.read.window.id for order in orders]
            self.task(ids)
            return iter(map(Answer, ids[: self.most]))

        monkeypatch.setattr(reader_jobs, "_read_on_executor", read)
        settings = settings_of(MySqlAddress("h", 1), "k:1", "p", "d")
        session: Any = spark or Spark()
        self.jobs = ReaderJobs(session, settings, "/nowhere", ReaderPool(readers, 1), 20)
        self.woken = threading.Event()
        self.planner = ChunkReaders(self.jobs.address, self.woken.set)

    def ask(self, *names: str, at_once: int = 9, rows: int = 50_000) -> None:
        self.planner.order(ReadOrders(tuple(order(name, rows) for name in names), at_once))

    def wait_for_orders(self, *names: str) -> None:
        """Wait until exactly the orders of these windows wait for a reader.

        The driver has then received all orders, and its readers have taken the others.
        """
        queue = self.jobs._queue
        # The queue is polled, because readers do not notify anyone when they take orders.
        wait_until(lambda: tuple(each.read.window.id for each in [*queue._waiting]) == names, SECONDS, every=0.005)

    def answers(self, count: int) -> list[Answer]:
        return [message for message in self.messages(count) if isinstance(message, Answer)]

    def messages(self, answers: int) -> list[ReaderMessage]:
        """Return all that the planner receives, up to the given number of answers."""
        happened: list[ReaderMessage] = []
        while sum(isinstance(message, Answer) for message in happened) < answers:
            assert self.woken.wait(SECONDS), f"{happened} and no more in {SECONDS} s"
            self.woken.clear()
            happened += self.planner.messages()
        return happened


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    pool = Pool(monkeypatch, readers=2)
    monkeypatch.setattr(pool.jobs._buffers, "_files", FilesInMemory())
    yield pool
    pool.planner.close()
    pool.jobs.close()


def test_every_chunk_that_was_asked_for_is_answered(pool: Pool) -> None:
    pool.ask("a", "b", "c")

    assert sorted(pool.answers(3)) == [Answer("a"), Answer("b"), Answer("c")]


@pytest.mark.parametrize("error", [OSError("an executor is gone"), ZeroDivisionError("nobody thought of it")])
def test_a_job_that_fails_is_answered_for_each_of_its_chunks_and_its_reader_goes_on(
    pool: Pool, error: Exception
) -> None:
    def fail(_: list[str]) -> None:
        raise error

    pool.task = fail
    for _ in range(3):
        pool.ask("a", "b", rows=10)
        assert sorted(pool.answers(2)) == [Answer("a", str(error)), Answer("b", str(error))]
    pool.task = lambda _: None
    pool.ask("a")
    assert pool.answers(1) == [Answer("a")]


def test_readers_are_closed_behind_a_session_that_was_stopped(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        # PySpark raises this for a context without a JVM
        raise AttributeError("'NoneType' object has no attribute 'sc'")

    monkeypatch.setattr(pool.jobs._context, "cancelJobGroup", stopped)
    pool.jobs.close()
    assert not Path(pool.jobs.address.path).exists()


def test_small_chunks_share_a_job(pool: Pool) -> None:
    jobs: list[list[str]] = []
    pool.task = jobs.append
    pool.ask(*"abcd", at_once=1, rows=1_000)
    pool.answers(4)

    assert jobs == [["a", "b", "c", "d"]]


def test_a_chunk_that_was_lost_twice_is_read_by_itself(pool: Pool) -> None:
    jobs: list[list[str]] = []
    pool.task = jobs.append
    lost = {"c": 1, "d": 2, "e": 3}
    pool.planner.order(ReadOrders(tuple(order(name, 1_000, lost.get(name, 0)) for name in "abcdefg"), 1))
    pool.answers(7)

    assert jobs == [["a", "b", "c"], ["d"], ["e"], ["f", "g"]]


def test_chunks_that_a_job_has_no_time_for_wait_first_in_the_queue_and_are_reported(pool: Pool) -> None:
    jobs: list[list[str]] = []
    pool.task = jobs.append
    pool.most = 2
    pool.ask(*"abcde", at_once=1, rows=1_000)
    messages = pool.messages(5)

    assert jobs == [list("abcde"), list("cde"), ["e"]]
    happened = [Begun(tuple("abcde")), PutBack(tuple("cde")), Answer("a"), Answer("b"), Begun(tuple("cde"))]
    assert messages[: len(happened)] == happened


def test_of_a_job_that_fails_only_the_chunk_it_failed_of_is_lost(pool: Pool) -> None:
    jobs: list[list[str]] = []

    def die_of_c(ids: list[str]) -> None:
        jobs.append(ids)
        for id_ in ids:
            if id_ == "c":
                raise OSError("the executor is gone")
            pool.jobs._buffers.write_manifest(id_, ChunkResult(rows=1))

    pool.task = die_of_c
    pool.ask(*"abcde", at_once=1, rows=1_000)

    assert pool.answers(5) == [*map(Answer, "ab"), Answer("c", "the executor is gone"), *map(Answer, "de")]
    assert jobs == [list("abcde"), list("de")]


def test_a_window_that_is_dropped_while_its_job_runs_is_not_put_back(pool: Pool) -> None:
    go_on, is_reading = threading.Event(), threading.Event()
    jobs: list[list[str]] = []

    def wait(ids: list[str]) -> None:
        jobs.append(ids)
        is_reading.set()
        assert go_on.wait(SECONDS)

    pool.task = wait
    pool.most = 1
    pool.ask("a", "b", "c", at_once=1, rows=1_000)
    assert is_reading.wait(SECONDS)
    pool.planner.order(ReadOrders((), 1, frozenset({"b"})))
    pool.ask("d", at_once=1, rows=1_000)
    pool.wait_for_orders("d")
    go_on.set()

    assert [answer.window_id for answer in pool.answers(3)] == ["a", "c", "d"]


def test_a_reader_that_hangs_gives_up_its_place_when_its_windows_are_dropped(pool: Pool) -> None:
    hangs, both = threading.Event(), threading.Barrier(3)

    def hang(ids: list[str]) -> None:
        if ids[0].startswith("hung"):
            both.wait(SECONDS)
            hangs.wait(9 * SECONDS)

    pool.task = hang
    pool.ask("hung 1", "hung 2")
    both.wait(SECONDS)
    pool.ask("c", "d")
    pool.planner.order(ReadOrders((), 9, frozenset({"hung 1", "hung 2"})))

    try:
        assert {answer.window_id for answer in pool.answers(4)} == {"hung 1", "hung 2", "c", "d"}
    finally:
        hangs.set()


def test_a_job_goes_on_while_one_of_its_windows_is_wanted(pool: Pool) -> None:
    go_on, is_reading = threading.Event(), threading.Event()

    def wait(_: list[str]) -> None:
        is_reading.set()
        assert go_on.wait(SECONDS)

    pool.task = wait
    pool.ask("a", "b", at_once=1, rows=1_000)
    assert is_reading.wait(SECONDS)
    pool.planner.order(ReadOrders((), 1, frozenset({"a"})))
    pool.ask("c", at_once=1)
    pool.wait_for_orders("c")
    go_on.set()

    assert pool.answers(3) == [Answer("a"), Answer("b"), Answer("c")]


def test_a_chunk_whose_select_takes_long_keeps_no_other_waiting(pool: Pool) -> None:
    jobs: list[list[str]] = []
    pool.task = jobs.append
    slow = {"b": 1}
    pool.planner.order(ReadOrders(tuple(order(name, 1_000, doublings=slow.get(name, 0)) for name in "abcd"), 1))
    pool.answers(4)

    assert jobs == [["a"], ["b"], ["c", "d"]]


def test_no_more_chunks_are_read_at_once_than_the_planner_lets(pool: Pool) -> None:
    lock, running, most = threading.Lock(), 0, 0
    together = threading.Barrier(2)

    def count(_: list[str]) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if both:
            together.wait(SECONDS)
        with lock:
            running -= 1

    both = False
    pool.task = count
    pool.ask(*"abcdef", at_once=1)
    pool.answers(6)
    assert most == 1
    both = True
    pool.ask("g", "h", at_once=2)
    pool.answers(2)
    assert most == 2


def test_a_window_that_was_dropped_before_its_turn_is_not_read(pool: Pool) -> None:
    go_on, is_reading = threading.Event(), threading.Event()

    def wait(_: list[str]) -> None:
        is_reading.set()
        assert go_on.wait(SECONDS)

    pool.task = wait
    pool.ask("a", "b", "c", at_once=1)
    assert is_reading.wait(SECONDS)
    pool.planner.order(ReadOrders((), 1, frozenset({"b"})))
    pool.ask("d", at_once=1)
    pool.wait_for_orders("c", "d")
    go_on.set()

    assert [answer.window_id for answer in pool.answers(3)] == ["a", "c", "d"]


def test_jobs_of_one_session_read_together_as_many_chunks_as_one_alone_and_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, lock, go_on = Spark(), threading.Lock(), threading.Event()
    pools = [Pool(monkeypatch, readers=2, spark=session) for _ in range(3)]
    running, most, read = 0, 0, ""

    def count(ids: list[str]) -> None:
        nonlocal running, most, read
        with lock:
            running += 1
            most = max(most, running)
            read += ids[0][0]
        assert go_on.wait(SECONDS)
        with lock:
            running -= 1

    for pool in pools:
        pool.task = count
    try:
        for pool, name in zip(pools, "abc", strict=True):
            pool.ask(*(f"{name}{number}" for number in range(4)))
            # The job's two readers have taken the other chunks.
            pool.wait_for_orders(f"{name}2", f"{name}3")
        go_on.set()
        for pool in pools:
            pool.answers(4)
    finally:
        for pool in pools:
            pool.planner.close()
            pool.jobs.close()

    assert most == 2
    # Between its turn and its task a reader writes to the planner, so another job's reader may be one step ahead.
    assert all(read[:6].count(each) in (1, 2, 3) for each in "abc")


def test_a_job_that_ends_gives_its_turn_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    session, go_on, is_reading = Spark(), threading.Event(), threading.Event()
    one, other = (Pool(monkeypatch, readers=1, spark=session) for _ in range(2))

    def wait(_: list[str]) -> None:
        is_reading.set()
        assert go_on.wait(SECONDS)

    other.task = one.task = wait
    one.ask("a")
    assert is_reading.wait(SECONDS)
    other.ask("b")
    turns = one.jobs._turns
    wait_until(lambda: len(turns._waiting) == 1, SECONDS)
    other.planner.close()
    other.jobs.close()
    wait_until(lambda: not turns._waiting, SECONDS / 2)
    one.ask("c")
    go_on.set()

    assert [answer.window_id for answer in one.answers(2)] == ["a", "c"]
    one.planner.close()
    one.jobs.close()


def test_the_planner_learns_that_the_driver_is_gone(pool: Pool) -> None:
    pool.jobs.close()
    assert pool.woken.wait(SECONDS)

    with pytest.raises(ReadersGone):
        pool.planner.messages()


def test_a_stranger_is_not_let_in_and_the_next_planner_is(pool: Pool) -> None:
    pool.planner.close()
    with pytest.raises(ReadersGone):
        ChunkReaders(pool.jobs.address._replace(key="00" * 32), pool.woken.set)
    pool.woken.clear()
    pool.planner = ChunkReaders(pool.jobs.address, pool.woken.set)
    pool.ask("a")

    assert pool.answers(1) == [Answer("a")]


def test_a_job_that_looks_whether_this_one_lives_is_not_taken_for_a_stranger(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(Path(pool.jobs.address.path).parent.parent))
    pool.planner.close()
    sweep(reader_jobs._PREFIX, reader_jobs._SOCKET)
    pool.woken.clear()
    pool.planner = ChunkReaders(pool.jobs.address, pool.woken.set)
    pool.ask("a")

    assert pool.answers(1) == [Answer("a")]
    assert caplog.messages == []


def test_a_planner_that_is_closed_takes_nothing_of_what_comes_to_the_next(pool: Pool) -> None:
    for number in range(30):
        pool.planner.close()
        # The new planner gets the same descriptor number, if that is free.
        pool.planner = ChunkReaders(pool.jobs.address, pool.woken.set)
        pool.woken.clear()
        pool.ask(f"chunk {number}")
        assert pool.answers(1) == [Answer(f"chunk {number}")]


def test_a_stranger_is_told_of(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    pool.planner.close()
    with pytest.raises(ReadersGone):
        ChunkReaders(pool.jobs.address._replace(key="00" * 32), pool.woken.set)
    pool.planner = ChunkReaders(pool.jobs.address, pool.woken.set)

    assert ["A connection to the chunk readers was refused" in message for message in caplog.messages] == [True]


def test_closing_twice_leaves_no_thread_of_the_readers_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    pool = Pool(monkeypatch, readers=3)
    pool.planner.close()
    pool.jobs.close()
    pool.jobs.close()

    for thread in set(threading.enumerate()) - before:
        thread.join(SECONDS)
        assert not thread.is_alive(), thread.name


@pytest.mark.parametrize(
    ("slots", "most", "expected"),
    [(4, None, (2, 2)), (4, 1, (1, 3)), (4, 99, (3, 1)), (2, None, (1, 1)), (1, None, (1, 1)), (16, None, (8, 8))],
)
def test_readers_never_take_the_last_slot_but_where_there_is_one(
    slots: int, most: int | None, expected: tuple[int, int]
) -> None:
    readers = ReaderPool.of(slots, most)

    assert (readers.count, readers.stream) == expected
