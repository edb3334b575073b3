"""A proxy in front of a broker that can delay a request, so that the broker gets the request twice.

The proxy closes the client's connection at that moment. So librdkafka sends the request again on another connection.
The broker gets the first copy when the test says so, as from a slow network.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue

from tests.support.waiting import PATIENCE_SECONDS, wait_until

#: Numbers of requests in Kafka's protocol.
PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = 0, 24, 25, 26, 28

#: Every test is over long before this time.
_SECONDS = 120.0


class LateBroker:
    """A proxy of the broker at `broker` ("host:port").

    Clients connect to `address`, which replaces the broker's in answers.
    """

    def __init__(self, broker: str) -> None:
        host, port = broker.rsplit(":", 1)
        self._broker = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        own_port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{own_port}"
        #: The broker's address in answers, and the address that replaces it. Both have the same length.
        self._theirs = host.encode() + struct.pack(">i", int(port))
        self._ours = b"127.0.0.1" + struct.pack(">i", own_port)
        if len(self._theirs) != len(self._ours):
            raise ValueError(f"The host of {broker} must be as long as 127.0.0.1: answers are rewritten in place")
        self._wanted: int | None = None
        self._again = False
        self._held: list[tuple[socket.socket, bytes]] = []
        #: Answers for which no client waits.
        self._unclaimed: SimpleQueue[bytes] = SimpleQueue()
        self._sockets: list[socket.socket] = [self._listener]

    def close(self) -> None:
        """Close all connections."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def start(self) -> None:
        """Accept clients from now on."""
        threading.Thread(target=self._accept, daemon=True).start()

    def hold_next(self, request: int, *, again: bool = False) -> None:
        """Hold the next request with this API number, and close its client's connection.

        `again`: hold every later one too.
        """
        self._again, self._wanted = again, request

    def let_pass(self) -> None:
        """Let all further requests pass."""
        self._wanted = None

    def wait_until_held(self) -> None:
        """Wait until a request is held."""
        wait_until(lambda: bool(self._held))

    def deliver(self) -> None:
        """Send the first held request to the broker, and wait for the answer. No client gets this answer."""
        self.wait_until_held()
        upstream, frame = self._held.pop(0)
        upstream.sendall(frame)
        self._unclaimed.get(timeout=PATIENCE_SECONDS)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = socket.create_connection(self._broker, timeout=_SECONDS)
                self._sockets += [client, upstream]
                threading.Thread(target=self._requests, args=(client, upstream), daemon=True).start()
                threading.Thread(target=self._answers, args=(client, upstream), daemon=True).start()

    def _requests(self, client: socket.socket, upstream: socket.socket) -> None:
        with suppress(OSError):
            while frame := _frame(client):
                if struct.unpack_from(">h", frame, 4)[0] == self._wanted:
                    self._wanted = self._wanted if self._again else None
                    self._held.append((upstream, frame))
                    client.shutdown(socket.SHUT_RDWR)
                    return
                upstream.sendall(frame)
        with suppress(OSError):
            upstream.shutdown(socket.SHUT_RDWR)

    def _answers(self, client: socket.socket, upstream: socket.socket) -> None:
        with suppress(OSError):
            while frame := _frame(upstream):
                try:
                    client.sendall(frame.replace(self._theirs, self._ours))
                except OSError:
                    self._unclaimed.put(frame)


def _frame(connection: socket.socket) -> bytes:
    """Return one message with its length in front, or b"" at the end of the connection."""
    length = _exactly(connection, 4)
    return length + _exactly(connection, struct.unpack(">i", length)[0]) if length else b""


def _exactly(connection: socket.socket, count: int) -> bytes:
    connection.settimeout(_SECONDS)
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


@contextmanager
def late_broker(broker: str) -> Iterator[LateBroker]:
    """Run a proxy of the broker until the block ends."""
    with closing(LateBroker(broker)) as proxy:
        proxy.start()
        yield proxy
