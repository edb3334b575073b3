"""The queue of chunk orders that the readers of one planner share.

`spark.reader_jobs` and `own_readers` take orders from this queue, on several threads:

    obey      the planner adds orders, drops windows, and says how many readers may run
    take      a reader waits for orders and takes its share
    finish    a reader has ended; orders that it has not come to go to the front again
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable

from incsnap.planner.chunk_readers import ReadOrders
from incsnap.snapshot.failures import LOST_BEFORE_ALONE
from incsnap.tasks.partitions import ChunkOrder


class OrderQueue:
    """Orders that wait, and orders that readers have taken.

    `at_once` is how many readers may run at the same time. `replaces_readers`: whether a new reader takes the place of
    one whose orders were dropped; otherwise the old reader keeps its place until it ends.
    """

    def __init__(self, at_once: int, *, replaces_readers: bool = False) -> None:
        #: The lock of the queue, which each method takes. A caller may hold it over several calls.
        self.changed = threading.Condition()
        self.is_closed = False
        self._replaces_readers = replaces_readers
        self._at_once, self._running = at_once, 0
        self._waiting: deque[ChunkOrder] = deque()
        #: Window id -> order that a reader has taken. An order that was dropped meanwhile is not here.
        self._taken: dict[str, ChunkOrder] = {}

    def obey(self, message: ReadOrders) -> int:
        """Add the planner's orders and drop those that it no longer wants. Return how many of the dropped were
        taken."""
        with self.changed:
            waiting = (*self._waiting, *message.orders)
            self._waiting = deque(order for order in waiting if order.read.window.id not in message.dropped)
            dropped = message.dropped & self._taken.keys()
            for window_id in dropped:
                del self._taken[window_id]
            if self._replaces_readers:
                self._running -= len(dropped)
            self._at_once = message.at_once
            self.changed.notify_all()
        return len(dropped)

    def take(self, most_rows: int) -> tuple[ChunkOrder, ...]:
        """Wait for orders and take a fair share of them, until they have `most_rows` rows. Return () after `close`."""
        with self.changed:
            self.changed.wait_for(lambda: (self._waiting and self._running < self._at_once) or self.is_closed)
            if self.is_closed:
                return ()
            share = -(-len(self._waiting) // self._at_once)
            taken = [self._waiting.popleft()]
            rows = taken[0].read.window.rows
            while self._waiting and len(taken) < share and rows < most_rows:
                if _alone(taken[0]) or _alone(self._waiting[0]):
                    break
                taken.append(self._waiting.popleft())
                rows += taken[-1].read.window.rows
            self._running += 1
            self._taken |= {order.read.window.id: order for order in taken}
            return tuple(taken)

    def is_wanted(self, orders: Iterable[ChunkOrder]) -> bool:
        """Return True if any of the taken orders was not dropped."""
        with self.changed:
            return any(self._taken.get(order.read.window.id) is order for order in orders)

    def finish(self, orders: Iterable[ChunkOrder], answered: Collection[str]) -> tuple[str, ...]:
        """Note that the reader of `orders` has ended. Put back those whose windows are not in `answered`.

        Return the windows that were put back.
        """
        with self.changed:
            still_taken = [order for order in orders if self._taken.get(order.read.window.id) is order]
            for order in still_taken:
                del self._taken[order.read.window.id]
            if still_taken or not self._replaces_readers:
                self._running -= 1
            left = [order for order in still_taken if order.read.window.id not in answered]
            self._waiting.extendleft(reversed(left))
            self.changed.notify_all()
        return tuple(order.read.window.id for order in left)

    def clear(self) -> None:
        """Drop all orders. Readers that run keep their places until they end."""
        with self.changed:
            self._waiting.clear()
            self._taken.clear()

    def close(self) -> None:
        """Drop the orders that wait, and let `take` return."""
        with self.changed:
            self.is_closed = True
            self._waiting.clear()
            self.changed.notify_all()


def _alone(order: ChunkOrder) -> bool:
    """Whether the chunk must be read in a job of its own.

    A chunk that was lost repeatedly may kill its reader, and other chunks would be lost with it. A chunk with a doubled
    time limit takes long, and other chunks would wait.
    """
    return order.read.window.lost >= LOST_BEFORE_ALONE or order.read.window.doublings > 0
