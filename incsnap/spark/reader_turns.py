"""The common limit on chunk readers for all jobs that share one session.

All jobs together read as many chunks at the same time as the job with the highest limit may read alone. Otherwise the
chunks of a few jobs would take all task slots of the session, and each job's batches would wait for chunks of others.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pyspark import SparkContext


class ReaderTurns:
    """The turns of one session's readers, in the order in which threads ask. It is thread-safe.

    A job with many chunks therefore does not keep out a job with few.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._running = 0
        #: The limit of each open job.
        self._counts: list[int] = []

    def open(self, count: int) -> None:
        """Add a job that may read `count` chunks at the same time."""
        with self._changed:
            self._counts.append(count)
            self._changed.notify_all()

    def close(self, count: int) -> None:
        """Remove a job. Its threads that wait for a turn check whether they give up."""
        with self._changed:
            self._counts.remove(count)
            self._changed.notify_all()

    def wake(self) -> None:
        """Let threads that wait for a turn check whether they give up."""
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def turn(self, given_up: Callable[[], bool], count: int = 1) -> Iterator[bool]:
        """Wait for a turn, and hold it during the block. Yield False if `given_up` became true meanwhile.

        `count`: how many turns are taken together. They must not be more than an open job may have.
        """
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: given_up() or (self._waiting[0] is ticket and self._is_free(count)))
            self._waiting.remove(ticket)
            is_mine = not given_up()
            self._running += count * is_mine
            self._changed.notify_all()
        try:
            yield is_mine
        finally:
            with self._changed:
                self._running -= count * is_mine
                self._changed.notify_all()

    def _is_free(self, count: int) -> bool:
        return self._running + count <= max(self._counts, default=0)


_of_contexts: WeakKeyDictionary[SparkContext, ReaderTurns] = WeakKeyDictionary()
_lock = threading.Lock()


def turns_of(context: SparkContext) -> ReaderTurns:
    """Return the turns that all jobs on this context share."""
    with _lock:
        return _of_contexts.setdefault(context, ReaderTurns())
