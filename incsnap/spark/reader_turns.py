"""Jobs that share a session share its readers of chunks: together they read as many at the same time as the one of them
that may read most does alone. Else the chunks of a few jobs would take all of the session's task slots, and the batches
of each would wait for chunks of the others."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pyspark import SparkContext


class ReaderTurns:
    """Thread-safe. Who asks first reads first: a job with much to read does not keep out one with little."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._running = 0
        #: Of each job that is open.
        self._counts: list[int] = []

    def open(self, count: int) -> None:
        """A job that may read ``count`` chunks at the same time begins."""
        with self._changed:
            self._counts.append(count)
            self._changed.notify_all()

    def close(self, count: int) -> None:
        """It has ended; those of its threads that wait for a turn look whether they give up."""
        with self._changed:
            self._counts.remove(count)
            self._changed.notify_all()

    @contextmanager
    def turn(self, given_up: Callable[[], bool]) -> Iterator[bool]:
        """Waits for a turn and holds it for the time of the block; False where it was given up meanwhile."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: given_up() or (self._waiting[0] is ticket and self._is_free()))
            self._waiting.remove(ticket)
            is_mine = not given_up()
            self._running += is_mine
            self._changed.notify_all()
        try:
            yield is_mine
        finally:
            with self._changed:
                self._running -= is_mine
                self._changed.notify_all()

    def _is_free(self) -> bool:
        return self._running < max(self._counts, default=0)


_of_contexts: WeakKeyDictionary[SparkContext, ReaderTurns] = WeakKeyDictionary()
_lock = threading.Lock()


def turns_of(context: SparkContext) -> ReaderTurns:
    """Those of all jobs on this context."""
    with _lock:
        return _of_contexts.setdefault(context, ReaderTurns())
