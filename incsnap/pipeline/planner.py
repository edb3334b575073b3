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
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from pymysql.connections import Connection
from pymysql.err import MySQLError

from incsnap.binlog.places import Advance
from incsnap.binlog.tail import Tail
from incsnap.config.settings import Settings
from incsnap.events import StreamPosition
from incsnap.mysql import fences
from incsnap.mysql.catalog import charsets, tables
from incsnap.mysql.connection import connect, dial
from incsnap.pipeline.answers import Answers
from incsnap.pipeline.batch_parts import batch_parts
from incsnap.pipeline.buffer import WindowBuffers
from incsnap.pipeline.changes import Charsets, open_counts
from incsnap.pipeline.control_file import ControlFiles
from incsnap.pipeline.definition_records import DefinitionRecords, wanted
from incsnap.pipeline.files import Files
from incsnap.pipeline.known_defaults import KnownDefaults, TableDefaults
from incsnap.pipeline.layouts import Layouts
from incsnap.pipeline.parts import BatchPart
from incsnap.pipeline.planned import recall, remember
from incsnap.pipeline.signal_inbox import SignalInbox
from incsnap.snapshot.engine import BatchFacts, awaited, drive, next_context
from incsnap.snapshot.offset import Offset, OpenCounts
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import Reading
from incsnap.tables import TableId

log = logging.getLogger(__name__)

#: Bytes of binlog in one batch. Large enough that the fixed cost of a batch (about 140 ms) is a tenth of it, small
#: enough that a part pickles in tens of milliseconds (about 100 MB/s from planner to tasks).
_BATCH_BYTES = 16 << 20
#: Seconds to wait for changes when nothing else is to be done. Spark asks again at once; a stop waits at most this
#: long.
_IDLE_SECONDS = 0.2
#: The same while a table is being read but nothing is in flight (its chunks are backing off): no spinning.
_BUSY_SECONDS = 0.02
#: Seconds to wait for the tail to pass a high watermark. It is milliseconds behind unless there is a backlog, and then
#: the batch must not wait.
_WATERMARK_SECONDS = 0.25
#: Seconds after which transactions without captured changes are put into an offset, so that a restart does not ask
#: for binlog files that are long purged.
_MOVE_SECONDS = 10.0
#: Seconds between two attempts to reach the server that the binlog comes from.
_REDIAL_SECONDS = 5.0
#: Rows that the chunks of one batch should have together: with a small incremental.snapshot.chunk.size a batch
#: reads many.
_BATCH_ROWS = 50_000
_MOST_CHUNKS = 64


