"""The tail's replication connections, one after another: where each goes on, and whether it is the same binlog."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from incsnap.binlog.protocol.dump_connection import BinlogStream, ConnectionLost, LogSource, LogVanished, open_stream
from incsnap.binlog.protocol.frames import Block, Framer
from incsnap.binlog.stream_reader import StreamReader
from incsnap.errors import BinlogError, shorten
from incsnap.events import BinlogPosition, server_of
from incsnap.gtid import GtidSet

_log = logging.getLogger(__name__)

_LOOK = "See the server's error log: files of its binlog are gone."


class Receiver(Protocol):
    """Who takes what the connections bring: the tail."""

    def reached(self) -> GtidSet:
        """The transactions that were received wholly."""

    def is_closed(self) -> bool: ...

    def connected(self, stream: BinlogStream, source: LogSource, *, exchanged: bool) -> None:
        """A connection was made; ``exchanged``: to another binlog than the one before. ``ConnectionLost`` where the
        receiver was closed meanwhile."""

    def received(self, block: Block) -> None: ...

    def disconnected(self) -> None: ...


class TailConnections:
    """``connect`` opens a PyMySQL connection with REPLICATION SLAVE; ``server_id`` is used by nobody else."""

    def __init__(
        self, connect: Callable[[], Any], server_id: int, heartbeat_seconds: float, receiver: Receiver
    ) -> None:
        self._connect = connect
        self._server_id = server_id
        self._heartbeat_seconds = heartbeat_seconds
        self._receiver = receiver
        self._server_uuid = ""
        self._files_begun = 0
        self._purged = GtidSet()
        #: Why the binlog seems to be another one, which the next connection looks into.
        self._doubt = ""
        #: Where the server stopped because a file of its binlog was gone.
        self._vanished: BinlogPosition | None = None

    def read(self, reader: StreamReader) -> None:
        """Reads by one connection from the position of ``reader`` on, until it is lost: ``ConnectionLost``."""
        at, receiver = reader.position, self._receiver
        stream, source = open_stream(
            self._connect,
            self._server_id,
            receiver.reached(),
            self._heartbeat_seconds,
            at,
            receiver.is_closed,
            self._doubt,
            reader.begun(at),
        )
        self._doubt, self._files_begun, self._purged, self._server_uuid = "", 0, source.purged, source.server_uuid
        try:
            exchanged = at.server_uuid not in ("", source.server_uuid)
            if exchanged and source.anew:
                _log.warning("server %s has begun its binlog anew: %s", server_of(at.server_uuid), source.anew)
            elif exchanged:
                _log.warning("the binlog is read from server %s now, not %s", source.server_uuid, at.server_uuid)
            receiver.connected(stream, source, exchanged=exchanged)
            framer = Framer()
            while True:
                for block in framer.feed(stream.read()):
                    receiver.received(block)
        except LogVanished as vanished:
            # After RESET BINARY LOGS AND GTIDS the next connection finds another binlog; else the files are gone.
            if self._vanished == reader.position:
                raise BinlogError(f"the server stopped sending the binlog: {vanished}", _LOOK) from vanished
            self._vanished = reader.position
            raise
        finally:
            receiver.disconnected()
            stream.close()

    def file_begins(self, passed: GtidSet) -> None:
        """``passed``: all that the log has had before the file. The first one of a connection was chosen by the server,
        to what was delivered. Of a later one it names nothing that did not come, and all that came from this server and
        is in its files; else it was reset while the file before was read to its end, which a dump does not notice where
        the first file has the same name again.
        """
        self._files_begun += 1
        if self._files_begun == 1:
            return
        reached = self._receiver.reached()
        own = server_of(self._server_uuid)
        # GTIDs that SET GLOBAL gtid_purged has made executed are named nowhere.
        gone = GtidSet({source: spans for source, spans in reached - passed - self._purged if source[0] == own})
        if gone or not passed <= reached:
            self._doubt = f"{shorten(gone)} is in it no more" if gone else f"{shorten(passed - reached)} did not come"
            raise ConnectionLost(f"the binlog is another one: {self._doubt}")
