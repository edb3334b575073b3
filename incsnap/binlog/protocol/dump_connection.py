"""The replication connection: what a replica sends before the first event, and the bytes that follow.

PyMySQL makes the connection (address, TLS, authentication, session variables). After COM_BINLOG_DUMP_GTID this module
reads the socket itself, in blocks of 1 MiB, for more than a million rows/s. PyMySQL and mysql-replication make several
Python objects for each packet, and reach ten thousand rows/s.

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
from uuid import uuid4

import pymysql
from pymysql.constants import ER

from incsnap.binlog.protocol.binlog_identity import refuse_reused, why_another_file, why_begun_anew
from incsnap.errors import BinlogError, ConfigError, GtidsPurged, OffsetError, PreflightFailed, shorten
from incsnap.events import BinlogPosition, begun_anew, server_of
from incsnap.gtid import GtidSet
from incsnap.mysql.driver_internals import drop, read_packet, send_command, socket_of
from incsnap.mysql.error_codes import NO_PRIVILEGE, PURGED_GTIDS, STREAM_ENDED
from incsnap.mysql.session import error_of

#: Most bytes to read from the socket at once.
BLOCK = 1 << 20

_REGISTER_SLAVE = 0x15
_BINLOG_DUMP_GTID = 0x1E

#: This flag asks for heartbeats with a 64-bit position (8.0.26 and later; earlier servers ignore it). The next bit,
#: which the protocol's page calls BINLOG_THROUGH_GTID, must stay clear: since 8.3 it means "leave tagged transactions
#: out".
_HEARTBEAT_V2 = 1 << 1

#: Back-pressure means not reading. The server must not take that for a dead replica: its defaults are 30 and 60
#: seconds.
_PATIENCE_SECONDS = 30 * 24 * 3600
#: Longest silence of the server. It sends heartbeats, but not while it searches its files for the first transaction.
_SILENCE_SECONDS = 120.0

#: Seconds in which a promoted replica applies the events it had received. One that needs longer had too much lag.
_CATCH_UP_SECONDS = 5.0
_CATCH_UP_PAUSE_SECONDS = 0.1


class ConnectionLost(Exception):
    """An error: the stream broke off. The events read so far are valid."""


class LogVanished(ConnectionLost):
    """An error: the file that was read is no longer in the server's binlog."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """The binlog that a stream comes from."""

    server_uuid: str  #: name of the binlog (see `events.begun_anew`)
    checksum: bool  #: its events have checksums
    purged: GtidSet = field(default_factory=GtidSet)  #: executed transactions that are in none of its files
    anew: str = ""  #: how we know that the same server has begun its binlog anew; "": it has not


class BinlogStream:
    """The bytes of one dump. `read` blocks. Another thread may call `abort` to wake it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._socket = socket_of(connection)
        self._block = memoryview(bytearray(BLOCK))

    def read(self) -> bytes:
        """Return the next bytes, at least one and at most 1 MiB.

        Raise ConnectionLost if the server closed the connection or was silent for two minutes. The call waits for the
        first bytes and then takes everything that is there: TLS gives 16 kB at a time, and blocks of that size cost
        three times as much per transaction.
        """
        waits = _SILENCE_SECONDS
        have = 0
        try:
            while have < BLOCK:
                self._socket.settimeout(waits)
                got = self._socket.recv_into(self._block[have:])
                if not got:
                    break  # the bytes before the end are valid, and the next call reports the end
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
        """Wake a `read` in another thread, which then raises ConnectionLost."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        # Not Connection.close(): it would send COM_QUIT into a connection that is streaming.
        drop(self._connection)


