"""The private methods of PyMySQL that incsnap uses, in one module.

PyMySQL makes a connection (address, TLS, authentication) and sends statements, but has no public way to send another
command, to read raw packets, or to close a connection without COM_QUIT. `tests/unit/mysql/test_driver_internals.py`
shows that a release of PyMySQL still has these methods.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any


def send_command(connection: Any, command: int, argument: bytes | str) -> None:
    """Send a command of MySQL's protocol, such as COM_QUERY. Raise PyMySQL's errors if the connection is lost."""
    connection._execute_command(command, argument)


def read_packet(connection: Any) -> bytes:
    """Return the payload of the next packet.

    Raise PyMySQL's errors if the packet has an error of the server, or if the connection is lost.
    """
    payload: bytes = connection._read_packet().get_all_data()
    return payload


def socket_of(connection: Any) -> socket.socket:
    """Return the socket. What PyMySQL has already read of it is in `stream_of`."""
    used: socket.socket = connection._sock
    return used


def stream_of(connection: Any) -> BufferedReader:
    """Return the buffered stream from which PyMySQL reads the socket."""
    stream: BufferedReader = connection._rfile
    return stream


def drop(connection: Any) -> None:
    """Close the connection without COM_QUIT, which must not be sent while the server streams."""
    connection._force_close()


@contextmanager
def read_time_out(connection: Any, seconds: float) -> Iterator[None]:
    """Limit the time of one read of the socket during the block."""
    before, connection._read_timeout = connection._read_timeout, seconds
    try:
        yield
    finally:
        connection._read_timeout = before
