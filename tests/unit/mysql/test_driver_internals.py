"""Tests of the private methods of PyMySQL: this release still has them, and they do what incsnap needs."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND, ER

from incsnap.mysql.driver_internals import (
    LightConnection,
    drop,
    read_packet,
    read_time_out,
    send_command,
    socket_of,
    stream_of,
)

_GREETING = (
    b"\x0a8.4.0\0" + bytes(4) + b"12345678\0" + b"\x00\x82" + b"\xff\x02\x00" + b"\x08\x00" + b"\x15" + bytes(10)
    + b"123456789012\0mysql_native_password\0"
)  # fmt: skip
_OK = b"\0\0\0\x02\0\0\0"


@pytest.fixture
def ends() -> Iterator[tuple[Any, socket.socket]]:
    """Yield a connection after its login, and the server's end of it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener, ThreadPoolExecutor() as pool:
        listener.settimeout(60)
        accepted = pool.submit(_log_in, listener)
        connection: Any = LightConnection(
            port=listener.getsockname()[1], user="cdc", connect_timeout=60, read_timeout=60, write_timeout=60
        )
        with closing(accepted.result(60)) as peer:
            yield connection, peer
            drop(connection)


def _log_in(listener: socket.socket) -> socket.socket:
    """Accept a client, greet it, and answer OK to its login and the two statements that PyMySQL sends then."""
    peer, _ = listener.accept()
    peer.settimeout(60)
    peer.sendall(_packet(0, _GREETING))
    for number in (2, 1, 1):
        peer.recv(1_000)
        peer.sendall(_packet(number, _OK))
    return peer


def _packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def test_a_command_is_sent_as_one_packet(ends: tuple[Any, socket.socket]) -> None:
    connection, peer = ends
    send_command(connection, COMMAND.COM_BINLOG_DUMP, b"argument")
    peer.settimeout(60)
    assert peer.recv(100) == _packet(0, b"\x12argument")


def test_a_packet_is_read_without_its_header(ends: tuple[Any, socket.socket]) -> None:
    connection, peer = ends
    send_command(connection, COMMAND.COM_QUERY, "SELECT 1")
    peer.sendall(_packet(1, b"abc"))
    assert read_packet(connection) == b"abc"


def test_an_error_packet_raises_the_drivers_error(ends: tuple[Any, socket.socket]) -> None:
    connection, peer = ends
    send_command(connection, COMMAND.COM_REGISTER_SLAVE, b"")
    message = b"\xff" + ER.ACCESS_DENIED_ERROR.to_bytes(2, "little") + b"#28000no"
    peer.sendall(_packet(1, message))
    with pytest.raises(pymysql.err.OperationalError, match="no"):
        read_packet(connection)


def test_the_stream_has_what_the_driver_has_read_ahead(ends: tuple[Any, socket.socket]) -> None:
    connection, peer = ends
    send_command(connection, COMMAND.COM_QUERY, "SELECT 1")
    peer.sendall(_packet(1, b"a") + b"row")
    assert read_packet(connection) == b"a"
    assert stream_of(connection).read(3) == b"row"


def test_a_dropped_connection_sends_no_quit(ends: tuple[Any, socket.socket]) -> None:
    connection, peer = ends
    used = socket_of(connection)
    drop(connection)
    peer.settimeout(60)
    assert peer.recv(100) == b""
    assert used.fileno() == -1
    assert not connection.open


def test_a_read_time_out_ends_with_its_block(ends: tuple[Any, socket.socket]) -> None:
    connection, _ = ends
    before = connection._read_timeout
    with read_time_out(connection, 0.05), pytest.raises(pymysql.err.OperationalError, match="timed out"):
        read_packet(connection)
    assert connection._read_timeout == before


def test_no_certificates_are_loaded_that_nobody_checks(ends: tuple[Any, socket.socket]) -> None:
    connection, _ = ends
    assert (connection.ctx.verify_mode, connection.ctx.check_hostname) == (ssl.CERT_NONE, False)
    assert connection.ctx.get_ca_certs() == []
    # TLS is used if the server has it, as with PyMySQL's own class.
    assert (connection.ssl, connection._ssl_required) == (True, False)
    checked = ssl.create_default_context()
    other: Any = LightConnection(defer_connect=True, ssl=checked, connect_timeout=1, read_timeout=1, write_timeout=1)
    assert other.ctx is checked
