"""The search for statements in a stretch of the binlog that is longer than memory holds, by a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.protocol.dump_connection import ConnectionLost, connect_beside, open_stream
from incsnap.binlog.protocol.frames import blocks_until
from incsnap.binlog.segments import IdTable
from incsnap.binlog.stream_reader import StreamReader
from incsnap.errors import ServerUnreachable
from incsnap.events import SchemaChange, StreamPosition

#: Seconds between two heartbeats. They show how far the server is while it skips transactions, and at the binlog's end.
_HEARTBEAT_SECONDS = 0.05


def statements_behind(
    connect: Callable[[], Any],
    server_id: int,
    options: CaptureOptions,
    position: StreamPosition,
    until: tuple[str, int],
    closed: Callable[[], bool] = lambda: False,
) -> tuple[SchemaChange, ...]:
    """Return the statements that the binlog has from `position` up to the file and position `until`, and perhaps a few
    later ones.

    The search reads the binlog again by a connection of its own, while the job's own reader (the tail) goes on. The
    stretch may be longer than the tail's memory, because the search keeps no rows.

    `connect` opens a PyMySQL connection of a user with REPLICATION SLAVE. `server_id` is the tail's. The search's
    connection has a replica uuid, so the server does not end the tail's connection. `options` are the tail's, and say
    which statements are needed. The search ends early when `closed` returns True. Raise ServerUnreachable, from
    ConnectionLost, if the connection breaks.
    """
    ids, no_transactions = IdTable(lambda _: False), PreparedTransactions().sibling(())
    start = StreamPosition(position.delivered, "", 0)
    # Damaged rows are reported when they are decoded, not here.
    reader = StreamReader(start, ids, "skip", replace(options, queries=False, online=None), no_transactions)
    changes: list[SchemaChange] = []
    try:
        stream, source = open_stream(
            partial(connect_beside, connect),
            server_id,
            position.delivered,
            _HEARTBEAT_SECONDS,
            position.at,
            closed,
            begun=position.begun,
        )
        with closing(stream):
            if source.server_uuid != position.server_uuid:
                raise ConnectionLost(f"the binlog is now that of {source.server_uuid}, not of {position.server_uuid}")
            reader.stream_begins(checksum=source.checksum, server_uuid=position.server_uuid)
            for block in blocks_until(lambda: reader.position.reached(*until), stream.read, closed):
                for segment in reader.add(block):
                    changes += [change for _, change in segment.changes if not _is_before(change, position)]
    except ConnectionLost as lost:
        raise ServerUnreachable(
            f"The search for statements after {position.file}:{position.pos} failed: {lost}"
        ) from lost
    return tuple(changes)


def _is_before(change: SchemaChange, position: StreamPosition) -> bool:
    """Return True if the statement belongs to the transaction that `position` cuts in two.

    The server sends that transaction again from its beginning. The statement is that of CREATE TABLE ... SELECT, before
    all of the rows.
    """
    return change.origin is not None and change.origin.gtid == position.open_gtid
