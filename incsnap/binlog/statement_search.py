"""The statements of a stretch of the binlog that is longer than memory holds, read by a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.protocol.dump_connection import ConnectionLost, open_stream
from incsnap.binlog.read_again import connect_beside, segments_until
from incsnap.binlog.segments import Names
from incsnap.binlog.stream_reader import StreamReader
from incsnap.errors import ServerUnreachable
from incsnap.events import SchemaChange, StreamPosition

#: The server says where it is while it passes over transactions, and at the end of its binlog.
_HEARTBEAT_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class StatementSearch:
    """A search for the statements behind a position of the binlog."""

    connect: Callable[[], Any]  #: opens a PyMySQL connection with REPLICATION SLAVE
    server_id: int  #: the tail's, which goes on
    options: CaptureOptions  #: the tail's, which say what statements are of interest
    closed: Callable[[], bool] = lambda: False  #: whether to give up

    def behind(self, position: StreamPosition, until: tuple[str, int]) -> tuple[SchemaChange, ...]:
        """Those from ``position`` on, at least up to the place ``until`` of the same binlog. No row is kept, so memory
        does not matter. ``ServerUnreachable`` where the connection breaks off.
        """
        try:
            stream, source = open_stream(
                partial(connect_beside, self.connect),
                self.server_id,
                position.delivered,
                _HEARTBEAT_SECONDS,
                position.at,
                self.closed,
                begun=position.begun,
            )
            with closing(stream):
                if source.server_uuid != position.server_uuid:
                    raise ConnectionLost(f"the binlog is that of {source.server_uuid}, not {position.server_uuid}")
                return tuple(self._read(stream.read, position, until, checksum=source.checksum))
        except ConnectionLost as lost:
            raise ServerUnreachable(f"Looking for statements behind {position.file}:{position.pos}: {lost}") from lost

    def _read(
        self, read: Callable[[], bytes], position: StreamPosition, until: tuple[str, int], *, checksum: bool
    ) -> list[SchemaChange]:
        names, no_transactions = Names(lambda _: False), PreparedTransactions().sibling(())
        start = StreamPosition(position.delivered, "", 0)
        # What is wrong with rows is for those to say who read them.
        reader = StreamReader(start, names, "skip", replace(self.options, queries=False), no_transactions)
        reader.stream_begins(checksum=checksum, server_uuid=position.server_uuid)
        changes: list[SchemaChange] = []
        for segments in segments_until(lambda: reader.position.reached(*until), reader, read, self.closed):
            for segment in segments:
                changes += [change for _, change in segment.changes if not _is_before(change, position)]
        return changes


def _is_before(change: SchemaChange, position: StreamPosition) -> bool:
    """Is it a statement of the transaction that the position cuts in two, which comes again from its beginning? Such a
    one is that of CREATE TABLE ... SELECT, and before all of its rows."""
    return change.origin is not None and change.origin.gtid == position.open_gtid
