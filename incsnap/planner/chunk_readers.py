"""The planner's side of reading chunks beside the stream: it orders chunks, goes on, and collects the results later.

`ChunkReaders` is the planner's end of the socket to the driver's `reader_jobs`. The result of a chunk is in the
window's manifest. A message on the socket only says that there is a manifest now, or that there will be none.
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
    """The address of the driver's socket."""

    path: str  #: path of a Unix socket
    key: str  #: secret that a client must know, in hexadecimal


class ReadOrders(NamedTuple):
    """A message to the readers: chunks to read, and how many at the same time."""

    orders: tuple[ChunkOrder, ...]  #: chunks to read
    at_once: int  #: most chunks to read at the same time from now on
    dropped: frozenset[str] = frozenset()  #: windows whose orders are to be left out


class Answer(NamedTuple):
    """A message from the readers: a chunk was read, or will not be read."""

    window_id: str
    error: str = ""  #: why there was no reader, or why it failed; "" if the window has a manifest


class Begun(NamedTuple):
    """A message: a reader has begun these windows. It reads one after the other."""

    window_ids: tuple[str, ...]


class PutBack(NamedTuple):
    """A message: these windows wait again, because their reader's job ended before it came to them."""

    window_ids: tuple[str, ...]


#: A message from the readers to the planner. Messages come in the order of what happened.
ReaderMessage = Answer | Begun | PutBack


class ReadersGone(IncsnapError):
    """An error: the driver that reads chunks does not answer."""

    hint = "The job starts again from its offset by itself. If this happens again, read the driver's log."


class ReaderPort(Protocol):
    """The planner's interface to chunk readers.

    `order` returns at once. `messages` returns what has come since its last call.
    """

    def order(self, message: ReadOrders) -> None: ...
    def messages(self) -> list[ReaderMessage]: ...
    def close(self) -> None: ...


def hang_up(connection: Connection) -> None:
    """Shut the connection down for both sides, at once. The thread that receives from it closes it.

    If it were closed here, that thread could still be about to read. It would take the first bytes of the next
    connection that gets the same file number.
    """
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)


class ChunkReaders:
    """The planner's end of the socket, safe for several threads.

    `wake` is called on a thread of its own whenever an answer has come. The constructor raises ReadersGone if the
    driver cannot be reached.
    """

    def __init__(self, address: Address, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._messages: list[ReaderMessage] = []
        self._closed = self._gone = False
        try:
            self._driver: Connection = Client(address.path, family="AF_UNIX", authkey=bytes.fromhex(address.key))
        except Exception as error:  # noqa: BLE001 - no socket, a wrong key: each has its own class
            raise ReadersGone(f"The driver's chunk readers do not answer at {address.path}: {shorten(error)}") from None
        threading.Thread(target=self._listen, name="incsnap-chunk-answers", daemon=True).start()

    def order(self, message: ReadOrders) -> None:
        """Send the orders, and return at once. Raise ReadersGone if the driver is gone."""
        try:
            self._driver.send(message)
        except OSError as error:
            raise ReadersGone(f"The driver's chunk readers have ended: {shorten(error)}") from None

    def messages(self) -> list[ReaderMessage]:
        """Return what has come since the last call. Raise ReadersGone if nothing can come any more."""
        with self._lock:
            messages, self._messages = self._messages, []
        if self._gone and not messages:
            raise ReadersGone("The driver's chunk readers have ended, or the driver has")
        return messages

    def close(self) -> None:
        """Close the connection to the driver."""
        with self._lock:
            self._closed = True
            hang_up(self._driver)

    def _listen(self) -> None:
        try:
            while True:
                messages: tuple[ReaderMessage, ...] = self._driver.recv()
                with self._lock:
                    self._messages += messages
                if any(isinstance(each, Answer) for each in messages):
                    self._wake()
        except (EOFError, OSError):
            with self._lock:
                self._driver.close()
                self._gone = not self._closed
            self._wake()
