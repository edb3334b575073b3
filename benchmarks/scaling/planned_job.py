"""A planner as Spark calls it, and the tasks of its batches one after the other, all in this process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.benchmark_database import BenchmarkDatabase
from benchmarks.scaling.timing import took
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.planner.chunk_readers import ReaderMessage, ReaderPort, ReadOrders
from incsnap.planner.planner import Planner, first_position
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.partitions import BatchPart, ReadyPart, SlicePart
from incsnap.tasks.slice_rows import slice_rows

#: Pause between two calls for a batch, and the wait without a batch after which everything written has been read.
_POLL_SECONDS, _IDLE_SECONDS = 0.05, 0.5


class PlannedJob:
    """A planner as Spark calls it, and the tasks of its batches. Each kind of task is timed."""

    def __init__(self, settings: Settings, root: str, readers: Callable[[Callable[[], None]], ReaderPort]) -> None:
        self.settings, self.root = settings, root
        self.planner = Planner(settings, WindowBuffers(root), 2, 1, readers)
        self.offset = first_position(settings, 1)

    def catch_up(self, write: Callable[[], None]) -> dict[str, float]:
        """Call `write`, and then plan and send all that it has written. Return the cost of each change.

        The result has processor seconds by step (planner, source task, sink task), and the bytes of binlog and records.
        All changes are planned first, so that no thread of the planner works beside the tasks.
        """
        batches: list[list[BatchPart]] = []
        write()  # the tail connects afterwards, so it reads a backlog at its highest rate
        began = time.process_time()
        while (batch := self.planned(_IDLE_SECONDS)) is not None:
            batches.append(batch[0])
        spent = {"planner": time.process_time() - began, "source": 0.0, "sink": 0.0, "sink.elapsed": 0.0}
        binlog = records = sent = 0
        for parts in batches:
            made: list[blocks.BlockRow] = []
            source = took(partial(_fill, made, parts, self.settings))
            counts: list[int] = []
            sink = took(partial(self._count, counts, made))
            spent["source"] += source.processor
            spent["sink"] += sink.processor
            spent["sink.elapsed"] += sink.elapsed
            binlog += sum(len(part.slice.payload) for part in parts if isinstance(part, SlicePart))
            sent += counts[0]
            records += counts[1]
        return {
            **{step: seconds / sent for step, seconds in spent.items()},
            "bytes.binlog": binlog / sent,
            "bytes.record": records / sent,
        }

    def _count(self, counts: list[int], rows: list[blocks.BlockRow]) -> None:
        counts += self.send(rows)

    def planned(self, patience_seconds: float = 60.0) -> tuple[list[BatchPart], float] | None:
        """Return the next batch's parts and the processor seconds of planning it, including reading the binlog.

        Return None if nothing comes within `patience_seconds`.
        """
        began, deadline = time.process_time(), time.monotonic() + patience_seconds
        while (end := self.planner.plan(self.offset)) == self.offset:
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_SECONDS)
        parts = self.planner.parts(self.offset, end)
        self.planner.committed(end)
        self.offset = end
        return parts, time.process_time() - began

    def send(self, rows: list[blocks.BlockRow]) -> tuple[int, int]:
        """Send the rows in one transaction of one bucket. Return the number of records and of their bytes."""
        if not rows:
            return 0, 0
        client = ClientSettings(self.settings.kafka.bootstrap_servers, self.settings.kafka.producer)
        writer = BucketWriter(client, self.settings.topic_prefix, self.offset.job_id)
        given = iter([blocks.to_arrow(sorted(rows, key=lambda row: row[2]), "digest")])
        counts = write_bucket(given, WindowBuffers(self.root), writer, lambda _: 1)
        return counts.events, counts.bytes


def _fill(made: list[blocks.BlockRow], parts: Sequence[BatchPart], settings: Settings) -> None:
    made += rows_of(parts, settings)


def rows_of(parts: Sequence[BatchPart], settings: Settings) -> Iterator[blocks.BlockRow]:
    """Decode the parts and yield their rows, as source tasks do."""
    for part in parts:
        if isinstance(part, ReadyPart):
            yield from part.rows
        elif isinstance(part, SlicePart):
            yield from slice_rows(part, settings, 1)


class _NoReaders:
    """The chunk readers of a job without a snapshot."""

    def order(self, message: ReadOrders) -> None:
        pass

    def messages(self) -> list[ReaderMessage]:
        return []

    def close(self) -> None:
        pass


@contextmanager
def planned_job(bench: BenchmarkDatabase, prefix: str) -> Iterator[PlannedJob]:
    """Create a planned job, and close its planner when the block ends."""
    with tempfile.TemporaryDirectory() as root:
        made = PlannedJob(settings_of(bench, prefix), root, lambda _: _NoReaders())
        try:
            yield made
        finally:
            made.planner.close()


def settings_of(bench: BenchmarkDatabase, prefix: str) -> Settings:
    """Return the settings of a job on all tables of the benchmark's database."""
    mysql = bench.servers.mysql
    properties = {
        **mysql.properties(),
        "topic.prefix": prefix,
        "database.include.list": bench.database,
        "snapshot.mode": "no_data",
        "include.schema.changes": "false",
        "bootstrap.servers": bench.servers.kafka,
        "checkpoint.location": "unused",
    }
    return from_properties(properties, {}).settings
