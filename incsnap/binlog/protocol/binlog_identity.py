"""The check that the server's binlog is still the one to which a position belongs.

A failover brings another `server_uuid`. The same server begins its binlog anew after a restart with another `log_bin`,
by RESET BINARY LOGS AND GTIDS, or if an older copy of its data is restored. Then the position means nothing any more,
and its GTIDs may have been given to other transactions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pymysql

from incsnap.binlog.protocol.control_events import FORMAT_DESCRIPTION, time_of
from incsnap.errors import OffsetError, shorten
from incsnap.events import BinlogPosition, base_name, file_number, server_of
from incsnap.gtid import GtidSet
from incsnap.mysql.driver_internals import drop, read_packet, send_command

#: Error of a dump (ER_SOURCE_FATAL_ERROR_READING_BINLOG).
_NO_SUCH_FILE = 1236
_BINLOG_DUMP = 0x12
#: Flag of a dump: it ends at the end of the file.
_NO_WAIT = 1
#: Error of SHOW BINLOG EVENTS: no event begins at that position.
_NO_EVENT = 1220
_AGAIN = (
    "The server was reset, or an older copy of its data was restored. Go back to the server with these transactions, or"
    " start with a new checkpoint.location and signal execute-snapshot for the tables."
)


def why_begun_anew(connection: Any, at: BinlogPosition) -> str:
    """Return how we know that `at` belongs to another binlog than the server's present one; "" if nothing shows it.

    One case is left to `why_another_file`: after a reset the server has a file with this name again, which is longer
    and has an event at this position.
    """
    if not at.file:
        return ""
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        sizes = {str(row[0]): int(row[1]) for row in cursor.fetchall()}
        size = sizes.get(at.file)
        if size is None:
            numbers = [file_number(file) for file in sizes if base_name(file) == base_name(at.file)]
            if not numbers:
                return f"it has no file {base_name(at.file)}.*"
            newest = max(numbers)
            return (
                "" if file_number(at.file) < newest else f"{at.file} was read, but its newest file has number {newest}"
            )
        if size < at.pos:
            return f"{at.file} was read up to {at.pos}, but has {size} bytes"
        try:
            cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s LIMIT 1", (at.file, max(at.pos, 4)))
            cursor.fetchall()
        except pymysql.err.MySQLError as refused:
            if refused.args[0] != _NO_EVENT:
                raise
            return f"no event begins at {at.file}:{at.pos}, where the last event ended"
    return ""


def why_another_file(connect: Callable[[], Any], server_id: int, at: BinlogPosition, begun: int) -> str:
    """Return how we know that the file of `at` is not the one that was begun at `begun`; "" if nothing shows it.

    "" is also the answer if the file is gone, or if the address now leads to another server. Meanwhile no other client
    uses `server_id`.
    """
    begins = _begins(connect, server_id, at.server_uuid, at.file)
    if begins is None or begins == begun:
        return ""
    return f"{at.file} was begun at {_utc(begun)} when it was read, and now at {_utc(begins)}"


def _begins(connect: Callable[[], Any], server_id: int, log: str, file: str) -> int | None:
    """Return the time at which a file of the binlog `log` was begun, in seconds since 1970.

    Return None if the file is gone, or if the address leads to another server. The first event of a file has this time.
    Only a dump shows it, so a connection of its own dumps the first events of the file.
    """
    connection = connect()
    try:
        with connection.cursor() as cursor:
            for name in ("source", "master"):  # servers before 8.0.26 read the second name
                cursor.execute(f"SET @{name}_binlog_checksum = @@GLOBAL.binlog_checksum")
            cursor.execute("SELECT @@GLOBAL.server_uuid")
            if cursor.fetchone() != (server_of(log),):
                return None  # the stream will break too
        send_command(connection, _BINLOG_DUMP, struct.pack("<IHI", 4, _NO_WAIT, server_id) + file.encode())
        while True:
            event = read_packet(connection)[1:]
            if event[4] == FORMAT_DESCRIPTION:
                return time_of(event)
    except pymysql.err.MySQLError as refused:
        if refused.args[0] == _NO_SUCH_FILE and "could not find" in str(refused.args[1]).lower():
            return None  # purged: the stream continues in later files, or the server reports what it lacks
        raise
    finally:
        drop(connection)


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ").removesuffix("+00:00") + " UTC"


def refuse_reused(
    connection: Any, connect: Callable[[], Any], server_id: int, at: BinlogPosition, begun: int, delivered: GtidSet
) -> None:
    """Raise OffsetError if the new binlog has other transactions of this server under delivered GTIDs.

    These transactions would be left out. Transactions of another source are the same ones, sent to this server again.
    `connect`, `server_id` and `begun`: as in `why_another_file`.

    A change of `log_bin` alone gives no GTID again. A server that was killed and then started with another `log_bin`
    loses its last transactions, for it does not find them in its new binlog, and gives their GTIDs again.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
        executed, purged = (GtidSet.parse(str(text)) for text in cursor.fetchone())
        cursor.execute("SHOW BINARY LOGS")
        files = [str(row[0]) for row in cursor.fetchall()]
    logged = executed - purged
    if all(base_name(file) != base_name(at.file) for file in files):
        # A server that goes back to an earlier `log_bin` still has the files of that time.
        new = _begun_behind(connect, server_id, at, begun, files) if begun else ""
        logged = logged - _previous_gtids(connection, new) if new else GtidSet()
    server = server_of(at.server_uuid)
    reused = delivered - (delivered - logged)
    own = GtidSet({source: spans for source, spans in reused if source[0] == server})
    if own:
        raise OffsetError(
            f"server {server} has begun its binlog anew, with other transactions under delivered GTIDs: {shorten(own)}",
            _AGAIN,
        )


def _begun_behind(
    connect: Callable[[], Any], server_id: int, at: BinlogPosition, begun: int, files: Sequence[str]
) -> str:
    """Return the first of `files` that was begun behind the time `begun`; "" if there is none."""
    first = ""
    for file in reversed(files):
        begins = _begins(connect, server_id, at.server_uuid, file)
        if begins is None or begins <= begun:
            break
        first = file
    return first


def _previous_gtids(connection: Any, file: str) -> GtidSet:
    """Return the transactions of the files before `file`, as the file itself names them."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINLOG EVENTS IN %s LIMIT 2", (file,))
        return GtidSet.parse(str(cursor.fetchall()[1][5]))
