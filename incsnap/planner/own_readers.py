"""Chunks read by threads of the planner's own process: for a DataFrame on a session that is the user's.

There the driver has no job of ours that could start others, and a registered source is asked for nothing but its
batches. Decoding a chunk is NumPy's and Arrow's work, which leaves the interpreter free; the threads give way to the
tail on the processor (``tasks.chunk``).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.errors import shorten
from incsnap.planner.chunk_readers import Answer, Ask, Begun, News
from incsnap.tasks.chunk import give_way, read_together
from incsnap.tasks.partitions import ChunkOrder


class OwnReaders:
    """``count`` threads; ``wake`` is called on one of them whenever a chunk has been read."""

    def __init__(self, settings: Settings, buffers: WindowBuffers, count: int, wake: Callable[[], None]) -> None:
        self._settings = settings
        self._buffers = buffers
        self._wake = wake
        self._changed = threading.Condition()
        self._orders: deque[ChunkOrder] = deque()
        self._news: list[News] = []
        self._at_once, self._running = count, 0
        self._closed = False
        for _ in range(count):
            threading.Thread(target=self._work, name="incsnap-chunk", daemon=True).start()

    def ask(self, wish: Ask) -> None:
        """Returns at once."""
        with self._changed:
            waiting = (*self._orders, *wish.orders)
            self._orders = deque(order for order in waiting if order.read.window.id not in wish.dropped)
            self._at_once = wish.at_once
            self._changed.notify_all()

    def news(self) -> list[News]:
        """Return what has come since the last call."""
        with self._changed:
            news, self._news = self._news, []
        return news

    def close(self) -> None:
        """What is being read ends by itself: it leaves a file that nobody asks for, which the next life deletes."""
        with self._changed:
            self._closed = True
            self._orders.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        give_way()
        while (order := self._take()) is not None:
            error = ""
            try:
                read_together([order], self._settings, self._buffers)
            except Exception as problem:  # noqa: BLE001 - what is wrong with a chunk itself is in its manifest
                error = shorten(problem)
            with self._changed:
                self._running -= 1
                self._news.append(Answer(order.read.window.id, error))
                self._changed.notify_all()
            self._wake()

    def _take(self) -> ChunkOrder | None:
        """The next order, waiting for one; None when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: (self._orders and self._running < self._at_once) or self._closed)
            if self._closed:
                return None
            self._running += 1
            order = self._orders.popleft()
            self._news.append(Begun((order.read.window.id,)))
            return order
