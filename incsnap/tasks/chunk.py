"""The task that reads chunks: low watermark, SELECT, high watermark, window file, manifest.

The low watermark is a wait until the server has executed a set of GTIDs. The high watermark is the end of the binlog
after the SELECT. The task runs beside the stream (`spark.reader_jobs`) and leaves the processor to it. If anything is
wrong with a chunk, the chunk's manifest says so.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pymysql.connections import Connection

from incsnap.checkpoint.key_lists import KeyLists
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.columns.arrow import Array
from incsnap.config.servers import MySqlSettings
from incsnap.config.settings import Settings
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.listed_keys import KeyRefused, ListedKeys, absent_records, joined
from incsnap.envelope.records import shares_identity
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import TableFormat
from incsnap.errors import ChunkFailed, ServerUnreachable
from incsnap.events import BinlogPosition, StreamPosition, server_of
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import shapes_of
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.mysql.column_defaults import defaults_of
from incsnap.mysql.session import connect, is_alive, query
from incsnap.mysql.watermarks import high_watermark, wait_until_executed
from incsnap.snapshot import failures
from incsnap.snapshot.chunk_query import chunk_tail, listed_tail
from incsnap.snapshot.sizing import select_seconds
from incsnap.snapshot.window import Chunk, ChunkResult, ordering_columns
from incsnap.tables import TableId, TableShape
from incsnap.tasks import blocks, process_name
from incsnap.tasks.chunk_failures import ChunkRefused, failed
from incsnap.tasks.formats import format_of
from incsnap.tasks.partitions import ChunkOrder

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Most bytes of a chunk on the wire, and of its keys and values. A larger chunk is halved, down to a single row, which
#: may have any size. A reader holds the first and twice the second. The limits are what two readers may take beside the
#: rest of a job of 1.6 GB. With 192 and 256 MiB, eleven rows of 16 MB took 1.2 GB in one reader. If a DDL follows a
#: window's first parts, one batch sends the rest of the window, and a sink task must be able to hold that too.
MAX_CHUNK_BYTES = 64 << 20
MAX_RECORD_BYTES = 128 << 20
#: Seconds after which a job begins no further chunk, because its answers come with its end. To start a job costs 20 to
#: 30 ms, so at most a tenth of the time.
JOB_SECONDS = 0.3
#: Seconds that a chunk waits until delivered transactions are visible. The wait is longer only if a commit is stalled
#: (semi-synchronous replication). Then the chunk is planned again and the stream continues.
EXECUTED_SECONDS = 5.0

#: Bytes of keys and values in one part of a window, about. A batch sends a whole number of parts. A part is small
#: against what a batch can send in its time (about 50 MB/s), and large against the fixed cost of a part (0.1 ms).
PART_BYTES = 1 << 20
#: The reader's nice value. On a busy processor the stream's tasks (nice 0) get nine tenths of the time. On an idle
#: processor a reader gets all it can use.
NICENESS = 10

#: SELECTs at once that look up the keys of one list, and the least keys of each. Each key is mostly in a page of its
#: own. On a disk with 100 microseconds for a page, 100,000 keys of ten million rows take 8 s by one SELECT at a time.
#: By four at a time they take 3 s.
_LOOK_UPS, _LEAST_KEYS = 4, 250

#: Connections by thread id and settings.
_sessions: dict[tuple[int, str], Connection[Any]] = {}


def read_chunks(orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> list[str]:
    """Read chunks one after the other on the worker's chunk thread. Return the ids of their windows.

    The task reads at least one chunk, and begins no further one after `JOB_SECONDS`. Each window in the result has a
    manifest.
    """
    return _slow_thread().submit(read_together, orders, settings, buffers).result()


@cache
def _slow_thread() -> ThreadPoolExecutor:
    """Return the worker's thread for chunks.

    It is kept: Arrow's allocator keeps memory per thread, and a new thread has to fault that memory in again.
    """
    return ThreadPoolExecutor(1, "incsnap-chunk", initializer=give_way)


@cache
def _look_up_threads() -> ThreadPoolExecutor:
    """Return the worker's threads for the SELECTs of lists, with a connection each (`_session`)."""
    return ThreadPoolExecutor(_LOOK_UPS, "incsnap-keys", initializer=give_way)


def _forget_parent() -> None:
    """Forget the threads and the connections of the parent in a forked process: it would wait for a thread forever."""
    _slow_thread.cache_clear()
    _look_up_threads.cache_clear()
    _sessions.clear()


os.register_at_fork(after_in_child=_forget_parent)


