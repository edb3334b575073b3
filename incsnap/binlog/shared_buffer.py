"""The buffer between two threads: the tail's thread fills it, and the planner's thread waits for data.

If the buffer is full, the tail's thread stops reading, and TCP then stops the server. The thread never stops while
nothing that can be handed out lies ahead. So a transaction larger than the memory flows through in parts.
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

#: Bytes that may always lie ahead, even if memory is full: enough for a table map and its first rows event.
_ALWAYS_AHEAD = 64 * 1024
_REPLAY_PATIENCE_SECONDS = 60.0


class SharedBuffer:
    """A buffer with its lock and the state of both threads.

    `changed` guards everything else, and is notified of every change that a thread may wait for. `queue_bytes` bounds
    the memory besides batches that were handed out and not forgotten.
    """

    def __init__(self, buffer: Buffer, queue_bytes: int) -> None:
        self.buffer = buffer
        self.changed = threading.Condition()
        self.closed = False
        #: The error that ended the reading, or None.
        self.failure: IncsnapError | None = None
        #: The tail's thread waits for memory.
        self.stalled = False
        #: The planner waits for events that were read before a restart, so the bound on memory does not apply.
        self.replaying = False
        #: The planner has other work, so `wait_for_more` returns at once.
        self.woken = False
        self._queue_bytes = queue_bytes

    def is_closed(self) -> bool:
        """Return True if the tail was closed."""
        return self.closed

    # -- for the thread that reads -----------------------------------------------------------------------------------

    def append(self, segment: Segment) -> None:
        """Append a segment, then wait while the buffer is full.

        Raise ConnectionLost if the buffer was closed meanwhile.
        """
        with self.changed:
            self.buffer.append(segment)
        self._make_room()

    def come_to(self, position: BinlogPosition) -> None:
        """Note that the stream was read up to `position`, and that all segments before it were appended."""
        with self.changed:
            self.buffer.newest = position
            self.changed.notify_all()

    def fail(self, failed: IncsnapError) -> None:
        """Raise `failed` in every call that waits for more data."""
        with self.changed:
            self.failure = failed
            self.changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or until the buffer is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed, seconds)

    def _make_room(self) -> None:
        """Wait while the buffer is full and something to hand out lies ahead (back-pressure)."""
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

    # -- for the planner's thread, which holds `changed` already -------------------------------------------------------

    def raise_failure(self) -> None:
        """Raise the error that ended the reading, if there is one."""
        if self.failure is not None:
            raise self.failure

    def wait_for_more(self, deadline: float, until: tuple[str, int] | None, max_bytes: int) -> None:
        """Wait until a new cut is worth trying, at most until `deadline`.

        Without `until`, this is the case after rows or statements came. With `until`, it is the case when the stream
        was read up to that place, or when a quarter of `max_bytes` came. The wait also ends if nothing more is read, or
        after `Tail.wake`. A cut looks at every segment, so it is not tried after each of thousands of segments.
        """
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
        """Wait until the stream was read up to the place `until`.

        Return False at `deadline`, or if nothing more is read.
        """
        while not self.buffer.newest.reached(*until):
            left = deadline - time.monotonic()
            if left <= 0 or self.stalled or self.failure is not None or self.closed:
                return False
            self.changed.wait(left)
        return True

    def replayed(self, position: StreamPosition) -> BufferPlace:
        """Return the place of `position`, which is the beginning or the end of a batch.

        After a restart the tail reads the events again. Wait until it has come to `position`. Raise BinlogError after a
        minute without progress.
        """
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
                        f"the binlog no longer reaches {position.file}:{position.pos}",
                        "The server may have lost its last transactions; see its error log.",
                    )
        finally:
            self.replaying = False
        return place
