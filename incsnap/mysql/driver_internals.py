"""The private methods of PyMySQL that incsnap uses, in one module.

PyMySQL makes a connection (address, TLS, authentication) and sends statements, but has no public way to send another
command, to read raw packets, or to close a connection without COM_QUIT. `tests/unit/mysql/test_driver_internals.py`
shows that a release of PyMySQL still has these methods.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from typing import Any

from pymysql.connections import Connection


def unchecked_tls() -> ssl.SSLContext:
    """Return a context that takes every certificate of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class LightConnection(Connection):
    """A connection of PyMySQL that loads no certificates where it checks none.

    Without arguments for TLS PyMySQL uses TLS if the server has it, and checks nothing. But it loads all certificates
    of the system for each connection, which takes up to 60 ms of processor time.
    """

    def _create_ssl_ctx(self, sslp: Mapping[str, Any] | ssl.SSLContext) -> ssl.SSLContext:
        context: ssl.SSLContext = super()._create_ssl_ctx(sslp) if sslp else unchecked_tls()  # type: ignore[misc]
        return context


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
