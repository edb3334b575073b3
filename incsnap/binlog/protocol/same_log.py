"""Is the server's binlog still the one in which a position was found?

A failover brings another ``server_uuid``. The same server begins its binlog anew as well: restarted with another
``log_bin``, after RESET BINARY LOGS AND GTIDS, or when an older copy of its data was put back. Then a position says
nothing any more, and GTIDs may have been given to other transactions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pymysql

from incsnap.binlog.protocol.control_events import FORMAT_DESCRIPTION, time_of
from incsnap.errors import OffsetError, shorten
from incsnap.events import BinlogPosition, base_name, file_number, server_of
from incsnap.gtid import GtidSet

#: Of a dump (ER_SOURCE_FATAL_ERROR_READING_BINLOG).
_NO_SUCH_FILE = 1236
_BINLOG_DUMP = 0x12
#: Of a dump: it ends where the file ends.
_NO_WAIT = 1
#: SHOW BINLOG EVENTS: no event begins there.
_NO_EVENT = 1220
_AGAIN = (
    "The server was reset, or an older copy of its data was put back. Go back to the server with these transactions; or"
    " start with a new checkpoint.location and signal execute-snapshot for the tables."
)


def why_begun_anew(connection: Any, at: BinlogPosition) -> str:
    """What shows that ``at`` is of another binlog than the server writes now; "" where nothing does.

    That a log which was reset has the same file again, longer, with an event at that very byte, ``why_another_file``
    sees.
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
                return f"no file of it is called {base_name(at.file)}"
            newest = max(numbers)
            return (
                "" if file_number(at.file) < newest else f"{at.file} was read, and its newest file has number {newest}"
            )
        if size < at.pos:
            return f"{at.file} was read up to {at.pos}, and has {size} bytes"
        try:
            cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s LIMIT 1", (at.file, max(at.pos, 4)))
            cursor.fetchall()
        except pymysql.err.MySQLError as refused:
            if refused.args[0] != _NO_EVENT:
                raise
            return f"no event begins at {at.file}:{at.pos}, where one ended"
    return ""


def why_another_file(connect: Callable[[], Any], server_id: int, at: BinlogPosition, begun: int) -> str:
    """What shows that the file of ``at`` is not the one that was begun at ``begun``; "" where it is, or is gone.

    The first event of a file has the time at which it was begun, and only a dump shows that: one of the file's first
    events, by a connection of its own, which ends with it. ``server_id``: nobody else reads with it meanwhile.
    """
    connection = connect()
    try:
        with connection.cursor() as cursor:
            for name in ("source", "master"):  # servers before 8.0.26 read the second one
                cursor.execute(f"SET @{name}_binlog_checksum = @@GLOBAL.binlog_checksum")
            cursor.execute("SELECT @@GLOBAL.server_uuid")
            if cursor.fetchone() != (server_of(at.server_uuid),):
                return ""  # the address leads to another server by now, and the stream will be cut off too
        connection._execute_command(_BINLOG_DUMP, struct.pack("<IHI", 4, _NO_WAIT, server_id) + at.file.encode())
        while True:
            event = connection._read_packet().get_all_data()[1:]
            if event[4] == FORMAT_DESCRIPTION:
                begins = time_of(event)
                break
    except pymysql.err.MySQLError as refused:
        if refused.args[0] == _NO_SUCH_FILE and "could not find" in str(refused.args[1]).lower():
            return ""  # purged: the stream goes on in later ones, or the server says what it lacks
        raise
    finally:
        connection._force_close()
    return (
        "" if begins == begun else f"{at.file} was begun at {_utc(begun)} when it was read, and now at {_utc(begins)}"
    )


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ").removesuffix("+00:00") + " UTC"


def refuse_reused(connection: Any, at: BinlogPosition, delivered: GtidSet) -> None:
    """Raises ``OffsetError`` where the new binlog holds own transactions of the server under names that were delivered:
    they are others, and would be left out.

    Those of another source are the same ones, sent to this server once more. Another ``log_bin`` loses no GTID.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
        executed, purged = (GtidSet.parse(str(text)) for text in cursor.fetchone())
        cursor.execute("SHOW BINARY LOGS")
        if all(base_name(str(row[0])) != base_name(at.file) for row in cursor.fetchall()):
            return
    server = server_of(at.server_uuid)
    reused = delivered - (delivered - (executed - purged))
    own = GtidSet({source: spans for source, spans in reused if source[0] == server})
    if own:
        raise OffsetError(
            f"server {server} has begun its binlog anew, with other transactions under delivered GTIDs: {shorten(own)}",
            _AGAIN,
        )
