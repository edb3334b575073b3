"""The planner as Spark asks it, and the tasks of its batches one after the other, in this process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.place import Place
from benchmarks.scaling.timing import took
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.planner.chunk_readers import Answer, Ask
from incsnap.planner.planner import Planner, first_position
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.partitions import BatchPart, ReadyPart, SlicePart
from incsnap.tasks.slice_rows import slice_rows


class PlannedJob:
    """The planner as Spark asks it, and the tasks of its batches one after the other, each kind timed."""

    def __init__(self, settings: Settings, root: str, readers: Callable[[Callable[[], None]], Any]) -> None:
        self.settings, self.root = settings, root
        self.planner = Planner(settings, WindowBuffers(root), 2, 1, readers)
        self.offset = first_position(settings, root, 1)

    def catch_up(self, changes: int) -> dict[str, float]:
        """Seconds of processor time a change for the planner, for a source's and a sink's task; bytes a change."""
        spent = dict.fromkeys(("planner", "source", "sink", "sink.elapsed"), 0.0)
        sizes = dict.fromkeys(("binlog", "record"), 0)
        sent = 0
        while sent < changes:
            parts, seconds = self.planned()
            spent["planner"] += seconds
            made: list[blocks.BlockRow] = []
            source = took(lambda parts=parts, made=made: made.extend(rows_of(parts, self.settings)))  # type: ignore[misc]
            spent["source"] += source.processor
            sizes["binlog"] += sum(len(part.slice.payload) for part in parts if isinstance(part, SlicePart))
            counted: list[int] = []
            sink = took(lambda made=made, counted=counted: counted.extend(self.send(made)))  # type: ignore[misc]
            spent["sink"] += sink.processor
            spent["sink.elapsed"] += sink.elapsed
            sent += counted[0]
            sizes["record"] += counted[1]
        return {
            **{key: seconds / sent for key, seconds in spent.items()},
            **{f"bytes.{key}": size / sent for key, size in sizes.items()},
        }

    def planned(self) -> tuple[list[BatchPart], float]:
        """The parts of the next batch, and what planning it took, the reading of the binlog with it."""
        began = time.process_time()
        while True:
            end = self.planner.plan(self.offset)
            if end != self.offset:
                break
            time.sleep(0.01)
        parts = self.planner.parts(self.offset, end)
        self.planner.committed(end)
        self.offset = end
        return parts, time.process_time() - began

    def send(self, rows: list[blocks.BlockRow]) -> tuple[int, int]:
        """Records and their bytes; all of one bucket."""
        if not rows:
            return 0, 0
        client = ClientSettings(self.settings.kafka.bootstrap_servers, self.settings.kafka.producer)
        writer = BucketWriter(client, self.settings.topic_prefix, self.offset.job_id)
        given = iter([blocks.to_arrow(sorted(rows, key=lambda row: row[2]), "digest")])
        counts = write_bucket(given, WindowBuffers(self.root), writer, lambda _: 1)
        return counts.events, counts.bytes


def rows_of(parts: Sequence[BatchPart], settings: Settings) -> Iterator[blocks.BlockRow]:
    for part in parts:
        if isinstance(part, ReadyPart):
            yield from part.rows
        elif isinstance(part, SlicePart):
            yield from slice_rows(part, settings, 1)


class _NoReaders:
    """No snapshot is asked for."""

    def ask(self, wish: Ask) -> None:
        pass

    def answers(self) -> list[Answer]:
        return []

    def close(self) -> None:
        pass


@contextmanager
def planned_job(place: Place, prefix: str) -> Iterator[PlannedJob]:
    with tempfile.TemporaryDirectory() as root:
        made = PlannedJob(settings_of(place, prefix), root, lambda _: _NoReaders())
        try:
            made.planner.plan(made.offset)  # the tail is connected, and has found its place
            yield made
        finally:
            made.planner.close()


def settings_of(place: Place, prefix: str) -> Settings:
    mysql = place.servers.mysql
    properties = {
        "database.hostname": mysql.host,
        "database.port": str(mysql.port),
        "database.user": mysql.user,
        "database.password": mysql.password,
        "topic.prefix": prefix,
        "database.include.list": place.database,
        "snapshot.mode": "no_data",
        "include.schema.changes": "false",
        "bootstrap.servers": place.servers.kafka,
        "checkpoint.location": "unused",
    }
    return from_properties(properties, {}).settings
