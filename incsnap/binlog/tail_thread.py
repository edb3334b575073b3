"""The thread of the tail: it reads the binlog into the buffer, by one connection after another.

It decides where each connection continues, and whether the binlog is still the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import BinlogStream, ConnectionLost, LogSource, LogVanished, open_stream
from incsnap.binlog.protocol.frames import Block, Framer
from incsnap.binlog.reconnecting import stay_connected
from incsnap.binlog.rollbacks import RolledBackError
from incsnap.binlog.shared_buffer import SharedBuffer
from incsnap.binlog.stream_reader import StreamReader
from incsnap.errors import BinlogError, IncsnapError, OffsetError, shorten
from incsnap.events import BinlogPosition, server_of
from incsnap.gtid import GtidSet

_log = logging.getLogger(__name__)

_LOOK = "See the server's error log: files of its binlog are gone."


class TailThread:
    """The thread that reads the binlog, from its creation until `close` or an error. `shared` gets the error.

    `reader` creates the StreamReader, with the function to call before each file. `search` finds XA transactions that
    were prepared before the stream's beginning. For the other arguments see Tail.
    """

    def __init__(
        self,
        shared: SharedBuffer,
        reader: Callable[[Callable[[GtidSet], None]], StreamReader],
        search: PreparedSearch,
        connect: Callable[[], Any],
        server_id: int,
        heartbeat_seconds: float,
        reconnect_seconds: float,
    ) -> None:
        self._shared = shared
        self._search = search
        self._connect = connect
        self._server_id = server_id
        self._heartbeat_seconds = heartbeat_seconds
        self._reconnect_seconds = reconnect_seconds
        #: The source of the present connection, or of the last one.
        self._source = LogSource("", checksum=False)
        #: Number of files that the present connection has begun.
        self._files_begun = 0
        #: The reason why the binlog seems to be another one; the next connection checks that. "": no doubt.
        self._doubt = ""
        #: Position at which the server stopped, because a file of its binlog was gone.
        self._vanished: BinlogPosition | None = None
        self.reader = reader(self._file_begins)
        self._stream: BinlogStream | None = None
        #: Number of connections made.
        self.connections = 0
        self._thread = threading.Thread(target=self._run, name="incsnap-binlog-tail", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and its connection. A second call does nothing."""
        with self._shared.changed:
            self._shared.closed = True
            if self._stream is not None:
                self._stream.abort()
            self._shared.changed.notify_all()
        self._thread.join()

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open."""
        return self._stream is not None

    def _run(self) -> None:
        try:
            stay_connected(
                partial(self._search.around, self._read, self._reached),
                lambda: self.reader.position,
                lambda: self.connections,
                self._shared.is_closed,
                self._shared.pause,
                self._reconnect_seconds,
            )
        except IncsnapError as failed:
            self._shared.fail(failed)
        except Exception as defect:  # noqa: BLE001 - whatever it was, advance() must raise it instead of waiting for ever
            _log.exception("The binlog tail failed")
            self._shared.fail(BinlogError(f"reading the binlog failed at {self.reader.position}: {defect!r}"))

    def _read(self) -> None:
        """Read by one connection, from the reader's position on, until the connection is lost.

        Raise ConnectionLost then. Raise BinlogError if the server stops twice at one position because a file is gone.
        """
        at = self.reader.position
        stream, source = open_stream(
            self._connect,
            self._server_id,
            self._reached(),
            self._heartbeat_seconds,
            at,
            self._shared.is_closed,
            self._doubt,
            self.reader.place.begun(at),
        )
        self._doubt, self._files_begun, self._source = "", 0, source
        try:
            self._connected(stream, at)
            framer = Framer()
            while True:
                for block in framer.feed(stream.read()):
                    self._received(block)
        except LogVanished as vanished:
            # After RESET BINARY LOGS AND GTIDS, the next connection finds another binlog. Otherwise the files are gone.
            if self._vanished == self.reader.position:
                raise BinlogError(f"the server stopped sending the binlog: {vanished}", _LOOK) from vanished
            self._vanished = self.reader.position
            raise
        finally:
            with self._shared.changed:
                self._stream = None
            stream.close()

    def _connected(self, stream: BinlogStream, at: BinlogPosition) -> None:
        """Note a new connection, which continues at `at`. Raise ConnectionLost if the tail was closed meanwhile."""
        shared, source = self._shared, self._source
        exchanged = at.server_uuid not in ("", source.server_uuid)
        if exchanged and source.anew:
            _log.warning("Server %s has begun its binlog anew: %s", server_of(at.server_uuid), source.anew)
        elif exchanged:
            _log.warning("The binlog is read from server %s now, not %s", source.server_uuid, at.server_uuid)
        with shared.changed:
            if shared.closed:
                raise ConnectionLost("closed")
            self._stream = stream
            self.connections += 1
            if exchanged:
                shared.buffer.drop_open()
            self.reader.stream_begins(checksum=source.checksum, server_uuid=source.server_uuid)
            shared.come_to(self.reader.position)

    def _received(self, block: Block) -> None:
        """Append the segments of a block to the buffer."""
        try:
            for segment in self.reader.add(block):
                self._shared.append(segment)
        except RolledBackError:
            # Parts of the transaction that were handed out are sent. The rest of it is not.
            with self._shared.changed, suppress(OffsetError):
                self._shared.buffer.drop_open()
            raise
        self._shared.come_to(self.reader.position)

    def _reached(self) -> GtidSet:
        """Return the transactions that were received completely."""
        with self._shared.changed:
            return self._shared.buffer.reached()

    def _file_begins(self, passed: GtidSet) -> None:
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
        reached = self._reached()
        own = server_of(self._source.server_uuid)
        # GTIDs that SET GLOBAL gtid_purged made executed are in no file.
        missing = reached - passed - self._source.purged
        gone = GtidSet({source: spans for source, spans in missing if source[0] == own})
        if gone or not passed <= reached:
            self._doubt = f"{shorten(gone)} is in it no more" if gone else f"{shorten(passed - reached)} did not come"
            raise ConnectionLost(f"the server has another binlog: {self._doubt}")
