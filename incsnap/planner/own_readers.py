"""The chunk readers of a DataFrame on a session of the user: threads of the planner's own process.

On such a session the driver has no job of incsnap that could start others, and Spark asks a registered source for its
batches only. NumPy and Arrow decode a chunk without holding the interpreter's lock. The threads give way to the tail on
the processor (`tasks.chunk`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.errors import shorten
from incsnap.planner.chunk_readers import Answer, Begun, ReaderMessage, ReadOrders
from incsnap.planner.order_queue import OrderQueue
from incsnap.tasks.chunk import give_way, read_together


class OwnReaders:
    """The chunk readers of one planner, on `count` threads. Each calls `wake` whenever it has read a chunk."""

    def __init__(self, settings: Settings, buffers: WindowBuffers, count: int, wake: Callable[[], None]) -> None:
        self._settings = settings
        self._buffers = buffers
        self._wake = wake
        self._queue = OrderQueue(count, replaces_readers=True)
        self._messages: list[ReaderMessage] = []
        for _ in range(count):
            self._begin_thread()

    def order(self, message: ReadOrders) -> None:
        """Take the orders, and return at once.

        A thread whose window is dropped may hang, so another thread takes its place.
        """
        for _ in range(self._queue.obey(message)):
            self._begin_thread()

    def messages(self) -> list[ReaderMessage]:
        """Return what has come since the last call."""
        with self._queue.changed:
            messages, self._messages = self._messages, []
        return messages

    def close(self) -> None:
        """End the threads. A chunk that is being read still leaves a file; the next process deletes that file."""
        self._queue.close()

    def _begin_thread(self) -> None:
        threading.Thread(target=self._work, name="incsnap-chunk", daemon=True).start()

    def _work(self) -> None:
        """Read one order after the other, until `close` or until another thread has taken this one's place."""
        give_way()
        is_wanted = True
        while is_wanted and (orders := self._queue.take(most_rows=1)):
            window_id, error = orders[0].read.window.id, ""
            self._tell(Begun((window_id,)))
            try:
                read_together(orders, self._settings, self._buffers)
            except Exception as problem:  # noqa: BLE001 - an error of the chunk itself is in its manifest
                error = shorten(problem)
            with self._queue.changed:
                is_wanted = self._queue.is_wanted(orders)
                self._queue.finish(orders, {window_id})
                self._tell(Answer(window_id, error))
            self._wake()

    def _tell(self, message: ReaderMessage) -> None:
        with self._queue.changed:
            self._messages.append(message)
