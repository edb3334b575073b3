"""The planner's first step: everything that the next batch depends on and that cannot be computed is looked for here.

Nothing of the batch is decided or written down yet: observed again, something else may be found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.control_records import ControlRecord
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.record_form import record_form
from incsnap.config.settings import Settings
from incsnap.config.topics import schema_topic, topics_of
from incsnap.events import StreamPosition, server_of
from incsnap.mysql.catalog import ignores_letter_case, tables
from incsnap.mysql.known_defaults import KnownDefaults
from incsnap.planner.chunk_readers import ChunkReading
from incsnap.planner.definitions import DefinitionsAt
from incsnap.planner.heartbeat import Heartbeat
from incsnap.planner.known_definitions import BatchKnowledge, KnownDefinitions
from incsnap.planner.load_watch import LoadWatch
from incsnap.planner.pace import Pace
from incsnap.planner.query_connection import QueryConnection
from incsnap.planner.schema_changes import statement_records
from incsnap.planner.signal_commands import CapturedTables
from incsnap.planner.signal_inbox import SignalInbox
from incsnap.planner.start_snapshot import StartSnapshot
from incsnap.planner.topic_layout import Layouts
from incsnap.planner.window_readings import WindowReadings, refused_rows
from incsnap.snapshot.commands import Command
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import BatchFacts, Plan, awaited
from incsnap.snapshot.load import MeasuredLoad
from incsnap.snapshot.offset import Offset, OpenCounts
from incsnap.snapshot.throttle import STREAM_LAG
from incsnap.snapshot.window import Reading
from incsnap.tables import TableDefaults, TableId, TableShape
from incsnap.tasks.slice_records import open_counts

#: Seconds to wait for changes when nothing else is to be done. Spark asks again at once; a stop waits at most this
#: long.
_IDLE_SECONDS = 0.2
#: The same while a table is being read but nothing is in flight (its chunks are backing off): no spinning.
_BUSY_SECONDS = 0.02
#: Seconds by which the stream may be behind the server's commits, with more buffered than a batch takes, before no
#: chunk is planned any more: a new window would have to be freed of the keys of the whole backlog.
_BEHIND_SECONDS = 5.0
#: Seconds to wait for the tail to pass a high watermark. It is milliseconds behind unless there is a backlog, and then
#: the batch must not wait.
_WATERMARK_SECONDS = 0.25
#: Seconds that a job's first batch waits until the stream has begun. A server that is 100 ms away takes one or two.
_CONNECT_SECONDS = 30.0
#: Seconds until it is asked for again: no spinning where something else ends the wait for changes at once.
_CONNECT_AGAIN_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Observed:
    """What was found. ``advance``: of the stream. ``facts``: all that the engine decides by. ``signal_positions``: how
    far each signal channel was read.

    ``control``: the batch's records of schema changes and truncations, and a heartbeat that is due. ``defaults``: the
    DEFAULTs of columns that its schemas show, None where schemas are not written. ``knowledge``: of tables whose rows
    do not name their columns, None where all do. ``counted``: of the transaction that is open at the batch's end, where
    transactions are counted. ``behind_seconds``: since the last transaction of the batch was committed.
    """

    advance: Advance
    facts: BatchFacts
    signal_positions: dict[str, Any]
    control: tuple[ControlRecord, ...]
    defaults: TableDefaults | None
    knowledge: BatchKnowledge | None
    counted: OpenCounts | None
    behind_seconds: float


class Observer:
    """It reaches the tail, MySQL, Kafka, the signal channels and the chunk readers. ``readers``: chunks that may be
    read at the same time; ``open_readers`` and ``run`` as in ``Planner``; ``definitions``: of tables whose rows do not
    name their columns."""

    def __init__(
        self,
        settings: Settings,
        buffers: WindowBuffers,
        queries: QueryConnection,
        layouts: Layouts,
        readers: int,
        open_readers: Callable[[Callable[[], None]], ChunkReading],
        definitions: KnownDefinitions,
        run: str,
    ) -> None:
        self._settings = settings
        self._definitions = definitions
        self._buffers = buffers
        self._queries = queries
        self._layouts = layouts
        self._readers = readers
        self._open_readers = open_readers
        self._readings: WindowReadings | None = None
        self._inbox = SignalInbox(settings)
        self._heartbeat = Heartbeat(settings)
        self._start_snapshot = StartSnapshot(settings.snapshot, run)
        self._form = record_form(settings)
        self._tells_tables = schema_topic(settings) is not None
        self._defaults = KnownDefaults(definitions=settings.columns.needs_definitions)
        query_seconds = settings.mysql.query_timeout_seconds
        self._pace = Pace(settings.snapshot, buffers.root, readers, query_seconds)
        self._loads = LoadWatch(settings.mysql, settings.snapshot)
        #: Did a load that was measured hold chunks back in the last planning?
        self._held_back = False
        #: Has a batch of this planner been planned? It has left out all tables that are not captured.
        self._has_begun = False

    @property
    def is_quiet(self) -> bool:
        """Whether nobody has written for a while."""
        return self._pace.is_quiet

    def observe(self, start: Offset, tail: Tail, connection: Connection[Any]) -> Observed:
        """What there is for the batch behind ``start``. Waits for changes a moment where there is nothing to do."""
        self._pace.measure()
        outdated, readings = self._read_windows(start, tail)
        advance = self._advance(start, tail, readings)
        if not outdated and (late := self._late_readings(start)):
            # What has ended the wait. Left for the next batch, it comes behind one that releases nothing (75-100 ms).
            readings.update(late)
            advance = self._advance(start, tail, readings)
        behind_seconds = time.time() - advance.last_ts_us / 1e6
        behind = advance.full and behind_seconds > _BEHIND_SECONDS
        knowledge = self._definitions.at(start, advance, tail, connection, behind=behind)
        unnamed = {each.table for each in advance.unnamed}
        of_rows = knowledge.definitions.of_rows(unnamed) if knowledge is not None else ()
        commands, positions = self._signals(start, advance, connection, of_rows)
        if knowledge is not None:
            commands = (*knowledge.commands, *commands)
        loads = self._measured_loads(start.snapshot, advance, behind_seconds)
        facts = BatchFacts(
            batch=start.batch + 1,
            end=advance.end,
            server_uuid=advance.end.server_uuid,
            now_ms=time.time_ns() // 1_000_000,
            readings=readings,
            commands=commands,
            changes=advance.changes,
            limits=self._pace.limits,
            outdated=outdated,
            release_bytes=self._pace.release_bytes,
            behind=behind,
            configured=self._settings.snapshot.throttle,
            loads=loads,
            uncaptured=self._uncaptured(start.snapshot),
            refused=refused_rows(self._buffers, start),
        )
        return Observed(
            advance,
            facts,
            positions,
            (*self._control(start, advance, tail, connection), *self._heartbeat.records()),
            self._known_defaults(advance, connection),
            knowledge,
            self._counted(start, advance.end, tail, of_rows),
            behind_seconds,
        )

    def decided(self, observed: Observed, plan: Plan) -> None:
        """The engine has decided by what was observed; held back by a load, it plans no chunk at once."""
        self._held_back = bool(observed.facts.loads) and plan.held_back is not None

    def begin(self, end: Offset, advance: Advance) -> None:
        """Ask for the chunks of the batch that was observed, which is on the disk and ends at ``end``."""
        self._has_begun = True
        assert self._readings is not None
        self._readings.ask(end)
        self._pace.begin(end, advance.bytes)

    def close(self) -> None:
        if self._readings is not None:
            self._readings.close()
        self._loads.close()
        self._inbox.close()
        self._heartbeat.close()

    # -- what is looked at

    def _read_windows(self, start: Offset, tail: Tail) -> tuple[bool, dict[str, Reading]]:
        """Are the windows in flight outdated? And the manifests, by window, of those that were read.

        What is outdated is read again, under another name: nobody is asked for it, and nobody's answer counts.
        """
        if self._readings is None:
            readers = self._open_readers(tail.wake)
            self._readings = WindowReadings(
                readers,
                self._buffers,
                self._readers,
                partial(topics_of, self._settings),
                self._settings.mysql.query_timeout_seconds,
            )
        self._readings.make_way(self._pace.reads_at_full_speed)
        relaid = self._layouts.checked(start.layout, {window.table for window in start.snapshot.in_flight})
        outdated = relaid or start.form != self._form
        return outdated, {} if outdated else self._readings.arrived(start)

    def _late_readings(self, start: Offset) -> dict[str, Reading]:
        """Manifests that have come while changes were waited for."""
        return self._readings.arrived(start) if self._readings is not None else {}

    def _advance(self, start: Offset, tail: Tail, readings: dict[str, Reading]) -> Advance:
        """Return how far the stream has come; that somebody writes slows down the reading of chunks.

        A job's first batch tells what tables there are, which is certain only once the stream has begun: it waits.
        """
        until = awaited(start.snapshot, readings, start.stream.server_uuid)
        deadline = time.monotonic() + (_CONNECT_SECONDS if start.batch == 0 and self._tells_tables else 0.0)
        while True:
            advance = tail.advance(
                start.stream,
                self._pace.binlog_bytes,
                self._settings.max_batch_rows,
                (until.file, until.pos) if until else None,
                min(self._patience(start.snapshot, until is not None), self._heartbeat.seconds_left()),
            )
            if advance.end.server_uuid or time.monotonic() >= deadline:
                break
            time.sleep(_CONNECT_AGAIN_SECONDS)
        if advance.tables - {self._settings.signals.data_collection}:
            self._pace.changes_came()
        return advance

    def _signals(
        self, start: Offset, advance: Advance, connection: Connection[Any], definitions: tuple[TableShape, ...]
    ) -> tuple[tuple[Command, ...], dict[str, Any]]:
        """The commands of the batch, and how far each channel was read."""
        captured = partial(self._captured, connection, start.snapshot)
        slices = [slice_.defined(definitions) for slice_ in advance.signals]
        commands, positions = self._inbox.poll(
            slices, self._queries.charsets, start.signal_positions, captured, str(advance.end)
        )
        at_start, position = self._start_snapshot.commands(start, captured)
        return (*at_start, *commands), {**positions, **position}

    def _uncaptured(self, snapshot: SnapshotContext) -> frozenset[TableId]:
        """Return the tables that an earlier life was to read, and that the settings do not capture now."""
        if self._has_begun:
            return frozenset()
        return frozenset(table for table in snapshot.unfinished() if not self._settings.tables.included(table))

    def _captured(self, connection: Connection[Any], snapshot: SnapshotContext) -> CapturedTables:
        """Return the tables that a signal may ask for, or stop: also those that are gone, while they are read or wait.

        The signal table itself is not data, though ``.*`` matches it.
        """
        own = self._settings.signals.data_collection
        unfinished = (table for table in snapshot.unfinished() if self._settings.tables.included(table))
        table_ids = dict.fromkeys((*tables(connection, self._settings.tables), *unfinished))
        return CapturedTables(
            tuple(table for table in table_ids if table != own), ignore_case=ignores_letter_case(connection)
        )

    def _control(
        self, start: Offset, advance: Advance, tail: Tail, connection: Connection[Any]
    ) -> tuple[ControlRecord, ...]:
        """The batch's records of schema changes and truncations; a job's first tells what tables there are."""
        same_server = server_of(advance.end.server_uuid) == self._queries.server_uuid
        definitions = DefinitionsAt(connection, tail, advance.end, same_server, self._settings.columns.comments)
        return statement_records(self._settings, definitions, advance, time.time_ns() // 1000, first=start.batch == 0)

    def _known_defaults(self, advance: Advance, connection: Connection[Any]) -> TableDefaults | None:
        if not self._settings.asks_for_columns:
            return None
        return self._defaults.learned(connection, advance.tables, advance.changes)

    def _counted(
        self, start: Offset, end: StreamPosition, tail: Tail, definitions: tuple[TableShape, ...]
    ) -> OpenCounts | None:
        """What was counted of the transaction in which the batch ends, in earlier batches too."""
        if not self._settings.transaction_metadata or not end.open_gtid:
            return None
        counted_before = start.counted if start.stream.open_gtid == end.open_gtid else None
        slices = tail.slices(start.stream, end, 1, whole=True)
        if not slices or slices[0].transactions.gtids()[-1] != end.open_gtid:
            return counted_before
        return open_counts(slices[0].defined(definitions), self._queries.charsets, self._settings, counted_before)

    def _measured_loads(
        self, snapshot: SnapshotContext, advance: Advance, behind_seconds: float
    ) -> tuple[MeasuredLoad, ...]:
        """The loads that have limits, while there is anything to hold back."""
        if not snapshot.active or snapshot.paused:
            return ()
        bounds = snapshot.throttle.bounds(self._settings.snapshot.throttle)
        loads = self._loads.newest(bounds)
        if STREAM_LAG in bounds:
            lag_ms = max(0, round(behind_seconds * 1000)) if advance.last_ts_us else 0
            loads += (MeasuredLoad(STREAM_LAG, lag_ms),)
        return loads

    def _patience(self, snapshot: SnapshotContext, awaited: bool) -> float:
        """Seconds to wait for changes; an answer of the chunk readers ends the wait as well."""
        if any(window.passed for window in snapshot.held):
            return 0.0  # there are parts to send
        if snapshot.wholly_released():
            return 0.0  # there are ends to tell
        if awaited:
            return _WATERMARK_SECONDS
        if snapshot.active and not snapshot.paused and not snapshot.in_flight and not self._held_back:
            wait_ms = snapshot.throttle.next_ms - time.time_ns() // 1_000_000
            return min(_IDLE_SECONDS, max(_BUSY_SECONDS, wait_ms / 1000))
        return _IDLE_SECONDS
