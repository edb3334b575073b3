"""The tail's replication connections, one after another: where each continues, and whether the binlog is the same."""

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
    """The object that receives blocks and changes of the connection: the tail's thread.

    `is_closed` returns whether the tail was closed. `received` gets each block of events. `disconnected` is called
    after the connection was lost or closed.
    """

    def reached(self) -> GtidSet:
        """Return the transactions that were received completely."""

    def is_closed(self) -> bool: ...

    def connected(self, stream: BinlogStream, source: LogSource, *, exchanged: bool) -> None:
        """Note a new connection. `exchanged`: it leads to another binlog than the connection before.

        Raise ConnectionLost if the receiver was closed meanwhile.
        """

    def received(self, block: Block) -> None: ...

    def disconnected(self) -> None: ...


class TailConnections:
    """The connections to the server, one at a time.

    `connect` opens a PyMySQL connection with REPLICATION SLAVE. No other client uses `server_id`.
    """

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
        #: The reason why the binlog seems to be another one; the next connection checks that. "": no doubt.
        self._doubt = ""
        #: Position at which the server stopped, because a file of its binlog was gone.
        self._vanished: BinlogPosition | None = None

    def read(self, reader: StreamReader) -> None:
        """Read by one connection, from the position of `reader` on, until the connection is lost.

        Raise ConnectionLost then. Raise BinlogError if the server stops twice at one position because a file is gone.
        """
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
                _log.warning("Server %s has begun its binlog anew: %s", server_of(at.server_uuid), source.anew)
            elif exchanged:
                _log.warning("The binlog is read from server %s now, not %s", source.server_uuid, at.server_uuid)
            receiver.connected(stream, source, exchanged=exchanged)
            framer = Framer()
            while True:
                for block in framer.feed(stream.read()):
                    receiver.received(block)
        except LogVanished as vanished:
            # After RESET BINARY LOGS AND GTIDS, the next connection finds another binlog. Otherwise the files are gone.
            if self._vanished == reader.position:
                raise BinlogError(f"the server stopped sending the binlog: {vanished}", _LOOK) from vanished
            self._vanished = reader.position
            raise
        finally:
            receiver.disconnected()
            stream.close()

    def file_begins(self, passed: GtidSet) -> None:
        """Check at the beginning of a file that the binlog is still the same.

        Raise ConnectionLost if it is another one. `passed` holds the GTIDs of all earlier files, as the server wrote
        them. The first file of a connection is not checked: the server chose it by the delivered GTIDs. In a later file
        two things must hold. All of `passed` were received. And `passed` contains all received transactions of this
        server, except purged ones. If one of the two does not hold, the server was reset while the file before was
        being read, and a new file has the name of the expected one. The dump itself does not notice that.
        """
        self._files_begun += 1
        if self._files_begun == 1:
            return
        reached = self._receiver.reached()
        own = server_of(self._server_uuid)
        # GTIDs that SET GLOBAL gtid_purged made executed are in no file.
        gone = GtidSet({source: spans for source, spans in reached - passed - self._purged if source[0] == own})
        if gone or not passed <= reached:
            self._doubt = f"{shorten(gone)} is in it no more" if gone else f"{shorten(passed - reached)} did not come"
            raise ConnectionLost(f"the server has another binlog: {self._doubt}")
