"""A task that reads chunks: wait (low watermark), SELECT, end of the binlog (high watermark), window file, manifest.

It runs beside the stream (``reader_jobs``) and gives way to it on the processor. Whatever goes wrong with the chunk is
written into its manifest.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

from pymysql.connections import Connection

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.servers import MySqlSettings
from incsnap.config.settings import Settings
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.records import shares_identity, snapshot_records
from incsnap.envelope.source_block import SourceConstants
from incsnap.errors import ChunkFailed, ServerUnreachable
from incsnap.events import BinlogPosition, StreamPosition, server_of
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import shapes_of
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.mysql.column_defaults import defaults_of
from incsnap.mysql.session import connect, is_alive, query
from incsnap.mysql.watermarks import high_watermark, wait_until_executed
from incsnap.snapshot import failures
from incsnap.snapshot.chunk_query import chunk_tail
from incsnap.snapshot.sizing import select_seconds
from incsnap.snapshot.window import Reading, ordering_columns
from incsnap.tables import TableId, TableShape
from incsnap.tasks import blocks, process_name
from incsnap.tasks.chunk_failures import (
    AnotherLogError,
    ShapeChangedError,
    SharedKeyError,
    StalledError,
    failed,
)
from incsnap.tasks.formats import format_of
from incsnap.tasks.partitions import ChunkOrder

log = logging.getLogger(__name__)

#: Bytes of a chunk on the wire, and of its keys and values: a chunk that takes more is halved, down to a single row,
#: which may be of any size. What a reader holds is the one and twice the other, so these are what two readers may take
#: beside the rest of a job of 1.6 GB (with 192 and 256 MiB, eleven rows of 16 MB took 1.2 GB in one reader). A window's
#: rest goes out with one batch when a DDL comes behind its first parts, and a sink task must be able to hold it too.
MAX_CHUNK_BYTES = 64 << 20
MAX_RECORD_BYTES = 128 << 20
#: Seconds after which a job begins no further chunk: what was read is answered with the job's end. Starting a job costs
#: 20 to 30 ms, so a tenth of the time at most.
JOB_SECONDS = 0.3

#: Bytes of keys and values in one part of a window, about: what a batch sends of windows is a number of parts, so they
#: are small against what it can send in its time (some 50 MB/s), and large against the cost of a part (0.1 ms).
PART_BYTES = 1 << 20
#: The reader's nice value: on a busy processor the stream's own tasks (0) get nine tenths of the time, on an idle one a
#: reader gets all it wants.
NICENESS = 10

#: By thread and settings.
_sessions: dict[tuple[int, str], Connection[Any]] = {}


def read_chunks(orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> list[str]:
    """Read the chunks one after the other for ``JOB_SECONDS``, at least the first. Return the ids of their windows,
    which have a manifest now."""
    return _aside().submit(read_together, orders, settings, buffers).result()


@cache
def _aside() -> ThreadPoolExecutor:
    """The worker's thread for chunks. Kept: Arrow's allocator keeps memory by thread, a new one faults it in anew."""
    return ThreadPoolExecutor(1, "incsnap-chunk", initializer=give_way)


def give_way() -> None:
    """To be called on the thread that reads. On Linux it has a nice value of its own, so the worker stays as it is for
    the stream's next task."""
    process_name.take(process_name.CHUNK)
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def read_together(orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> list[str]:
    """Read the chunks one after the other for ``JOB_SECONDS``, at least the first. Return the ids of their windows.

    What stands around a SELECT is done once for all that are read together: the wait for the low watermark, the shapes,
    and the high watermark, which may always be later (48 chunks of small tables: 1.4 s to 0.5 s).
    """
    group = _Group(orders, settings, buffers)
    until = time.monotonic() + JOB_SECONDS
    read: list[str] = []
    for order in orders:
        if read and time.monotonic() >= until and not group.is_held_up(order):
            continue
        group.read(order)
        read.append(order.read.window.id)
    group.finish()
    return read


class _Group:
    """Chunks that are read one after the other on one connection. Only what keeps a manifest from being written is
    raised."""

    def __init__(self, orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> None:
        self._settings = settings
        self._buffers = buffers
        self._tables = list(dict.fromkeys(order.read.chunk.table for order in orders))
        self._shapes: dict[TableId, TableShape] = {}
        self._server: tuple[int, str] = (0, "")
        self._connection: Connection[Any] | None = None
        self._reached: GtidSet | None = None
        #: A stalled commit keeps all of them from being read, a lock those of its table: after the first the others are
        #: left for later at once.
        self._left = ""
        self._locked: dict[TableId, str] = {}
        #: What was read, and wants a high watermark.
        self._read: list[tuple[ChunkOrder, Reading]] = []

    def is_held_up(self, order: ChunkOrder) -> bool:
        """Whether what kept another chunk from being read keeps this one too. Nothing waits for it again."""
        return bool(self._left) or order.read.chunk.table in self._locked

    def read(self, order: ChunkOrder) -> None:
        """Read one chunk; what keeps it from being read goes into its manifest."""
        table, window = order.read.chunk.table, order.read.window
        if window.lost:
            # Should the job end of it: without the note nobody could tell it from those that only waited.
            self._buffers.write_begun(window.id)
        if self.is_held_up(order):
            self._give_up(order, Reading(error=self._left or self._locked[table]))
            return
        try:
            connection = self._at_low_watermark(order.read.low_watermark)
            self._read.append((order, self._selected(connection, order)))
        except Exception as error:  # noqa: BLE001 - the chunk is in the offset: raised, it would fail every replay
            reading = failed(error)
            if isinstance(error, StalledError):
                self._left = reading.error
            elif reading.error.startswith(f"{failures.STALLED}:"):
                self._locked[table] = reading.error
            self._give_up(order, reading)

    def finish(self) -> None:
        """The high watermark lies behind every SELECT."""
        if not self._read:
            return
        read, self._read = self._read, []
        try:
            connection = _session(self._settings.mysql)
            # As the SELECTs' own: it may be another connection than theirs.
            server = self._server if connection is self._connection else _identity(connection)
            if server != self._server:
                raise ServerUnreachable("The server was exchanged while chunks were read")
            file, pos = high_watermark(connection)
        except Exception as error:  # noqa: BLE001 - as above
            for order, _ in read:
                self._give_up(order, failed(error))
            return
        for order, reading in read:
            try:
                log_id = _log_id(order.end, self._server[1], file, pos)
            except AnotherLogError as error:
                self._give_up(order, failed(error))
                continue
            whole = replace(reading, high_file=file, high_pos=pos, server_uuid=log_id)
            self._buffers.write_manifest(order.read.window.id, whole)
        if any(server_of(order.end.server_uuid) not in ("", self._server[1]) for order, _ in read):
            connection.close()  # this one or the tail's is from before a failover; they are read again on a new one

    def _give_up(self, order: ChunkOrder, reading: Reading) -> None:
        """``reading`` says why it was not read."""
        window_id = order.read.window.id
        log.warning("Chunk %s of %s was not read: %s", window_id, order.read.chunk.table, reading.error)
        self._buffers.write_manifest(window_id, reading)

    def _at_low_watermark(self, low_watermark: GtidSet) -> Connection[Any]:
        """The connection, on which all of ``low_watermark`` is visible."""
        connection = self._connection
        # Not asked before each chunk whether it lives: one whose SELECT finds it dead is ordered again.
        if connection is None or not connection.open:
            connection = _session(self._settings.mysql)
        if connection is not self._connection:
            self.finish()
            self._server = _identity(connection)
            self._connection, self._reached, self._shapes = connection, None, {}
        if low_watermark != self._reached:
            try:
                wait_until_executed(connection, low_watermark, self._settings.executed_wait_seconds)
            except ServerUnreachable:
                raise
            except ChunkFailed as error:
                # Is it still the stream's server? One that was demoted answers, and never gets to the low watermark. A
                # new connection costs 10 ms, the wait has cost seconds.
                connection.close()
                raise StalledError(error.message) from error
            self._reached, self._shapes = low_watermark, {}
        return connection

    def _shape(self, connection: Connection[Any], table: TableId) -> TableShape:
        """Behind the low watermark, so that a DDL that this shape does not know lies inside the window and drops it."""
        if not self._shapes:
            self._shapes = shapes_of(connection, self._tables)
            if self._settings.asks_for_columns:
                definitions = self._settings.columns.needs_definitions
                defaults = defaults_of(connection, list(self._shapes), definitions=definitions)
                self._shapes = {table: shape.with_defaults(defaults[table]) for table, shape in self._shapes.items()}
        shape = self._shapes.get(table)
        if shape is None:
            raise ShapeChangedError(f"table {table} does not exist")
        return shape

    def _selected(self, connection: Connection[Any], order: ChunkOrder) -> Reading:
        """All but the high watermark; the window's file is written."""
        chunk, window, end = order.read.chunk, order.read.window, order.end
        settings = self._settings
        shape = self._shape(connection, chunk.table)
        try:
            tail = chunk_tail(chunk, ordering_columns(shape, chunk.columns))
        except (KeyError, ValueError) as error:
            raise ShapeChangedError(f"the key of {chunk.table} is no longer the one it was cut by: {error}") from error
        format_ = format_of(settings, shape)
        may_take = select_seconds(window.doublings, settings.mysql.query_timeout_seconds)
        select_began = time.monotonic()
        columns = read_chunk(
            connection,
            shape,
            tail,
            max_bytes=MAX_CHUNK_BYTES,
            timeout_seconds=may_take,
            needed=format_.view.needed,
        )
        seconds = time.monotonic() - select_began
        now_us = time.time_ns() // 1000
        records = snapshot_records(
            format_,
            columns,
            SourceConstants(end.file, end.pos, now_us, self._server[0]),
            order.layout.partitions,
            order.layout.buckets,
            now_us=now_us,
            most=MAX_RECORD_BYTES,
        )
        # Rows of one identity have one key, and so one bucket.
        if not shape.key and any(map(shares_identity, records.values())):
            raise SharedKeyError(
                f"rows of {chunk.table} have the same values in {', '.join(f.name for f in format_.view.key)}: the"
                " table has no unique key without NULLs, so message.key.columns must name columns that tell its rows"
                " apart"
            )
        record_bytes = sum(map(blocks.record_bytes, records.values()))
        rows = rows_of(columns)
        parts = max(1, min(rows, -(-record_bytes // PART_BYTES)))
        return Reading(
            rows=rows,
            bytes=sum(int(column.nbytes) for column in columns if column is not None),
            seconds=seconds,
            file=self._buffers.write_window(window.id, records, parts),
            record_bytes=record_bytes,
            parts=parts,
        )


def _log_id(end: StreamPosition, server_uuid: str, high_file: str, high_pos: int) -> str:
    """What the high watermark is a position of. The stream was at ``end`` before the SELECT, so the end of that binlog
    lies behind it. Where it does not, the server has begun another one, of which the stream is yet to hear."""
    if not end.server_uuid or server_of(end.server_uuid) != server_uuid:
        return server_uuid
    if end.file and not BinlogPosition(high_file, high_pos).reached(end.file, end.pos):
        raise AnotherLogError(f"the binlog ends at {high_file}:{high_pos}, and was read up to {end.file}:{end.pos}")
    return end.server_uuid


def _identity(connection: Connection[Any]) -> tuple[int, str]:
    server_id, server_uuid = query(connection, "SELECT @@server_id, @@server_uuid")[0]
    return int(server_id), str(server_uuid)


def _session(settings: MySqlSettings) -> Connection[Any]:
    """The thread's connection, kept between batches: opening one costs 3-10 ms, a chunk of an idle table less."""
    key = (threading.get_ident(), settings.model_dump_json(context={"reveal": True}))
    connection = _sessions.get(key)
    if not is_alive(connection):
        connection = _sessions[key] = connect(settings)
    return connection
