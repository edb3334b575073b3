"""The planner's port to the stream: how far the tail has come, and what it brought."""

from __future__ import annotations

import time

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.table_rows import Charsets
from incsnap.binlog.tail import Tail
from incsnap.config.settings import Settings
from incsnap.config.topics import schema_topic
from incsnap.events import StreamPosition
from incsnap.planner.batch_budget import BatchBudget
from incsnap.planner.heartbeat import Heartbeat
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import awaited
from incsnap.snapshot.offset import Offset, OpenCounts
from incsnap.snapshot.window import ChunkResult
from incsnap.tables import TableShape
from incsnap.tasks.slice_records import open_counts

#: Seconds to wait for changes when nothing else is to be done. Spark asks again at once. A stop waits at most this
#: long.
_IDLE_SECONDS = 0.2
#: Least seconds to wait while a table is being read and no chunk is in flight, because its chunks are backing off.
#: Without a wait the planner would keep a core busy.
_BUSY_SECONDS = 0.02
#: Seconds to wait until the tail has passed a high watermark. Without a backlog the tail is milliseconds behind. With a
#: backlog the batch must not wait.
_WATERMARK_SECONDS = 0.25
#: Seconds that a job's first batch waits until the stream has begun. A server that is 100 ms away needs one or two.
_CONNECT_SECONDS = 30.0
#: Seconds between two looks whether the stream has begun. Something else may end the wait for changes at once, and the
#: planner must not keep a core busy.
_CONNECT_AGAIN_SECONDS = 0.01


class StreamPort:
    """The stream of one planner. `budget` bounds a batch; `heartbeat` may end the wait for changes."""

    def __init__(self, settings: Settings, budget: BatchBudget, heartbeat: Heartbeat) -> None:
        self._settings = settings
        self._budget = budget
        self._heartbeat = heartbeat
        self._reports_tables = schema_topic(settings) is not None

    def advance(self, start: Offset, tail: Tail, results: dict[str, ChunkResult], *, held_back: bool) -> Advance:
        """Return how far the stream has come. Changes of captured tables slow down the chunk readers.

        `results` are those of chunks that were read since `start`, by window. `held_back`: whether a measured load
        keeps chunks from being planned.

        A job's first batch writes to the schema change topic which tables exist. That is certain only once the stream
        has begun, so the first batch waits for the stream.
        """
        until = awaited(start.snapshot, results, start.stream.server_uuid)
        wait_seconds = _seconds_to_wait(start.snapshot, awaits_watermark=until is not None, held_back=held_back)
        deadline = time.monotonic() + (_CONNECT_SECONDS if start.batch == 0 and self._reports_tables else 0.0)
        while True:
            advance = tail.advance(
                start.stream,
                self._budget.binlog_bytes,
                self._settings.max_batch_rows,
                (until.file, until.pos) if until else None,
                min(wait_seconds, self._heartbeat.seconds_left()),
            )
            if advance.end.server_uuid or time.monotonic() >= deadline:
                break
            time.sleep(_CONNECT_AGAIN_SECONDS)
        if advance.tables - {self._settings.signals.data_collection}:
            self._budget.changes_came()
        return advance

    def open_counts(
        self, start: Offset, end: StreamPosition, tail: Tail, definitions: tuple[TableShape, ...], charsets: Charsets
    ) -> OpenCounts | None:
        """Return the counts of the transaction in which the batch ends, with those of earlier batches; None if nothing
        is counted.

        `definitions` are those of tables whose rows do not name their columns.
        """
        if not self._settings.transaction_metadata or not end.open_gtid:
            return None
        counted_before = start.counted if start.stream.open_gtid == end.open_gtid else None
        slices = tail.slices(start.stream, end, 1, whole=True)
        if not slices or slices[0].transactions.gtids()[-1] != end.open_gtid:
            return counted_before
        return open_counts(slices[0].with_definitions(definitions), charsets, self._settings, counted_before)


def _seconds_to_wait(snapshot: SnapshotContext, *, awaits_watermark: bool, held_back: bool) -> float:
    """Return how many seconds to wait for changes. An answer of the chunk readers ends the wait as well."""
    if any(window.passed for window in snapshot.held):
        return 0.0  # there are parts to send
    if snapshot.wholly_released():
        return 0.0  # there are ends of tables to report
    if awaits_watermark:
        return _WATERMARK_SECONDS
    if snapshot.active and not snapshot.paused and not snapshot.in_flight and not held_back:
        wait_ms = snapshot.throttle.next_ms - time.time_ns() // 1_000_000
        return min(_IDLE_SECONDS, max(_BUSY_SECONDS, wait_ms / 1000))
    return _IDLE_SECONDS
