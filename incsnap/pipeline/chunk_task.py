"""A task that reads chunks: wait (low fence), SELECT, end of the binlog (high watermark), window file, manifest.

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
from functools import cache
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.connections import Connection

from incsnap.config.settings import MySqlSettings, Settings
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.records import RecordsTooLarge, shares_identity, snapshot_records
from incsnap.envelope.source_block import SourceConstants
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, UnsupportedType, ValueRefused, shorten
from incsnap.events import BinlogPosition, StreamPosition, server_of
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.mysql.connection import QueryRefusedError, connect, is_gone, query
from incsnap.mysql.fences import high_watermark, low_fence
from incsnap.pipeline import blocks, process_name
from incsnap.pipeline.buffer import Manifest, WindowBuffers
from incsnap.pipeline.formats import format_of
from incsnap.pipeline.parts import ChunkOrder
from incsnap.snapshot import failures
from incsnap.snapshot.chunk import ordering_columns
from incsnap.snapshot.chunk_query import chunk_tail

log = logging.getLogger(__name__)

#: Bytes of a chunk on the wire, and of its keys and values: a chunk that takes more is halved, down to a single row,
#: which may be of any size. What a reader holds is the one and twice the other, so these are what two readers may take
#: beside the rest of a job of 1.6 GB (with 192 and 256 MiB, eleven rows of 16 MB took 1.2 GB in one reader). A window's
#: rest goes out with one batch when a DDL comes behind its first parts, and a sink task must be able to hold it too.
MAX_CHUNK_BYTES = 64 << 20
MAX_RECORD_BYTES = 128 << 20
#: Seconds of one SELECT: past them the chunk is halved. Ten times what the adaptive size aims at.
CHUNK_SECONDS = 20.0

#: Bytes of keys and values in one part of a window, about: what a batch sends of windows is a number of parts, so they
#: are small against what it can send in its time (some 50 MB/s), and large against the cost of a part (0.1 ms).
PART_BYTES = 1 << 20
#: The reader's nice value: on a busy processor the stream's own tasks (0) get nine tenths of the time, on an idle one a
#: reader gets all it wants.
NICENESS = 10

_sessions: dict[str, Connection[Any]] = {}


def read_chunks(orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> list[str]:
    """Reads the chunks one after the other; the ids of their windows, which have a manifest now.

    A stalled commit keeps all of them from being read: after the first the others are left for later at once.
    """
    return _aside().submit(_read_all, orders, settings, buffers).result()


@cache
def _aside() -> ThreadPoolExecutor:
    """The worker's thread for chunks. Kept: Arrow's allocator keeps memory by thread, a new one faults it in anew."""
    return ThreadPoolExecutor(1, "incsnap-chunk", initializer=_give_way)


def _give_way() -> None:
    """On Linux a thread has a nice value of its own, so the worker stays as it is for the stream's next task."""
    process_name.take(process_name.CHUNK)
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _read_all(orders: Sequence[ChunkOrder], settings: Settings, buffers: WindowBuffers) -> list[str]:
    left = ""
    for order in orders:
        id_ = order.read.window.id
        if left:
            buffers.write_manifest(id_, Manifest(window_id=id_, error=left))
            continue
        error = read_window(order, settings, buffers).error
        if error.startswith(f"{failures.STALLED}:"):
            left = error
    return [order.read.window.id for order in orders]


def read_window(order: ChunkOrder, settings: Settings, buffers: WindowBuffers) -> Manifest:
    """Reads the chunk, writes its window and manifest; returns the manifest, which names an error if there was one.

    Only what keeps the manifest itself from being written is raised.
    """
    planned = order.read
    window = planned.window
    began = time.time()
    try:
        connection = _session(settings.mysql)
        low_fence(connection, planned.fence, settings.executed_wait_seconds)
    except ServerUnreachable as error:
        manifest = _failed(window.id, failures.UNREACHABLE, error)
    except ChunkFailed as error:
        # Is it still the stream's server? One that was demoted answers, and never gets to the fence. A new connection
        # costs 10 ms, the wait has cost seconds.
        connection.close()
        manifest = _failed(window.id, failures.STALLED, error)
    else:
        try:
            manifest = _read(connection, order, settings, buffers, began)
        except Exception as error:  # noqa: BLE001 - the chunk is in the offset: raised, it would fail every replay
            manifest = _failed(window.id, _kind(error), error)
    if manifest.error:
        log.warning("Chunk %s of %s was not read: %s", window.id, window.table, manifest.error)
    buffers.write_manifest(window.id, manifest)
    return manifest


