"""The planner: decides where each batch ends and what it does. One long-lived object per query, in Spark's source
process.

    plan(start)          the offset at the end of the next batch; ``start`` itself when there is nothing to do
    parts(start, end)    what the tasks of that batch do: a function of the two offsets alone
    committed(end)       the batch is done: its memory and files can go

It reaches (MySQL, Kafka, the channels); what follows from what it finds is decided by the pure engine in ``snapshot``.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from pymysql.connections import Connection
from pymysql.err import MySQLError

from incsnap.binlog.places import Advance
from incsnap.binlog.tail import Tail
from incsnap.config.record_form import record_form
from incsnap.config.settings import Settings
from incsnap.events import StreamPosition, server_of
from incsnap.mysql import fences
from incsnap.mysql.catalog import charsets, tables
from incsnap.mysql.connection import connect, dial
from incsnap.pipeline.answers import Answers
from incsnap.pipeline.batch_parts import batch_parts
from incsnap.pipeline.buffer import WindowBuffers
from incsnap.pipeline.changes import Charsets, open_counts
from incsnap.pipeline.chunk_readers import Readers
from incsnap.pipeline.control_file import ControlFiles
from incsnap.pipeline.definition_records import DefinitionRecords, wanted
from incsnap.pipeline.files import Files
from incsnap.pipeline.kept_offsets import KeptOffsets
from incsnap.pipeline.known_defaults import KnownDefaults, TableDefaults
from incsnap.pipeline.layouts import Layouts
from incsnap.pipeline.naming import topic_of
from incsnap.pipeline.pace import Pace
from incsnap.pipeline.parts import BatchPart
from incsnap.pipeline.planned import recall, remember
from incsnap.pipeline.prepared_xa import PreparedXas
from incsnap.pipeline.signal_inbox import SignalInbox
from incsnap.pipeline.spark_log import SparkLog
from incsnap.pipeline.unfinished import choices
from incsnap.pipeline.window_readings import WindowReadings, delete_spent
from incsnap.snapshot.commands import initial_snapshot
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import BatchFacts, awaited, drive, next_context
from incsnap.snapshot.offset import Offset, OpenCounts
from incsnap.tables import TableId

log = logging.getLogger(__name__)

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
#: Seconds after which transactions without captured changes are put into an offset, so that a restart does not ask
#: for binlog files that are long purged.
_MOVE_SECONDS = 10.0
#: Seconds between two attempts to reach the server that the binlog comes from.
_REDIAL_SECONDS = 5.0


class Planner:
    """``slices``: tasks that decode the binlog of a batch. ``readers``: chunks read at the same time. ``open_readers``
    gives the chunk readers, who call what they are given whenever a chunk has been read."""

    def __init__(
        self,
        settings: Settings,
        buffers: WindowBuffers,
        slices: int,
        readers: int,
        open_readers: Callable[[Callable[[], None]], Readers],
    ) -> None:
        self._settings = settings
        self._buffers = buffers
        self._files = Files(buffers.root)
        self.offsets = KeptOffsets(self._files)
        self._control_files = ControlFiles(self._files)
        self._spark_log = SparkLog(settings.checkpoint_location)
        self._slices = slices
        self._readers = readers
        self._open_readers = open_readers
        self._readings: WindowReadings | None = None
        self._xa = PreparedXas(settings, self._files)
        self._connection: Connection[Any] | None = None
        self._tail: Tail | None = None
        self._inbox = SignalInbox(settings)
        self._layouts = Layouts(settings)
        self._choices = choices(settings)
        self._repeats = True
        self._form = record_form(settings)
        self._charsets: Charsets = ()
        self._server_uuid = ""
        self._defaults = KnownDefaults()
        self._cleaned = False
        self._pace = Pace(settings.snapshot, buffers.root, readers)
        self._moved_at = time.monotonic()
        self._redial_at = 0.0

    # -- the three questions of Spark

    def plan(self, start: Offset) -> Offset:
        if not self._cleaned:
            self._cleaned = True
            planned = recall(self._files, self.offsets, start)
            self._xa.adopt(start, planned)
            if planned is not None:
                return planned
            self._spark_log.force()  # what is deleted now must not be asked for after a power cut
            # Of lives that were cut short. Only now: the batch that Spark repeats first has read what it releases.
            self._buffers.delete_orphans([window.id for window in start.snapshot.in_flight])
        self._pace.measure()
        tail = self._tail_from(start)
        connection = self._query_connection()
        self._window_readings().make_way(self._pace.reads_at_full_speed)
        relaid = self._layouts.checked(start.layout, {window.table for window in start.snapshot.in_flight})
        outdated = relaid or start.form != self._form
        # What is outdated is read again, under another name: nobody is asked for it, and nobody's answer counts.
        readings = {} if outdated else self._window_readings().arrived(start)
        until = awaited(start.snapshot, readings, start.stream.server_uuid)
        advance = tail.advance(
            start.stream,
            self._pace.binlog_bytes,
            self._settings.max_batch_events,
            (until.file, until.pos) if until else None,
            _patience(start.snapshot, until is not None),
        )
        if advance.tables - {self._settings.signals.data_collection}:
            self._pace.changes_came()
        commands, positions = self._inbox.poll(
            advance.signals,
            self._charsets,
            start.signal_positions,
            partial(self._captured, connection, start.snapshot),
            str(advance.end),
        )
        if start.batch == 0 and self._settings.snapshot.initial:
            commands = (*initial_snapshot(start.job_id, self._captured(connection, start.snapshot)), *commands)
        control = self._control(start, advance, connection)
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
            behind=advance.full and time.time() - advance.last_ts_us / 1e6 > _BEHIND_SECONDS,
        )
        plan = drive(next_context(start.snapshot, facts), Answers(connection, self._settings.columns))
        for warning in plan.warnings:
            log.warning("%s", warning)
        if "log" in self._settings.notifications.channels:
            for notification in plan.context.notifications:
                log.info("%s", json.dumps(notification.value(self._settings.topic_prefix)))
        self._follow(advance.end.server_uuid)
        end = replace(
            start,
            batch=facts.batch,
            stream=advance.end,
            layout=self._layouts.of(start.layout, {*advance.tables, *plan.context.tables_written_to()}, control),
            snapshot=plan.context,
            signal_positions=positions,
            counted=self._counted(start, advance.end),
            control=control,
            form=self._form,
        )
        if plan.idle and not self._worth_a_batch(start, end, advance.events):
            return start
        end = self._xa.after(start, end, advance, tail)
        self._moved_at = time.monotonic()
        self._spark_log.force()
        remember(self._files, self.offsets, end, self._choices)
        self._window_readings().ask(end)
        self._pace.begin(end, advance.bytes)
        return end

    def parts(self, start: Offset, end: Offset) -> list[BatchPart]:
        if self._repeats:  # the first batch of a life may be one that was planned in another
            self._repeats = False
            self._layouts.ready(end.layout)
        tail = self._tail_from(start)
        connection = self._query_connection()
        defaults: TableDefaults = ()
        if self._settings.formats.show_schemas and end.batch != start.batch:
            found = tail.contents(start.stream, end.stream)
            defaults = self._defaults.of(connection, found.tables, found.changes)
        return batch_parts(
            self._settings, self._slices, self._charsets, tail, self._control_files, defaults, start, end
        )

    def committed(self, end: Offset) -> None:
        if self._tail is not None:
            self._tail.forget(end.stream)
        self._control_files.forget(end.batch)
        self._xa.forget(end.batch)
        delete_spent(self._buffers, end)
        self.offsets.forget(end)

    def close(self) -> None:
        if self._readings is not None:
            self._readings.close()
        if self._tail is not None:
            self._tail.close()
        self._inbox.close()
        if self._connection is not None and self._connection.open:
            self._connection.close()

    # -- what it reaches for

    def _captured(self, connection: Connection[Any], snapshot: SnapshotContext) -> list[TableId]:
        """Tables that a signal may ask for, or stop: also those that are gone, while they are read or wait.

        The signal table itself is not data, though ``.*`` matches it.
        """
        own = self._settings.signals.data_collection
        unfinished = (*(scan.table for scan in snapshot.scans), *(request.table for request in snapshot.queue))
        found = dict.fromkeys((*tables(connection, self._settings.tables), *unfinished))
        return [table for table in found if table != own]

    def _query_connection(self) -> Connection[Any]:
        connection = self._connection
        if connection is not None and connection.open:
            try:
                connection.ping(reconnect=False)
                return connection
            except (MySQLError, OSError):
                pass
        self._connection = connection = connect(self._settings.mysql)
        self._charsets = tuple(sorted(charsets(connection).items()))
        self._server_uuid = fences.server_uuid(connection)
        return connection

    def _follow(self, server_uuid: str) -> None:
        """Questions go to the server that the stream comes from: a connection from before a failover is replaced.

        The tail is left where it is: events must flow, chunks can wait (those read elsewhere are read again).
        """
        if server_of(server_uuid) in ("", self._server_uuid) or time.monotonic() < self._redial_at:
            return
        self._redial_at = time.monotonic() + _REDIAL_SECONDS
        log.warning(
            "The binlog comes from server %s, queries go to %s: connecting again", server_uuid, self._server_uuid
        )
        if self._connection is not None and self._connection.open:
            self._connection.close()

    def _tail_from(self, start: Offset) -> Tail:
        if self._tail is None:
            settings = self._settings
            self._tail = Tail(
                partial(dial, settings.mysql),
                settings.mysql.server_id,
                start.stream,
                settings.tables.included,
                settings.signals.data_collection if "source" in settings.signals.channels else None,
                settings.max_queue_bytes,
                damaged=settings.failures.processing,
                wanted=wanted(settings),
                prepared=self._xa.known(start.prepared),
            )
        return self._tail

    def _window_readings(self) -> WindowReadings:
        if self._readings is None:
            tail = self._tail
            assert tail is not None
            self._readings = WindowReadings(
                self._open_readers(tail.wake), self._buffers, self._readers, partial(topic_of, self._settings)
            )
        return self._readings

    def _counted(self, start: Offset, end: StreamPosition) -> OpenCounts | None:
        """Of the transaction in which the batch ends."""
        if not self._settings.transaction_metadata or not end.open_gtid:
            return None
        begun = start.counted if start.stream.open_gtid == end.open_gtid else None
        pieces = self._tail_from(start).slices(start.stream, end, 1, whole=True)
        if not pieces or pieces[0].transactions.gtids()[-1] != end.open_gtid:
            return begun
        return open_counts(pieces[0], self._charsets, self._settings, begun)

    def _control(self, start: Offset, advance: Advance, connection: Connection[Any]) -> tuple[str, ...]:
        """Writes down the batch's records of schema changes and truncations; their topics."""
        first = start.batch == 0
        if not advance.changes and not first:
            return ()
        same_server = server_of(advance.end.server_uuid) == self._server_uuid
        asked = DefinitionRecords(
            self._settings, connection, self._tail_from(start), advance, same_server, time.time_ns() // 1000
        )
        return self._control_files.write(start.batch + 1, asked.all(first=first))

    def _worth_a_batch(self, start: Offset, end: Offset, events: int) -> bool:
        if events or end.control or end.signal_positions != start.signal_positions:
            return True
        moved = end.stream.delivered != start.stream.delivered
        return moved and time.monotonic() - self._moved_at > _MOVE_SECONDS


def first_position(settings: Settings, root: str, buckets: int) -> Offset:
    """Where a new job begins: at what the server has executed now; rows before it come by snapshot."""
    connection = connect(settings.mysql)
    try:
        executed, prepared = PreparedXas(settings, Files(root)).first(connection)
        layout = Layouts(settings).first(buckets, tables(connection, settings.tables))
    finally:
        connection.close()
    # No position: the end of the binlog may lie past transactions that are not executed yet and still come to us, and
    # a position must never claim what was not delivered. The tail knows its own after the first event.
    return Offset(uuid4().hex, 0, StreamPosition(executed, "", 0), layout, prepared=prepared)


def _patience(snapshot: SnapshotContext, awaited: bool) -> float:
    """Seconds to wait for changes; an answer of the chunk readers ends the wait as well."""
    if any(window.passed for window in snapshot.held):
        return 0.0  # there are parts to send
    if awaited:
        return _WATERMARK_SECONDS
    if snapshot.active and not snapshot.paused and not snapshot.in_flight:
        return _BUSY_SECONDS
    return _IDLE_SECONDS
