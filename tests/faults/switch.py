"""An address in front of two MySQL servers, like the virtual IP of a failover. Clients know only this address."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

from lab.addresses import MySqlAddress


class Switch:
    """A proxy that listens on `address` and forwards connections to the current target."""

    def __init__(self, target: MySqlAddress) -> None:
        self._target: MySqlAddress | None = target
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = MySqlAddress("127.0.0.1", self._listener.getsockname()[1], target.user, target.password)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="switch", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def to(self, target: MySqlAddress | None) -> None:
        """Forward new connections to `target`, and cut the present ones. With None new connections are closed."""
        with self._lock:
            self._target = target
        self.cut()

    def cut(self) -> None:
        """Cut every connection, also in the middle of data."""
        with self._lock:
            gone, self._open = self._open, set()
        for each in gone:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                target = self._target
            if target is None:
                client.close()
                continue
            try:
                server = socket.create_connection((target.host, target.port), 5)
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._pair, args=(client, server), name="switch", daemon=True).start()

    def _pair(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            with self._lock:
                self._open |= {client, server}
            answers = threading.Thread(target=_lead, args=(server, client), daemon=True)
            answers.start()
            _lead(client, server)
            answers.join()
            with self._lock:
                self._open -= {client, server}


def _lead(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        source.settimeout(None)
        while block := source.recv(1 << 18):
            sink.sendall(block)
    # The other side gets the end at once.
    for each in source, sink:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