def _read(
    connection: Connection[Any],
    order: ChunkOrder,
    settings: Settings,
    buffers: WindowBuffers,
    began: float,
) -> Manifest:
    chunk, window, end = order.read.chunk, order.read.window, order.end
    # Behind the low fence, so that a DDL which this shape does not know lies inside the window and drops it.
    shape = shape_of(connection, chunk.table)
    if shape is None:
        raise _ShapeChangedError(f"table {chunk.table} does not exist")
    if settings.formats.show_schemas:
        shape = shape_with_defaults(connection, shape)
    try:
        tail = chunk_tail(chunk, ordering_columns(shape, chunk.columns))
    except (KeyError, ValueError) as error:
        raise _ShapeChangedError(f"the key of {chunk.table} is no longer the one it was cut by: {error}") from error
    format_ = format_of(settings, shape)
    select_began = time.monotonic()
    columns = read_chunk(
        connection, shape, tail, max_bytes=MAX_CHUNK_BYTES, timeout_seconds=CHUNK_SECONDS, needed=format_.view.needed
    )
    seconds = time.monotonic() - select_began
    high_file, high_pos = high_watermark(connection)
    server_id, server_uuid = query(connection, "SELECT @@server_id, @@server_uuid")[0]
    log_id = str(server_uuid)
    if server_of(end.server_uuid) not in ("", log_id):
        connection.close()  # this one or the tail's is from before a failover; the chunk is read again on a new one
    elif end.server_uuid:
        log_id = end.server_uuid
        _check_same_log(end, high_file, high_pos)
    now_us = time.time_ns() // 1000
    records = snapshot_records(
        format_,
        columns,
        SourceConstants(end.file, end.pos, now_us, int(server_id)),
        order.layout.partitions[format_.topic],
        order.layout.buckets,
        now_us=now_us,
        most=MAX_RECORD_BYTES,
    )
    # Rows of one identity have one key, and so one bucket.
    if not shape.key and any(map(shares_identity, records.values())):
        raise _SharedKeyError(
            f"rows of {chunk.table} have the same values in {', '.join(f.name for f in format_.view.key)}: the table"
            " has no unique key without NULLs, so message.key.columns must name columns that tell its rows apart"
        )
    record_bytes = sum(map(blocks.record_bytes, records.values()))
    rows = rows_of(columns)
    parts = max(1, min(rows, -(-record_bytes // PART_BYTES)))
    file = buffers.write_window(window.id, records, parts)
    return Manifest(
        window_id=window.id,
        rows=rows,
        record_bytes=record_bytes,
        parts=parts,
        bytes=sum(int(column.nbytes) for column in columns if column is not None),
        high_file=high_file,
        high_pos=high_pos,
        server_uuid=log_id,
        seconds=seconds,
        error="",
        file=file,
        began=began,
        ended=time.time(),
        process=os.getpid(),
    )


def _check_same_log(end: StreamPosition, high_file: str, high_pos: int) -> None:
    """The stream was at ``end`` before the SELECT, so the end of that binlog lies behind it. Where it does not, the
    server has begun another one, of which the stream is yet to hear."""
    if end.file and not BinlogPosition(high_file, high_pos).reached(end.file, end.pos):
        raise _AnotherLogError(f"the binlog ends at {high_file}:{high_pos}, and was read up to {end.file}:{end.pos}")


def _session(settings: MySqlSettings) -> Connection[Any]:
    """The worker's connection, kept between batches: opening one costs 3-10 ms, a chunk of an idle table less."""
    key = settings.model_dump_json(context={"reveal": True})
    connection = _sessions.get(key)
    if connection is not None and connection.open:
        try:
            connection.ping(reconnect=False)
            return connection
        except (pymysql.err.MySQLError, OSError):
            pass
    connection = _sessions[key] = connect(settings)
    return connection


class _SharedKeyError(Exception):
    """Rows that cannot be told apart."""


class _AnotherLogError(Exception):
    """The server's binlog is another than the stream's."""


class _ShapeChangedError(Exception):
    """The table is not the one that the chunk was planned for; the DDL is on its way through the log."""


def _kind(error: Exception) -> str:
    """Whose fault it was: what decides whether the chunk is read again, halved or given up (``snapshot.failures``)."""
    if isinstance(error, ChunkFailed):
        cause = error.__cause__
        if isinstance(cause, pymysql.err.MySQLError):
            return _kind_of_refusal(cause)
        return "value" if cause is not None else failures.TOO_LARGE
    for kinds, kind in _KINDS:
        if isinstance(error, kinds):
            return kind
    # The plain IncsnapError is that of 2 GiB in one column.
    if type(error) is IncsnapError:
        return failures.TOO_LARGE
    log.error("A chunk failed in an unforeseen way", exc_info=error)
    return "defect"


_KINDS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((UnsupportedType,), failures.UNSUPPORTED),
    # OSError: the connection's own are ServerUnreachable, so it is where the window is written that is away or full.
    ((ServerUnreachable, OSError, _AnotherLogError), failures.UNREACHABLE),
    ((_ShapeChangedError, QueryRefusedError), failures.SHAPE),
    ((MemoryError, pa.ArrowCapacityError, RecordsTooLarge), failures.TOO_LARGE),
    ((_SharedKeyError,), failures.SHARED_KEY),
    # The row is found by halving and put into quarantine.
    ((ValueRefused,), "value"),
)


def _kind_of_refusal(error: pymysql.err.MySQLError) -> str:
    if is_gone(error):
        return failures.UNREACHABLE
    match error.args[0]:
        case 3024:
            return failures.TIMEOUT
        case 1205 | 1213 | 1317:  # a locked table, a deadlock, KILL QUERY: not the chunk's fault
            return failures.STALLED
        case 1054 | 1146 | 1176 | 1412:
            return failures.SHAPE
        case _:
            return "sql"


def _failed(window_id: str, kind: str, error: Exception) -> Manifest:
    text = error.message if isinstance(error, IncsnapError) else shorten(error, 400)
    return Manifest(window_id=window_id, error=f"{kind}: {text}")