def aside(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, which are made on the worker's thread for chunks."""
    while taken := _slow_thread().submit(tuple, islice(items, 1)).result():
        yield from taken


def give_way() -> None:
    """Lower the priority of the calling thread, and name it for `ps`.

    Linux has a nice value per thread, so the worker's main thread keeps its own for the stream's next task. On other
    systems the priority stays.
    """
    process_name.take(process_name.CHUNK)
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def read_together(orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> list[str]:
    """Read chunks one after the other on this thread. Return the ids of their windows; `read_chunks` has the limits.

    The chunks share three steps: the wait for the low watermark, the look-up of table shapes, and the high watermark. A
    high watermark may always be later. So 48 chunks of small tables take 0.5 s instead of 1.4 s.
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
    """Chunks that are read one after the other on one connection.

    Errors of a chunk go into its manifest. An error is raised only if a manifest cannot be written.
    """

    def __init__(self, orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> None:
        self._settings = settings
        self._buffers = buffers
        self._lists = KeyLists(buffers.files)
        self._tables = list(dict.fromkeys(order.read.chunk.table for order in orders))
        self._shapes: dict[TableId, TableShape] = {}
        self._server: tuple[int, str] = (0, "")
        self._connection: Connection[Any] | None = None
        self._reached: GtidSet | None = None
        #: Why no further chunk is tried; "" to go on. A low watermark that was not reached delays all chunks, so the
        #: first one waits and the others are left for later.
        self._left = ""
        #: Why no further chunk of a table is tried: a lock delays the chunks of its table only.
        self._locked: dict[TableId, str] = {}
        #: Chunks that were read and have no high watermark yet.
        self._read: list[tuple[ChunkOrder, ChunkResult]] = []

    def is_held_up(self, order: ChunkOrder) -> bool:
        """Whether the cause that stopped an earlier chunk stops this one too. A cause is waited for once only."""
        return bool(self._left) or order.read.chunk.table in self._locked

    def read(self, order: ChunkOrder) -> None:
        """Read one chunk. If that fails, write the reason into the chunk's manifest."""
        table, window = order.read.chunk.table, order.read.window
        if window.lost:
            # If this chunk ends the job, the note tells it from chunks that only waited in the same job.
            self._buffers.write_begun(window.id)
        if self.is_held_up(order):
            self._give_up(order, ChunkResult(error=self._left or self._locked[table]))
            return
        try:
            connection = self._at_low_watermark(order.read.low_watermark)
            self._read.append((order, self._selected(connection, order)))
        except Exception as error:  # noqa: BLE001 - the chunk is in the offset: raised, it would fail every replay
            result = failed(error)
            if result.error.startswith(f"{failures.STALLED}:"):
                if isinstance(error, ChunkRefused):
                    self._left = result.error
                else:
                    self._locked[table] = result.error
            self._give_up(order, result)

    def finish(self) -> None:
        """Ask for the high watermark, and write the manifests of all chunks that were read.

        The high watermark is then behind every SELECT. If it cannot be had, or the server was exchanged meanwhile
        (ServerUnreachable), the manifests say why.
        """
        if not self._read:
            return
        read, self._read = self._read, []
        try:
            connection = _session(self._settings.mysql)
            # The connection may be a new one, and so the server another one.
            server = self._server if connection is self._connection else _identity(connection)
            if server != self._server:
                raise ServerUnreachable("The server was exchanged while chunks were read")
            file, pos = high_watermark(connection)
        except Exception as error:  # noqa: BLE001 - as above
            for order, _ in read:
                self._give_up(order, failed(error))
            return
        for order, result in read:
            try:
                log_id = _log_id(order.end, self._server[1], file, pos)
            except ChunkRefused as error:
                self._give_up(order, failed(error))
                continue
            whole = replace(result, high_file=file, high_pos=pos, server_uuid=log_id)
            self._buffers.write_manifest(order.read.window.id, whole)
        if any(server_of(order.end.server_uuid) not in ("", self._server[1]) for order, _ in read):
            # This connection, or the stream's, is from before a failover. A new one reads the chunks again.
            connection.close()

    def _give_up(self, order: ChunkOrder, result: ChunkResult) -> None:
        """Write the manifest of a chunk that was not read. `result` says why."""
        window_id = order.read.window.id
        # The planner warns once of a table that has changed or is gone; all its chunks in flight fail.
        level = logging.INFO if failures.kind_of(result.error) == failures.SHAPE else logging.WARNING
        log.log(level, "Chunk %s of %s was not read: %s", window_id, order.read.chunk.table, result.error)
        self._buffers.write_manifest(window_id, result)

    def _at_low_watermark(self, low_watermark: GtidSet) -> Connection[Any]:
        """Return a connection that sees all transactions of `low_watermark`.

        Raise ChunkRefused if the server does not execute them in time, and ServerUnreachable.
        """
        connection = self._connection
        # Whether the connection is alive is not asked before each chunk. If a SELECT finds it dead, the chunk is
        # ordered again.
        if connection is None or not connection.open:
            connection = _session(self._settings.mysql)
        if connection is not self._connection:
            self.finish()
            self._server = _identity(connection)
            self._connection, self._reached, self._shapes = connection, None, {}
        if low_watermark != self._reached:
            try:
                wait_until_executed(connection, low_watermark, EXECUTED_SECONDS)
            except ChunkFailed as error:
                # The server may have been demoted: such a server answers, but never reaches the low watermark. So the
                # connection is closed. A new one costs 10 ms, and the wait has cost seconds.
                connection.close()
                raise ChunkRefused(failures.STALLED, error.message) from error
            self._reached, self._shapes = low_watermark, {}
        return connection

    def _shape(self, connection: Connection[Any], table: TableId) -> TableShape:
        """Return the table's definition. Raise ChunkRefused if the table does not exist.

        The definition is read after the low watermark. A later DDL then lies inside the window, and the planner drops
        the window.
        """
        if not self._shapes:
            self._shapes = shapes_of(connection, self._tables)
            if self._settings.asks_for_columns:
                definitions = self._settings.columns.needs_definitions
                defaults = defaults_of(connection, list(self._shapes), definitions=definitions)
                self._shapes = {table: shape.with_defaults(defaults[table]) for table, shape in self._shapes.items()}
        shape = self._shapes.get(table)
        if shape is None:
            raise ChunkRefused(failures.SHAPE, f"table {table} does not exist")
        return shape

    def _selected(self, connection: Connection[Any], order: ChunkOrder) -> ChunkResult:
        """Read the chunk and write its window file. Return the result without the high watermark.

        Raise ChunkRefused if the table is no longer the one that the chunk was planned for: the DDL is still on its way
        in the binlog. Raise it too if two rows have the same key. Errors of the SELECT and of the encoding pass
        through.
        """
        chunk, window, end = order.read.chunk, order.read.window, order.end
        settings = self._settings
        shape = self._shape(connection, chunk.table)
        format_ = format_of(settings, shape)
        lists = self._listed(chunk, format_) if chunk.keys else []
        try:
            ordering = ordering_columns(shape, chunk.columns)
            tails = [listed_tail(chunk, ordering, listed.sql) for listed in lists] or [chunk_tail(chunk, ordering)]
        except (KeyError, ValueError) as error:
            what = f"the key of {chunk.table} is no longer the one it was cut by: {error}"
            raise ChunkRefused(failures.SHAPE, what) from error
        may_take = select_seconds(window.doublings, settings.mysql.query_timeout_seconds)
        select_began = time.monotonic()
        read = partial(read_chunk, timeout_seconds=may_take, needed=format_.view.needed)
        if len(tails) == 1:
            selected = [read(connection, shape, tails[0], max_bytes=MAX_CHUNK_BYTES)]
        else:
            most = MAX_CHUNK_BYTES // len(tails)
            # A first row of any size would be held four times. The list is halved until one SELECT reads it.
            alike = partial(read, max_bytes=most, row_bytes=most)
            selected = self._together(connection, lambda on, tail: alike(on, shape, tail), tails)
        seconds = time.monotonic() - select_began
        now_us = time.time_ns() // 1000
        source, layout = SourceConstants(end.file, end.pos, now_us, self._server[0]), order.layout
        absent: list[Array] = []
        for place, listed in enumerate(lists):
            # An index that ignores letter case finds the row of a key in another part of the list, too.
            selected[place], without_row = listed.rows_among(selected[place])
            absent.append(without_row)
        columns = selected[0] if len(selected) == 1 else _one_after_the_other(selected)
        records = snapshot_records(
            format_, columns, source, layout.partitions, layout.buckets, now_us=now_us, most=MAX_RECORD_BYTES
        )
        # Rows with one identity have one key, and so are in one bucket.
        if not shape.key and format_.view.identity and any(map(shares_identity, records.values())):
            raise ChunkRefused(
                failures.SHARED_KEY,
                f"rows of {chunk.table} have the same values in {', '.join(f.name for f in format_.view.key)}: the"
                " table has no unique key without NULLs, so message.key.columns must name columns that tell its rows"
                " apart",
            )
        rows, missing = rows_of(columns), 0
        # A condition may hide the row of a key, so only without one is a key known to have no row.
        for listed, without_row in zip(lists, absent, strict=True) if not chunk.condition else ():
            missing += int(pc.sum(without_row).as_py() or 0)
            if chunk.deletes:
                deletions = absent_records(listed, without_row, source, layout.partitions, layout.buckets, now_us)
                records = joined(records, deletions)
        record_bytes = sum(map(blocks.record_bytes, records.values()))
        parts = max(1, min(rows + missing, -(-record_bytes // PART_BYTES)))
        return ChunkResult(
            rows=rows,
            bytes=sum(int(column.nbytes) for column in columns if column is not None),
            seconds=seconds,
            file=self._buffers.write_window(window.id, records, parts),
            record_bytes=record_bytes,
            parts=parts,
            absent=missing,
        )

    def _together(
        self, connection: Connection[Any], read: Callable[[Connection[Any], str], list[Any]], tails: Sequence[str]
    ) -> list[list[Any]]:
        """Return what `read` returns for `tails`. They are read at the same time, each on a connection of its own.

        Where the server gives no further connection, `connection` reads one after the other.
        The server has executed the low watermark before, so each SELECT sees all transactions of it. Raise the first
        error when all SELECTs have ended.
        """
        running = [_look_up_threads().submit(self._on_own_connection, read, tail) for tail in tails]
        wait(running)
        results = [each.result() for each in running]
        pairs = zip(results, tails, strict=True)
        return [read(connection, tail) if result is None else result for result, tail in pairs]

    def _on_own_connection(self, read: Callable[[Connection[Any], str], list[Any]], tail: str) -> list[Any] | None:
        """Return what `read` returns for `tail` on this thread's connection; None if the server gives none.

        Raise ServerUnreachable if the connection leads to another server than the chunk's.
        """
        try:
            connection = _session(self._settings.mysql)
        except ServerUnreachable:
            return None
        if _identity(connection) != self._server:
            connection.close()
            raise ServerUnreachable("The server was exchanged while chunks were read")
        return read(connection, tail)

    def _listed(self, chunk: Chunk, format_: TableFormat) -> list[ListedKeys]:
        """Return the keys of the chunk, in a part for each SELECT.

        Raise ChunkRefused if they have not the form of the table's keys any more.
        """
        begin, end = (int(key[0] or 0) if key is not None else 0 for key in (chunk.lower, chunk.upper))
        keys = self._lists.read(chunk.keys, begin, end)
        size = max(_LEAST_KEYS, -(-len(keys) // _LOOK_UPS))
        try:
            return [ListedKeys.read(format_, keys[first : first + size]) for first in range(0, len(keys) or 1, size)]
        except KeyRefused as error:
            raise ChunkRefused(failures.SHAPE, f"{chunk.table}: {error}") from error


def _one_after_the_other(selected: Sequence[list[Any]]) -> list[Any]:
    """Return the columns of several SELECTs as one; None for a column that was not read."""
    return [None if each[0] is None else pa.concat_arrays(each) for each in zip(*selected, strict=True)]


def _log_id(end: StreamPosition, server_uuid: str, high_file: str, high_pos: int) -> str:
    """Return the id of the binlog that the high watermark is a position of.

    The stream was at `end` before the SELECT, so the end of the same binlog cannot be before `end`. Raise
    ChunkRefused if it is: the server has begun a new binlog, and the stream has not heard of it yet. The chunk is read
    again until the stream has.
    """
    if not end.server_uuid or server_of(end.server_uuid) != server_uuid:
        return server_uuid
    if end.file and not BinlogPosition(high_file, high_pos).reached(end.file, end.pos):
        what = f"the binlog ends at {high_file}:{high_pos}, and was read up to {end.file}:{end.pos}"
        raise ChunkRefused(failures.UNREACHABLE, what)
    return end.server_uuid


def _identity(connection: Connection[Any]) -> tuple[int, str]:
    """Return the server's id and UUID."""
    server_id, server_uuid = query(connection, "SELECT @@server_id, @@server_uuid")[0]
    return int(server_id), str(server_uuid)


def _session(settings: MySqlSettings) -> Connection[Any]:
    """Return this thread's connection.

    It is kept between batches: to open one costs 3 to 10 ms, and a chunk of an idle table less.
    """
    key = (threading.get_ident(), settings.model_dump_json(context={"reveal": True}))
    connection = _sessions.get(key)
    if not is_alive(connection):
        connection = _sessions[key] = connect(settings)
    return connection
