"""A job without Spark: it calls the planner as Spark does, and runs the tasks of each batch here, one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.events import StreamPosition
from incsnap.planner.chunk_readers import Answer, ReaderMessage, ReadOrders
from incsnap.planner.planner import Planner, first_position
from incsnap.snapshot.offset import Offset
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.chunk import read_chunks
from incsnap.tasks.partitions import BatchPart, ReadyPart, SlicePart
from incsnap.tasks.slice_rows import slice_rows
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.kafka import one_partition
from tests.support.mysql_versions import end_of_binlog
from tests.support.waiting import PATIENCE_SECONDS


def settings_of(mysql: MySqlAddress, kafka: str, prefix: str, database: str, **more: str) -> Settings:
    """Return the settings of a job. `more` are further properties, with `__` for each dot of a name."""
    properties = {
        **mysql.properties(),
        "topic.prefix": prefix,
        "database.include.list": database,
        "snapshot.mode": "no_data",
        "bootstrap.servers": kafka,
        "checkpoint.location": "unused",
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return from_properties(properties, {}).settings


class ReadersAtHand:
    """Chunk readers in the planner's own process, which read each chunk at once."""

    def __init__(self, settings: Settings, root: str, wake: Callable[[], None]) -> None:
        self._settings = settings
        self._buffers = WindowBuffers(root)
        self._wake = wake
        self._messages: list[ReaderMessage] = []

    def order(self, message: ReadOrders) -> None:
        orders = message.orders
        while orders:
            read = read_chunks(orders, self._settings, self._buffers)
            self._messages += map(Answer, read)
            orders = orders[len(read) :]
        self._wake()

    def messages(self) -> list[ReaderMessage]:
        messages, self._messages = self._messages, []
        return messages

    def close(self) -> None:
        self._messages.clear()


def planner_at_hand(
    settings: Settings, root: str, slices: int = 1, readers: int = 1, run: str = "", report: str = ""
) -> Planner:
    return Planner(settings, WindowBuffers(root), slices, readers, partial(ReadersAtHand, settings, root), report, run)


@dataclass
class Sent:
    """A sent record. Records are in the order of their bucket."""

    topic: str
    key: Any
    value: Any


@dataclass
class PlannedJob:
    """A job on real servers, whose sink keeps the records in `sent`."""

    settings: Settings
    root: str  #: folder of the checkpoint
    buckets: int = 2
    parallelism: int = 2
    run: str = "first"  #: id of the run; a restart of the query alone keeps it
    #: file of its reports
    report: str = ""
    sent: list[Sent] = field(default_factory=list)
    batches: list[tuple[Offset, Offset]] = field(default_factory=list)  #: start and end of each batch

    def __post_init__(self) -> None:
        self.planner = self._planner()
        self.offset = first_position(self.settings, self.buckets, Files(self.root))

    def _planner(self) -> Planner:
        return planner_at_hand(self.settings, self.root, self.parallelism, self.parallelism, self.run, self.report)

    def close(self) -> None:
        self.planner.close()

    def restart(self, settings: Settings | None = None, run: str = "") -> None:
        """Start the job again, as after a crash, from its offset alone.

        `settings` replace its settings. `run` is given if the whole job starts again, and not only its query.
        """
        self.planner.close()
        self.run = run or self.run
        self.settings = settings or self.settings
        written = json.dumps(self.planner.offsets.dump(self.offset))
        self.planner = self._planner()
        self.offset = self.planner.offsets.load(json.loads(written))

    def batch(self) -> bool:
        """Run one batch. Return False if there was nothing to do."""
        end = self.planner.plan(self.offset)
        if end is self.offset or end == self.offset:
            return False
        parts = self.planner.parts(self.offset, end)
        self.sent += run(parts, self.settings, self.root)
        self.planner.committed(end)
        self.batches.append((self.offset, end))
        self.offset = end
        return True

    def until(self, topic: str, count: int = 1) -> None:
        """Run batches until `count` records of the topic were sent."""
        self.batches_until(lambda: len(self.of(topic)) >= count, f"{count} records of {topic}")

    def batches_until(self, done: Callable[[], bool], what: str) -> None:
        """Run batches until `done()` is true.

        The limit is a time: the duration of a batch varies too much for a number.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done():
            assert time.monotonic() < deadline, f"no {what} in {PATIENCE_SECONDS} s: {self.offset}"
            self.batch()

    def of(self, topic: str) -> list[Sent]:
        """Return the records of the topic."""
        return [each for each in self.sent if each.topic == topic]


def run(parts: list[BatchPart], settings: Settings, root: str, now_us: int = 1) -> list[Sent]:
    """Return what the tasks of a batch send, with rows of windows, bucket by bucket in the sink's order."""
    made: list[blocks.BlockRow] = []
    for part in parts:
        if isinstance(part, ReadyPart):
            made += part.rows
        elif isinstance(part, SlicePart):
            made += slice_rows(part, settings, now_us)
    rows = sorted(made)
    sent: list[Sent] = []
    for _, some in groupby(rows, lambda row: row[1]):
        write_bucket(iter([blocks.to_arrow(some, "digest")]), WindowBuffers(root), _Records(sent), one_partition)
    return sent


@dataclass
class _Records(AbstractContextManager["_Records"]):
    """A stand-in for Kafka that keeps all records."""

    sent: list[Sent]

    def open(self, bucket: int, batch: int, digest: str) -> _Records:
        return self

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch) -> None:
        names = [topic for topic, count in topics for _ in range(count)]
        rows = zip(names, records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True)
        self.sent += [Sent(topic, _json(key), _json(value)) for topic, key, value in rows]

    def commit(self, place: str = "") -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def read_to_the_end(patch: pytest.MonkeyPatch, mysql: MySqlAddress) -> None:
    """Let a batch end only where the binlog ends now, or where the batch is full, with all of the binlog read.

    A batch takes what the tail has read until then. On a slow machine this may be a few transactions of many.
    """
    advance = Tail.advance

    def to_the_end(tail: Tail, start: StreamPosition, max_bytes: int, max_rows: int | None, *_: object) -> Advance:
        with closing(connect(mysql)) as connection:
            end = end_of_binlog(connection)
        # A full batch ends before. What lies behind it is read, too.
        tail.changes_behind(start, end, PATIENCE_SECONDS)
        return advance(tail, start, max_bytes, max_rows, end, PATIENCE_SECONDS)

    patch.setattr(Tail, "advance", to_the_end)


MakeJob = Callable[..., PlannedJob]


@contextmanager
def planned_jobs(settings: Callable[..., Settings], folder: Path, *, one_checkpoint: bool = False) -> Iterator[MakeJob]:
    """Yield a function that creates jobs from options, and close all jobs when the block ends.

    `settings` makes the settings from these options. Each job has its own checkpoint in `folder`, or all share one.
    """
    numbers = count()
    with ExitStack() as jobs:

        def make(buckets: int = 2, **options: str) -> PlannedJob:
            root = folder / ("root" if one_checkpoint else str(next(numbers)))
            job = PlannedJob(settings(**options), str(root), buckets)
            jobs.callback(job.close)
            return job

        yield make


def _json(content: bytes | None) -> Any:
    return None if content is None else json.loads(content)