class Planner:
    """``buckets`` and ``parallelism``: sink tasks of a batch, tasks that may read at the same time."""

    def __init__(self, settings: Settings, buffers: WindowBuffers, buckets: int, parallelism: int) -> None:
        self._settings = settings
        self._buffers = buffers
        self._files = Files(buffers.root)
        self._control_files = ControlFiles(self._files)
        self._buckets = buckets
        self._parallelism = parallelism
        self._connection: Connection[Any] | None = None
        self._tail: Tail | None = None
        self._inbox = SignalInbox(settings)
        self._layouts = Layouts(settings)
        self._charsets: Charsets = ()
        self._server_uuid = ""
        self._defaults = KnownDefaults()
        self._cleaned = False
        self._moved_at = time.monotonic()
        self._redial_at = 0.0
        size = settings.snapshot.chunk_size
        chunks = max(parallelism, min(_MOST_CHUNKS, _BATCH_ROWS // size)) if size else parallelism
        self._limits = Limits.configured(size, chunks)

    # -- the three questions of Spark

    def first(self) -> Offset:
        """Where a new job begins: at what the server has executed now; rows before it come by snapshot."""
        connection = self._query_connection()
        executed = fences.executed(connection)
        layout = self._layouts.first(self._buckets, tables(connection, self._settings.tables))
        # No position: the end of the binlog may lie past transactions that are not executed yet and still come to
        # us, and a position must never claim what was not delivered. The tail knows its own after the first event.
        return Offset(uuid4().hex, 0, StreamPosition(executed, "", 0), layout)

    def plan(self, start: Offset) -> Offset:
        if not self._cleaned:
            self._cleaned = True
            if (planned := recall(self._files, start)) is not None:
                return planned
            # Of lives that were cut short. Only now: the batch that Spark repeats first has read what it releases.
            self._buffers.delete_orphans([window.id for window in start.snapshot.in_flight])
        tail = self._tail_from(start.stream)
        connection = self._query_connection()
        readings = self._readings(start)
        until = awaited(start.snapshot, readings, start.stream.server_uuid)
        busy = start.snapshot.active and not start.snapshot.paused
        advance = tail.advance(
            start.stream,
            _BATCH_BYTES,
            self._settings.max_batch_events,
            (until.file, until.pos) if until else None,
            _WATERMARK_SECONDS if until else _BUSY_SECONDS if busy else _IDLE_SECONDS,
        )
        commands, positions = self._inbox.poll(
            advance.signals,
            self._charsets,
            start.signal_positions,
            partial(self._captured, connection),
            str(advance.end),
        )
        layout, layout_changed = self._layouts.checked(start.layout)
        control = self._control(start, advance, connection)
        facts = BatchFacts(
            batch=start.batch + 1,
            end=advance.end,
            server_uuid=advance.end.server_uuid,
            now_ms=time.time_ns() // 1_000_000,
            readings=readings,
            commands=commands,
            changes=advance.changes,
            limits=self._limits,
            layout_changed=layout_changed,
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
            layout=self._layouts.extended(
                layout, sorted({*advance.tables, *(window.table for window in plan.context.planned)}), control
            ),
            snapshot=plan.context,
            signal_positions=positions,
            counted=self._counted(start, advance.end),
            control=control,
        )
        if plan.idle and not self._worth_a_batch(start, end, advance.events):
            return start
        self._moved_at = time.monotonic()
        remember(self._files, end)
        return end

    def parts(self, start: Offset, end: Offset) -> list[BatchPart]:
        tail = self._tail_from(start.stream)
        connection = self._query_connection()
        defaults: TableDefaults = ()
        if self._settings.formats.show_schemas and end.batch != start.batch:
            found = tail.contents(start.stream, end.stream)
            defaults = self._defaults.of(connection, found.tables, found.changes)
        return batch_parts(
            self._settings, self._parallelism, self._charsets, tail, self._control_files, defaults, start, end
        )

    def committed(self, end: Offset) -> None:
        if self._tail is not None:
            self._tail.forget(end.stream)
        self._control_files.forget(end.batch)
        for window in end.snapshot.released:
            self._buffers.delete(window.id)
        for window_id in end.snapshot.dropped:
            self._buffers.delete(window_id)
        if end.snapshot.released or end.snapshot.dropped:
            self._buffers.forget_before(end.oldest_discards())

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._inbox.close()
        if self._connection is not None and self._connection.open:
            self._connection.close()

    # -- what it reaches for

    def _captured(self, connection: Connection[Any]) -> list[TableId]:
        """Tables that a signal may ask for. The signal table itself is not data, though ``.*`` matches it."""
        own = self._settings.signals.data_collection
        return [table for table in tables(connection, self._settings.tables) if table != own]

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
        if server_uuid in ("", self._server_uuid) or time.monotonic() < self._redial_at:
            return
        self._redial_at = time.monotonic() + _REDIAL_SECONDS
        log.warning(
            "The binlog comes from server %s, queries go to %s: connecting again", server_uuid, self._server_uuid
        )
        if self._connection is not None and self._connection.open:
            self._connection.close()

    def _tail_from(self, start: StreamPosition) -> Tail:
        if self._tail is None:
            settings = self._settings
            self._tail = Tail(
                partial(dial, settings.mysql, read_timeout=None),
                settings.mysql.server_id,
                start,
                settings.tables.included,
                settings.signals.data_collection if "source" in settings.signals.channels else None,
                settings.max_queue_bytes,
                damaged=settings.failures.processing,
                wanted=wanted(settings),
            )
        return self._tail

    def _readings(self, start: Offset) -> dict[str, Reading]:
        found: dict[str, Reading] = {}
        for window in start.snapshot.planned:
            manifest = self._buffers.read_manifest(window.id)
            if manifest is not None:
                found[window.id] = manifest.reading()
        return found

    def _counted(self, start: Offset, end: StreamPosition) -> OpenCounts | None:
        """Of the transaction in which the batch ends."""
        if not self._settings.transaction_metadata or not end.open_gtid:
            return None
        begun = start.counted if start.stream.open_gtid == end.open_gtid else None
        pieces = self._tail_from(start.stream).slices(start.stream, end, 1, whole=True)
        if not pieces or pieces[0].transactions.gtids()[-1] != end.open_gtid:
            return begun
        return open_counts(pieces[0], self._charsets, self._settings, begun)

    def _control(self, start: Offset, advance: Advance, connection: Connection[Any]) -> tuple[str, ...]:
        """Writes down the batch's records of schema changes and truncations; their topics."""
        first = start.batch == 0
        if not advance.changes and not first:
            return ()
        same_server = advance.end.server_uuid == self._server_uuid
        asked = DefinitionRecords(
            self._settings, connection, self._tail_from(start.stream), advance, same_server, time.time_ns() // 1000
        )
        return self._control_files.write(start.batch + 1, asked.all(first=first))

    def _worth_a_batch(self, start: Offset, end: Offset, events: int) -> bool:
        if events or end.control or end.signal_positions != start.signal_positions or end.layout != start.layout:
            return True
        moved = end.stream.delivered != start.stream.delivered
        return moved and time.monotonic() - self._moved_at > _MOVE_SECONDS
