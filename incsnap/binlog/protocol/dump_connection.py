"""One replication connection: what a replica says before the events come, and their bytes as they come.

PyMySQL does what it is good at (address, TLS, authentication, session variables); after COM_BINLOG_DUMP_GTID the
socket is read here in blocks of a megabyte, because PyMySQL and mysql-replication make several Python objects for each
packet (10 thousand rows/s against more than a million).

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pymysql
from pymysql.constants import ER

from incsnap.binlog.protocol.same_log import refuse_reused, why_another_file, why_begun_anew
from incsnap.errors import BinlogError, ConfigError, GtidsPurged, IncsnapError, OffsetError, PreflightFailed, shorten
from incsnap.events import BinlogPosition, begun_anew, server_of
from incsnap.gtid import GtidSet
from incsnap.mysql.error_codes import NO_PRIVILEGE, PURGED_GTIDS, STREAM_ENDED
from incsnap.mysql.session import error_of

BLOCK = 1 << 20
"""Bytes asked of the socket at once."""

_REGISTER_SLAVE = 0x15
_BINLOG_DUMP_GTID = 0x1E

#: Heartbeats carry a 64-bit position (8.0.26 and later; ignored before). The bit next to it, which the protocol's page
#: calls BINLOG_THROUGH_GTID, means "leave tagged transactions out" since 8.3: it must stay clear.
_HEARTBEAT_V2 = 1 << 1

#: Back-pressure is "not reading". The server must not take that for a dead replica: its defaults are 30 and 60 seconds.
_PATIENCE_SECONDS = 30 * 24 * 3600
#: The server says something every heartbeat, but not while it searches its files for the first transaction to send.
_SILENCE_SECONDS = 120.0

#: A replica that takes over applies what it had received; one that needs longer was too far behind to be promoted.
_CATCH_UP_SECONDS = 5.0
_CATCH_UP_PAUSE_SECONDS = 0.1


class ConnectionLost(Exception):
    """The stream broke off; nothing is wrong with what was read."""


class LogVanished(ConnectionLost):
    """The file that was read is in the server's binlog no more."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """Says whose binlog a stream is (``events.begun_anew``), and whether its events carry a checksum.

    ``purged``: executed, and in none of its files. ``anew``: why it is another than the one before, where the same
    server has begun it; else "".
    """

    server_uuid: str
    checksum: bool
    purged: GtidSet = field(default_factory=GtidSet)
    anew: str = ""


class BinlogStream:
    """The bytes of one dump. ``read`` blocks; ``abort`` may be called by another thread and wakes it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._socket: socket.socket = connection._sock
        self._block = memoryview(bytearray(BLOCK))

    def read(self) -> bytes:
        """At least one byte; ``ConnectionLost`` when the server hung up or was silent for two minutes.

        Waits for the first bytes, then takes what is there: TLS gives 16 KB at a time, and a block that small
        costs three times as much per transaction.
        """
        waits = _SILENCE_SECONDS
        have = 0
        try:
            while have < BLOCK:
                self._socket.settimeout(waits)
                got = self._socket.recv_into(self._block[have:])
                if not got:
                    break  # what came before the end is still good; the next read says that this is the end
                have += got
                waits = 0.0
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except (OSError, ValueError) as lost:
            if not have:
                raise ConnectionLost(f"reading the binlog failed: {lost}") from lost
        if not have:
            raise ConnectionLost("the server closed the replication connection")
        return bytes(self._block[:have])

    def abort(self) -> None:
        """Wake a ``read`` in another thread; it raises ``ConnectionLost``."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        # Not Connection.close(): it would send COM_QUIT into a connection that is streaming.
        self._connection._force_close()


def open_stream(
    connect: Callable[[], Any],
    server_id: int,
    delivered: GtidSet,
    heartbeat_seconds: float,
    before: BinlogPosition,
    closed: Callable[[], bool],
    doubt: str = "",
    begun: int = 0,
) -> tuple[BinlogStream, LogSource]:
    """Ask for every transaction not in ``delivered``, which came from a binlog that was read up to ``before`` (of no
    server: not known), in a file that was begun at ``begun`` (0: not known). ``doubt``: what has shown already that
    this binlog is no more.

    No replica uuid is set, so that the server ends an older connection of the same server id: a job that was killed and
    started again throws its own ghost out, and two jobs with one id find out about each other.
    ``ConnectionLost`` when the server cannot be reached now; an ``IncsnapError`` when trying again cannot help.
    """
    try:
        connection = connect()
    except pymysql.err.MySQLError as failed:
        raise translated(failed) from failed
    except OSError as failed:
        raise ConnectionLost(str(failed)) from failed
    try:
        source = _introduce(connection, server_id, heartbeat_seconds)
        if source.server_uuid != server_of(before.server_uuid):
            _await_delivered(connection, delivered, source.server_uuid, closed)
        elif anew := (
            doubt
            or why_begun_anew(connection, before)
            or (why_another_file(connect, server_id, before, begun) if begun else "")
        ):
            _await_delivered(connection, delivered, source.server_uuid, closed)
            if not doubt:
                refuse_reused(connection, before, delivered)
            source = replace(source, server_uuid=begun_anew(before.server_uuid), anew=anew)
        else:
            source = replace(source, server_uuid=before.server_uuid)
        _request(connection, server_id, delivered)
        return BinlogStream(connection), source
    except (pymysql.err.MySQLError, OSError) as failed:
        connection._force_close()
        raise translated(failed) from failed
    except BaseException:
        connection._force_close()
        raise


def _introduce(connection: Any, server_id: int, heartbeat_seconds: float) -> LogSource:
    period = max(1_000_000, round(heartbeat_seconds * 1e9))  # ns; below a millisecond the server warns
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.binlog_checksum, @@GLOBAL.server_uuid, @@GLOBAL.gtid_purged")
        checksum, server_uuid, purged = map(str, cursor.fetchone())
        # Both names: servers before 8.0.26 read the second one.
        for name in ("source", "master"):
            cursor.execute(f"SET @{name}_heartbeat_period = {period}")
            cursor.execute(f"SET @{name}_binlog_checksum = '{checksum}'")
        # For people and tests: performance_schema.user_variables_by_thread tells whose dump connection this is.
        cursor.execute(f"SET @incsnap_server_id = {server_id}")
        cursor.execute(f"SET SESSION net_write_timeout = {_PATIENCE_SECONDS}, net_read_timeout = {_PATIENCE_SECONDS}")
    host, user = b"incsnap", b""
    connection._execute_command(
        _REGISTER_SLAVE,
        struct.pack("<I", server_id)
        + bytes([len(host)]) + host
        + bytes([len(user)]) + user
        + b"\0"  # password
        + struct.pack("<HII", 0, 0, 0),  # port, rank, source id
    )  # fmt: skip
    connection._read_ok_packet()
    return LogSource(server_uuid, checksum.upper() not in ("NONE", "OFF", "0"), GtidSet.parse(purged))


def _await_delivered(connection: Any, delivered: GtidSet, server_uuid: str, closed: Callable[[], bool]) -> None:
    """Waits until another server than before, or one whose binlog is another, has executed all that was delivered.

    It would send the stream without that, too, and use the missing transactions' rows as if they had never been. Not
    asked of the same server: what it sends need not be executed yet, and it looks at its own transactions itself.
    """
    deadline = time.monotonic() + _CATCH_UP_SECONDS
    while not closed():
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_executed")
            missing = delivered - GtidSet.parse(str(cursor.fetchone()[0]))
        if not missing:
            return
        if time.monotonic() > deadline:
            raise OffsetError(
                f"server {server_uuid} lacks transactions that were delivered already: {shorten(missing)}",
                "It is not a copy of the server before, or far behind it, or was reset. Go back to that one or let this"
                " one catch up; else start with a new checkpoint.location and signal execute-snapshot for the tables.",
            )
        time.sleep(_CATCH_UP_PAUSE_SECONDS)
    raise ConnectionLost("closed")


def _request(connection: Any, server_id: int, delivered: GtidSet) -> None:
    encoded = delivered.encode()
    # An empty file name at position 4: the server finds the file by the GTID set.
    head = struct.pack("<HIIQI", _HEARTBEAT_V2, server_id, 0, 4, len(encoded))
    connection._execute_command(_BINLOG_DUMP_GTID, head + encoded)


def translated(failed: Exception) -> Exception:
    """What an error of PyMySQL or the socket means for the stream."""
    code, text = error_of(failed)
    if code in NO_PRIVILEGE:
        return PreflightFailed(
            f"reading the binlog is refused: {text}", "GRANT REPLICATION SLAVE ON *.* TO the user of the job."
        )
    return ConnectionLost(text)


def server_error(code: int, message: str) -> Exception:
    """What an error packet in the stream means. https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html"""
    text = message.lower()
    if code in STREAM_ENDED:
        return ConnectionLost(f"{message} ({code})")
    fatal = code == ER.MASTER_FATAL_ERROR_READING_BINLOG
    if fatal and "could not find next log" in text:
        return LogVanished(f"{message} ({code})")
    error: IncsnapError
    if code == PURGED_GTIDS or (fatal and "purged" in text):
        error = GtidsPurged(f"the server purged transactions that are not delivered yet: {message}")
    elif "same server_uuid/server_id" in text:
        error = ConfigError(
            f"another replica took over the binlog connection: {message}",
            "Is this job running elsewhere? Stop one of the two. Give every other job and replica its own"
            " database.server.id.",
        )
    elif "more gtids than" in text:
        error = OffsetError(
            f"the server lacks transactions that were delivered already: {message}",
            "The server was reset or lost data. Start with a new checkpoint.location and read the tables again.",
        )
    elif code in NO_PRIVILEGE:
        error = PreflightFailed(
            f"reading the binlog is refused: {message}", "GRANT REPLICATION SLAVE ON *.* TO the user of the job."
        )
    else:
        error = BinlogError(f"the server stopped sending the binlog: {message} ({code})", "See the server's error log.")
    return error