def connect_beside(connect: Callable[[], Any]) -> Any:
    """Return a connection that may stream beside the tail with the tail's server id.

    The connection has a replica uuid. Without one, the server would end the older connection of the same server id.
    """
    connection = connect()
    with connection.cursor() as cursor:
        uuid = str(uuid4())
        # Both names: servers before 8.0.26 read the second one.
        cursor.execute("SET @replica_uuid = %s, @slave_uuid = %s", (uuid, uuid))
    return connection


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
    """Ask the server for every transaction that is not in `delivered`, and return the stream and its source.

    `before` is the position up to which the binlog was read; without `server_uuid` the binlog is unknown. `begun` is
    when its file was begun, in seconds since 1970 (0: unknown). If the caller already knows that the same server has
    begun its binlog anew, `doubt` is the reason, and the checks for that are left out. `closed` returns True to give
    up.

    No replica uuid is set, so the server ends an older connection with the same server id. A job that was killed and
    started again gets rid of its old connection in this way, and two jobs with one id notice each other.

    Raise ConnectionLost if the server cannot be reached now. Raise an IncsnapError if a retry cannot help.
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
                refuse_reused(connection, connect, server_id, before, begun, delivered)
            source = replace(source, server_uuid=begun_anew(before.server_uuid), anew=anew)
        else:
            source = replace(source, server_uuid=before.server_uuid)
        encoded = delivered.encode()
        # An empty file name and position 4: the server finds the file by the GTID set.
        head = struct.pack("<HIIQI", _HEARTBEAT_V2, server_id, 0, 4, len(encoded))
        send_command(connection, _BINLOG_DUMP_GTID, head + encoded)
        return BinlogStream(connection), source
    except (pymysql.err.MySQLError, OSError) as failed:
        drop(connection)
        raise translated(failed) from failed
    except BaseException:
        drop(connection)
        raise


def _introduce(connection: Any, server_id: int, heartbeat_seconds: float) -> LogSource:
    """Register as a replica, set the session's variables, and return the source of the stream."""
    period = max(1_000_000, round(heartbeat_seconds * 1e9))  # ns; the server warns below a millisecond
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.binlog_checksum, @@GLOBAL.server_uuid, @@GLOBAL.gtid_purged")
        checksum, server_uuid, purged = map(str, cursor.fetchone())
        # Both names: servers before 8.0.26 read the second one.
        for name in ("source", "master"):
            cursor.execute(f"SET @{name}_heartbeat_period = {period}")
            cursor.execute(f"SET @{name}_binlog_checksum = '{checksum}'")
        # For people and tests: performance_schema.user_variables_by_thread then shows whose dump connection this is.
        cursor.execute(f"SET @incsnap_server_id = {server_id}")
        cursor.execute(f"SET SESSION net_write_timeout = {_PATIENCE_SECONDS}, net_read_timeout = {_PATIENCE_SECONDS}")
    host, user = b"incsnap", b""
    send_command(
        connection,
        _REGISTER_SLAVE,
        struct.pack("<I", server_id)
        + bytes([len(host)]) + host
        + bytes([len(user)]) + user
        + b"\0"  # password
        + struct.pack("<HII", 0, 0, 0),  # port, rank, source id
    )  # fmt: skip
    read_packet(connection)
    return LogSource(server_uuid, checksum.upper() not in ("NONE", "OFF", "0"), GtidSet.parse(purged))


def _await_delivered(connection: Any, delivered: GtidSet, server_uuid: str, closed: Callable[[], bool]) -> None:
    """Wait until the server has executed all delivered transactions. Raise OffsetError after 5 seconds.

    This is for another server than before, or for a server with another binlog. If such a server lacks delivered
    transactions, it sends the stream nevertheless, as if they had never been. The same server is not asked: it may send
    transactions before it has executed them, and it checks its own transactions itself.

    Raise ConnectionLost if `closed` returns True.
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
                "It is not a copy of the previous server, lags far behind it, or was reset. Go back to the previous one"
                " or let this one catch up; else start with a new checkpoint.location and signal execute-snapshot for"
                " the tables.",
            )
        time.sleep(_CATCH_UP_PAUSE_SECONDS)
    raise ConnectionLost("closed")


def translated(failed: Exception) -> Exception:
    """Return the error that an error of PyMySQL or the socket means for the stream."""
    code, text = error_of(failed)
    return _no_privilege(text) if code in NO_PRIVILEGE else ConnectionLost(text)


def _no_privilege(message: str) -> PreflightFailed:
    return PreflightFailed(
        f"MySQL refuses to send the binlog: {message}", "GRANT REPLICATION SLAVE ON *.* TO the user of the job."
    )


def server_error(code: int, message: str) -> Exception:
    """Return the error that an error packet in the stream means.

    https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html
    """
    text = message.lower()
    if code in STREAM_ENDED:
        return ConnectionLost(f"{message} ({code})")
    fatal = code == ER.MASTER_FATAL_ERROR_READING_BINLOG
    if fatal and "could not find next log" in text:
        return LogVanished(f"{message} ({code})")
    if code == PURGED_GTIDS or (fatal and "purged" in text):
        return GtidsPurged(f"the server purged transactions that are not delivered yet: {message}")
    if "same server_uuid/server_id" in text:
        return ConfigError(
            f"another replica took over the binlog connection: {message}",
            "Is this job running elsewhere? Stop one of the two. Give every other job and replica its own"
            " database.server.id.",
        )
    if "more gtids than" in text:
        return OffsetError(
            f"the server lacks transactions that were delivered already: {message}",
            "The server was reset or lost data. Start with a new checkpoint.location and snapshot the tables.",
        )
    if code in NO_PRIVILEGE:
        return _no_privilege(message)
    return BinlogError(f"the server stopped sending the binlog: {message} ({code})", "See the server's error log.")
