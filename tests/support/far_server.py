"""A proxy that delays a server's answers, as if the server were far away."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

#: Every test is over long before this time.
_SECONDS = 120.0


@contextmanager
def far_away(host: str, port: int, seconds: float) -> Iterator[int]:
    """Open a local port that forwards to the server. Its answers arrive `seconds` later."""
    sockets: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, (host, port), seconds, sockets), daemon=True).start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            for each in (listener, *sockets):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()


def _accept(listener: socket.socket, server: tuple[str, int], seconds: float, sockets: list[socket.socket]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            behind = socket.create_connection(server, timeout=_SECONDS)
            sockets += client, behind
            answers: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
            for target, arguments in (
                (_hand_on, (client, behind)),
                (_receive, (behind, answers, seconds)),
                (_answer, (answers, client)),
            ):
                threading.Thread(target=target, args=arguments, daemon=True).start()


def _hand_on(source: socket.socket, target: socket.socket) -> None:
    source.settimeout(_SECONDS)
    with suppress(OSError):
        while content := source.recv(1 << 16):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)


def _receive(source: socket.socket, answers: SimpleQueue[tuple[float, bytes]], seconds: float) -> None:
    source.settimeout(_SECONDS)
    with suppress(OSError):
        while content := source.recv(1 << 16):
            answers.put((time.monotonic() + seconds, content))
    answers.put((0.0, b""))


def _answer(answers: SimpleQueue[tuple[float, bytes]], client: socket.socket) -> None:
    with suppress(OSError):
        while (answer := answers.get())[1]:
            time.sleep(max(0.0, answer[0] - time.monotonic()))
            client.sendall(answer[1])
        client.shutdown(socket.SHUT_WR)
