"""Tests of chunks that take long, with the engine, the planner's results and slow readers: no chunk is lost."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.planner.chunk_readers import Answer, Begun, PutBack, ReaderMessage, ReadOrders
from incsnap.planner.chunk_results import ChunkResults
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.snapshot.sizing import Limits, select_seconds
from incsnap.snapshot.window import ChunkResult, Window
from incsnap.tables import TableId
from incsnap.tasks.chunk import JOB_SECONDS
from incsnap.tasks.partitions import ChunkOrder
from tests.support.files_in_memory import FilesInMemory
from tests.support.snapshots import A, Snapshots, execute, position

#: The limits that a job has by default (`planner.batch_budget`).
LIMITS = Limits(8, 8, cuts=2, small_rows=1_000, small_windows=256, first_windows=2)


class SlowReaders:
    """Readers that take `own` seconds for each SELECT and `each` seconds for a row, in jobs like the driver's."""

    def __init__(self, job: Snapshots, buffers: WindowBuffers, count: int, own: float, each: float) -> None:
        self.job, self.buffers, self.own, self.each = job, buffers, own, each
        self.seconds = 0.0
        self.waiting: list[ChunkOrder] = []
        self.busy: list[tuple[float, list[ReaderMessage]] | None] = [None] * count
        self.happened: list[ReaderMessage] = []

    def order(self, message: ReadOrders) -> None:
        self.waiting = [each for each in (*self.waiting, *message.orders) if each.read.window.id not in message.dropped]

    def messages(self) -> list[ReaderMessage]:
        happened, self.happened = self.happened, []
        return happened

    def close(self) -> None: ...

    def go_on(self, seconds: float) -> None:
        self.seconds += seconds
        for number, busy in enumerate(self.busy):
            if busy is not None and busy[0] <= self.seconds:
                self.happened += busy[1]
                self.busy[number] = busy = None
            if busy is None and self.waiting:
                self.busy[number] = self._begun()

    def _begun(self) -> tuple[float, list[ReaderMessage]]:
        """Begin a job: take half of what waits, and read as much of it as the job has time for.

        Return when the job ends, and what it reports then.
        """
        share = -(-len(self.waiting) // len(self.busy))
        taken, self.waiting = self.waiting[:share], self.waiting[share:]
        ids = [order.read.window.id for order in taken]
        self.happened.append(Begun(tuple(ids)))
        took = 0.0
        while ids and took < JOB_SECONDS:
            took += self._read(taken[len(taken) - len(ids)].read.window)
            ids.pop(0)
        read = len(taken) - len(ids)
        self.waiting = taken[read:] + self.waiting
        return self.seconds + took, [PutBack(tuple(ids)), *(Answer(order.read.window.id) for order in taken[:read])]

    def _read(self, window: Window) -> float:
        needed = self.own + self.each * len(self.job.rows(window))
        may_take = select_seconds(window.doublings, LIMITS.query_seconds)
        if needed > may_take:
            self.buffers.write_manifest(window.id, ChunkResult(error=f"timeout: more than {may_take:g} s"))
            return may_take
        self.buffers.write_manifest(window.id, self.job.good(window, seconds=needed))
        return needed


def run(
    monkeypatch: pytest.MonkeyPatch, tables: dict[TableId, int], own: float, each: float
) -> tuple[float, Snapshots]:
    """Run the snapshot of tables with so many rows. Return how many seconds it takes, and the job."""
    job = Snapshots({table: list(range(1, rows + 1)) for table, rows in tables.items()}, LIMITS)
    buffers = WindowBuffers("/nowhere")
    monkeypatch.setattr(buffers, "_files", FilesInMemory())
    readers = SlowReaders(job, buffers, 2, own, each)
    topics = {str(table): 1 for table in tables}
    results = ChunkResults(readers, buffers, 2, lambda table: (str(table),), clock=lambda: readers.seconds)
    commands = [execute("s", *tables)]
    for _ in itertools.count():
        offset = Offset("job", job.number, position(job.pos), TopicLayout(1, topics), job.context)
        arrived = results.arrived(offset)
        job.result = lambda window, arrived=arrived: arrived.get(window.id)
        plan = job.batch(*commands)
        commands = []
        results.order(Offset("job", job.number, position(job.pos), TopicLayout(1, topics), job.context))
        lost = [warning for warning in plan.warnings if "lost" in warning or "left" in warning]
        assert lost == []
        if not job.context.active:
            return readers.seconds, job
        assert readers.seconds < 7_200, job.context
        readers.go_on(1.0)
    raise AssertionError


def read_once(job: Snapshots, rows: int) -> bool:
    """Whether each of the `rows` rows of A was released exactly once."""
    released = Counter(
        row for context in job.log for each in context.released if each.is_last for row in job.rows(each.window)
    )
    return len(released) == rows and set(released.values()) == {1}


@pytest.mark.parametrize(
    ("own", "each", "within"),
    [(0.0, 0.004, 300.0), (4.0, 0.000_004, 120.0), (30.0, 0.000_004, 500.0), (0.0, 0.000_004, 20.0)],
)
def test_a_table_of_slow_chunks_is_read_in_one_pass(
    monkeypatch: pytest.MonkeyPatch, own: float, each: float, within: float
) -> None:
    seconds, job = run(monkeypatch, {A: 131_072}, own, each)

    assert read_once(job, 131_072)
    assert seconds < within
    assert not any(note[1] == "QUARANTINED" for note in job.notified())
    assert max(len(context.in_flight) for context in job.log) <= LIMITS.windows


def test_small_tables_are_still_read_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {TableId("db", f"t{number:03}"): 10 for number in range(300)}
    seconds, job = run(monkeypatch, tables, 0.002, 0.0)

    assert max(len(context.in_flight) for context in job.log) == LIMITS.small_windows
    assert seconds < 20.0
