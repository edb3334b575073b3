"""How the planner has chunks read beside the stream: it asks, goes on, and looks later what has come of it.

``ChunkReaders`` is its side of the socket to the driver's ``reader_jobs``. What a reader found is in the window's
manifest; what comes over the socket says only that there is one now, or that there will be none.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from typing import NamedTuple, Protocol

from incsnap.errors import IncsnapError, shorten
from incsnap.tasks.partitions import ChunkOrder


class Address(NamedTuple):
    """Where the driver's socket is; ``key``, in hexadecimal, is asked of whoever connects."""

    path: str
    key: str


class Ask(NamedTuple):
    """Read these, and from now on at most ``at_once`` at the same time; leave out those of windows that are dropped."""

    orders: tuple[ChunkOrder, ...]
    at_once: int
    dropped: frozenset[str] = frozenset()


class Answer(NamedTuple):
    """``error``: why no reader could be had, or what became of it; "" where the window has a manifest."""

    window_id: str
    error: str = ""


class Begun(NamedTuple):
    """A reader has begun with these windows. It reads one after the other."""

    window_ids: tuple[str, ...]


class PutBack(NamedTuple):
    """These windows wait again: their reader's job has ended before it came to them."""

    window_ids: tuple[str, ...]


News = Answer | Begun | PutBack
"""What readers tell the planner, in the order in which it happened."""


class ReadersGone(IncsnapError):
    """The driver that reads chunks does not answer."""

    hint = "The job is started again from its offset; if this goes on, look at the driver's log."


class ChunkReading(Protocol):
    """What the planner needs of its readers."""

    def ask(self, wish: Ask) -> None: ...
    def news(self) -> list[News]: ...
    def close(self) -> None: ...


def hang_up(connection: Connection) -> None:
    """Ends it for both sides, now. The thread that receives from it closes it: were it closed here, that thread could
    still be about to read, and would take the first bytes of whatever gets its number next."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)


class ChunkReaders:
    """The planner's side of the socket. Thread-safe. ``wake`` is called, on a thread of its own, whenever an answer has
    come."""

    def __init__(self, address: Address, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._news: list[News] = []
        self._closed = self._gone = False
        try:
            self._driver: Connection = Client(address.path, family="AF_UNIX", authkey=bytes.fromhex(address.key))
        except Exception as error:  # noqa: BLE001 - no socket, a wrong key: each has its own class
            raise ReadersGone(f"The driver's chunk readers cannot be reached: {shorten(error)}") from None
        threading.Thread(target=self._listen, name="incsnap-chunk-answers", daemon=True).start()

    def ask(self, wish: Ask) -> None:
        """Returns at once. Raises ``ReadersGone``."""
        try:
            self._driver.send(wish)
        except OSError as error:
            raise ReadersGone(f"The driver's chunk readers are gone: {shorten(error)}") from None

    def news(self) -> list[News]:
        """Return what has come since the last call. Raise ``ReadersGone`` if nothing can come any more."""
        with self._lock:
            news, self._news = self._news, []
        if self._gone and not news:
            raise ReadersGone("The driver's chunk readers are gone")
        return news

    def close(self) -> None:
        with self._lock:
            self._closed = True
            hang_up(self._driver)

    def _listen(self) -> None:
        try:
            while True:
                news: tuple[News, ...] = self._driver.recv()
                with self._lock:
                    self._news += news
                if any(isinstance(each, Answer) for each in news):
                    self._wake()
        except (EOFError, OSError):
            with self._lock:
                self._driver.close()
                self._gone = not self._closed
            self._wake()
