"""The thread of the tail: it reads the binlog into the buffer, by one connection after another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import BinlogStream, ConnectionLost, LogSource
from incsnap.binlog.protocol.frames import Block
from incsnap.binlog.reconnecting import stay_connected
from incsnap.binlog.rollbacks import RolledBackError
from incsnap.binlog.shared_buffer import SharedBuffer
from incsnap.binlog.stream_reader import StreamReader
from incsnap.binlog.tail_connections import TailConnections
from incsnap.errors import BinlogError, IncsnapError, OffsetError
from incsnap.events import BinlogPosition
from incsnap.gtid import GtidSet

_log = logging.getLogger(__name__)


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
        self._reconnect_seconds = reconnect_seconds
        self._connections = TailConnections(connect, server_id, heartbeat_seconds, self)
        self._reader = reader(self._connections.file_begins)
        self._stream: BinlogStream | None = None
        #: Number of connections made.
        self._made = 0
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

    def begun(self, at: BinlogPosition) -> int:
        """Return when the server began the file of `at` (see `StreamReader.begun`)."""
        return self._reader.begun(at)

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open."""
        return self._stream is not None

    @property
    def reconnects(self) -> int:
        """Return how many connections were made after the first one."""
        return max(0, self._made - 1)

    def _run(self) -> None:
        read = partial(self._search.around, partial(self._connections.read, self._reader), self.reached)
        try:
            stay_connected(
                read,
                lambda: self._reader.position,
                lambda: self._made,
                self.is_closed,
                self._shared.pause,
                self._reconnect_seconds,
            )
        except IncsnapError as failed:
            self._shared.fail(failed)
        except Exception as defect:  # noqa: BLE001 - whatever it was, advance() must raise it instead of waiting for ever
            _log.exception("The binlog tail failed")
            self._shared.fail(BinlogError(f"reading the binlog failed at {self._reader.position}: {defect!r}"))

    # -- the methods of `tail_connections.Receiver` --------------------------------------------------------------------

    def reached(self) -> GtidSet:
        """Return the transactions that were received completely."""
        with self._shared.changed:
            return self._shared.buffer.reached()

    def is_closed(self) -> bool:
        """Return True if the tail was closed."""
        return self._shared.is_closed()

    def connected(self, stream: BinlogStream, source: LogSource, *, exchanged: bool) -> None:
        """Note a new connection. Raise ConnectionLost if the tail was closed meanwhile."""
        shared = self._shared
        with shared.changed:
            if shared.closed:
                raise ConnectionLost("closed")
            self._stream = stream
            self._made += 1
            if exchanged:
                shared.buffer.drop_open()
            self._reader.stream_begins(checksum=source.checksum, server_uuid=source.server_uuid)
            shared.come_to(self._reader.position)

    def received(self, block: Block) -> None:
        """Append the segments of a block to the buffer."""
        try:
            for segment in self._reader.add(block):
                self._shared.append(segment)
        except RolledBackError:
            # Parts of the transaction that were handed out are sent. The rest of it is not.
            with self._shared.changed, suppress(OffsetError):
                self._shared.buffer.drop_open()
            raise
        self._shared.come_to(self._reader.position)

    def disconnected(self) -> None:
        """Note that the connection is closed."""
        with self._shared.changed:
            self._stream = None
