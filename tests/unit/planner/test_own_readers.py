"""Tests of chunk readers on threads of the planner's own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.planner import own_readers
from incsnap.planner.chunk_readers import Answer, ReadOrders
from incsnap.planner.own_readers import OwnReaders
from incsnap.tasks.partitions import ChunkOrder
from lab.addresses import MySqlAddress
from tests.support.chunk_orders import order
from tests.support.planned_job import settings_of

SECONDS = 20.0


class Readers:
    """Two readers. They do not finish a chunk whose name begins with "hung" before `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on, self.is_hung = threading.Event(), threading.Barrier(3)
        monkeypatch.setattr(own_readers, "read_together", self._read)
        monkeypatch.setattr(own_readers, "give_way", lambda: None)
        self._woken = threading.Semaphore(0)
        settings = settings_of(MySqlAddress("h", 1), "k:1", "p", "d")
        # Threads of an earlier test's readers may still be ending.
        self._others = set(threading.enumerate())
        self.readers = OwnReaders(settings, WindowBuffers("/nowhere"), 2, self._woken.release)

    def _read(self, orders: Sequence[ChunkOrder], *_: object) -> None:
        if orders[0].read.window.id.startswith("hung"):
            self.is_hung.wait(SECONDS)
            self.go_on.wait(9 * SECONDS)

    def threads(self) -> list[threading.Thread]:
        """Return the living threads of these readers."""
        threads = set(threading.enumerate()) - self._others
        return [thread for thread in threads if thread.name == "incsnap-chunk"]

    def answered(self, count: int) -> set[str]:
        for _ in range(count):
            assert self._woken.acquire(timeout=SECONDS)
        return {message.window_id for message in self.readers.messages() if isinstance(message, Answer)}


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Readers]:
    own = Readers(monkeypatch)
    yield own
    own.go_on.set()
    own.readers.close()


def test_readers_that_hang_give_up_their_places_when_their_windows_are_dropped(own: Readers) -> None:
    own.readers.order(ReadOrders((order("hung 1", 9), order("hung 2", 9)), 2))
    own.is_hung.wait(SECONDS)
    own.readers.order(ReadOrders((order("c", 9), order("d", 9)), 2))
    own.readers.order(ReadOrders((), 2, frozenset({"hung 1", "hung 2"})))

    assert own.answered(2) == {"c", "d"}


def test_there_are_no_more_readers_than_before_when_those_that_hung_go_on(own: Readers) -> None:
    before = own.threads()
    own.readers.order(ReadOrders((order("hung 1", 9), order("hung 2", 9)), 2))
    own.is_hung.wait(SECONDS)
    own.readers.order(ReadOrders((), 2, frozenset({"hung 1", "hung 2"})))
    own.go_on.set()

    # The planner deletes the files of dropped windows when it gets these answers.
    assert own.answered(2) == {"hung 1", "hung 2"}
    for thread in before:
        thread.join(SECONDS)
    assert len(own.threads()) == len(before) == 2
