"""The buffer between two threads: one fills it and stops where it is full, the other waits for what it asks.

A full buffer stops the thread that reads, and TCP then stops the server; it never stops while nothing that could be
handed out lies ahead, so a transaction larger than memory flows through in parts.
"""

from __future__ import annotations

import threading
import time

from incsnap.binlog.buffer import Buffer
from incsnap.binlog.buffer_position import BufferPlace
from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.binlog.segments import Segment
from incsnap.errors import BinlogError, IncsnapError
from incsnap.events import BinlogPosition, StreamPosition

#: Read on regardless of memory while less than this lies ahead: room for a table map and its first rows event.
_ALWAYS_AHEAD = 64 * 1024
_REPLAY_PATIENCE_SECONDS = 60.0


class SharedBuffer:
    """``changed`` is held around all that reads or changes the rest, and notified of what somebody may wait for.
    ``queue_bytes`` bounds what is kept besides what was handed out and not forgotten."""

    def __init__(self, buffer: Buffer, queue_bytes: int) -> None:
        self.buffer = buffer
        self.changed = threading.Condition()
        self.closed = False
        #: Why no more is read.
        self.failure: IncsnapError | None = None
        #: The thread that reads waits for memory.
        self.stalled = False
        #: Somebody waits for what was read before a restart, so memory does not matter.
        self.replaying = False
        #: There is something else to be done than to wait.
        self.woken = False
        self._queue_bytes = queue_bytes

    def is_closed(self) -> bool:
        return self.closed

    # -- for the thread that reads -----------------------------------------------------------------------------------

    def append(self, segment: Segment) -> None:
        """``ConnectionLost`` where the buffer was closed meanwhile."""
        with self.changed:
            self.buffer.append(segment)
        self._make_room()

    def come_to(self, position: BinlogPosition) -> None:
        """All before it was appended."""
        with self.changed:
            self.buffer.newest = position
            self.changed.notify_all()

    def fail(self, failed: IncsnapError) -> None:
        """Whoever waits for more gets this error instead."""
        with self.changed:
            self.failure = failed
            self.changed.notify_all()

    def pause(self, seconds: float) -> None:
        """For that long, or until it is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed, seconds)

    def _make_room(self) -> None:
        """Back-pressure: wait while the buffer is full and something to hand out lies ahead."""
        enough = max(_ALWAYS_AHEAD, self._queue_bytes // 4)
        buffer = self.buffer
        with self.changed:
            while buffer.cost >= self._queue_bytes and buffer.ahead >= enough and not (self.closed or self.replaying):
                self.stalled = True
                self.changed.notify_all()
                self.changed.wait()
            self.stalled = False
            if self.closed:
                raise ConnectionLost("closed")

    # -- for who asks; ``changed`` is held already -------------------------------------------------------------------

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def wait_for_more(self, deadline: float, until: tuple[str, int] | None, max_bytes: int) -> None:
        """Until it is worth cutting again. A cut looks at every segment, so not after each of thousands."""
        buffer = self.buffer
        work, cost = buffer.work, buffer.cost
        while (remaining := deadline - time.monotonic()) > 0:
            self.changed.wait(remaining)
            if self.failure is not None or self.stalled or self.closed or self.woken:
                return
            if until is None and buffer.work != work:
                return
            if until is not None and (buffer.newest.reached(*until) or buffer.cost - cost >= max_bytes // 4):
                return

    def wait_until_read(self, until: tuple[str, int], deadline: float) -> bool:
        """Whether all before a file and position is there in time; False at once where nothing more is being read."""
        while not self.buffer.newest.reached(*until):
            left = deadline - time.monotonic()
            if left <= 0 or self.stalled or self.failure is not None or self.closed:
                return False
            self.changed.wait(left)
        return True

    def replayed(self, position: StreamPosition) -> BufferPlace:
        """The place of a position that a batch has, or had before a restart: then all up to it is read again first.
        ``BinlogError`` after a minute without any progress."""
        last_progress = time.monotonic()
        newest = self.buffer.newest
        try:
            while (place := self.buffer.place_of(position)) is None:
                self.raise_failure()
                self.replaying = True
                self.changed.notify_all()
                self.changed.wait(1.0)
                now = time.monotonic()
                if self.buffer.newest != newest:
                    newest, last_progress = self.buffer.newest, now
                elif now - last_progress > _REPLAY_PATIENCE_SECONDS:
                    raise BinlogError(
                        f"the binlog did not come to {position.file}:{position.pos} again",
                        "The server may have lost its last transactions; see its error log.",
                    )
        finally:
            self.replaying = False
        return place
