"""The reader of statements in the binlog, and of what their events hold about the sessions that ran them.

Each function takes an event's body: the bytes after the 19-byte header, without the checksum.
https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Query__event.html
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from incsnap.events import Session
from incsnap.types.charsets import statement_text

_FIXED: Final = struct.Struct("<IIBHH")
#: Code of the storage engine's transaction that carried the statement out (Q_DDL_LOGGED_WITH_XID).
_XID: Final = 17
#: Code of the session's time zone.
_TIME_ZONE: Final = 5
#: The bit of the flags (code 0) that says that foreign keys are not checked (OPTION_NO_FOREIGN_KEY_CHECKS).
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
#: Code -> bytes of each status variable of a fixed length (Query_event_status_vars). Others have code of their own
#: below.
_STATUS_SIZES: Final = {
    0: 4,  # flags
    1: 8,  # sql_mode
    3: 4,  # auto_increment
    4: 6,  # collations of client, connection and server
    7: 2,  # lc_time_names
    8: 2,  # collation_database
    9: 8,  # table map of a multi-table update
    10: 4,  # length of the event on the source
    13: 3,  # microseconds
    16: 1,  # explicit_defaults_for_timestamp
    _XID: 8,
    18: 2,  # default_collation_for_utf8mb4
    19: 1,  # sql_require_primary_key
    20: 1,  # default_table_encryption
}
#: Code of a status variable that consists of texts -> how many texts: the time zone 1, catalog 1, invoker 2. Each text
#: begins with its length in one byte.
_TEXT_VARIABLES: Final = {_TIME_ZONE: 1, 6: 1, 11: 2}


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as text, and the session that ran it."""

    thread: int  #: id of the connection
    sql: str  #: text of the statement
    #: False if the event does not name the client's character set and the bytes of `sql` are not UTF-8.
    exact: bool
    session: Session  #: database, SQL mode and character sets of the session
    has_xid: bool  #: whether the event names a transaction of the storage engine, see `SchemaChange.has_xid`


def read_query(body: bytes, charsets: Mapping[int, str] = MappingProxyType({})) -> Query:
    """Read an event 0x02 (QUERY).

    The body has: thread, seconds, length of the database, error, length of the status variables, the status variables,
    the database, 0 and the SQL. The SQL is in the client's character set, the database's name in UTF-8. `charsets`:
    collation number -> character set, of the server.
    """
    return _query(body, _FIXED.size, charsets)


def read_execute_load_query(body: bytes) -> Query:
    """Read an event 0x12 (EXECUTE_LOAD_QUERY): LOAD DATA that was logged as a statement.

    Before the status variables the body has 13 more bytes than that of 0x02. They are the file's number, the places in
    the SQL where the file's name begins and ends (4 bytes each), and a byte about duplicates.
    """
    return _query(body, _FIXED.size + 13, {})


def _query(body: bytes, at: int, charsets: Mapping[int, str]) -> Query:
    thread, _, database_length, _, status_length = _FIXED.unpack_from(body)
    variables = _status_variables(body[at : at + status_length])
    at += status_length
    database = body[at : at + database_length].decode("utf-8", "replace")
    raw = body[at + database_length + 1 :]
    collations = variables.get(4, bytes(6))
    client, connection, server = (
        charsets.get(int.from_bytes(collations[place : place + 2], "little"), "") for place in (0, 2, 4)
    )
    flags, sql_mode, timestamps = variables.get(0), variables.get(1), variables.get(16)
    session = Session(
        database,
        int.from_bytes(sql_mode, "little") if sql_mode else None,
        client,
        connection,
        server,
        bool(timestamps[0]) if timestamps else None,
        variables.get(_TIME_ZONE, b"\0")[1:].decode("utf-8", "replace"),
        not int.from_bytes(flags, "little") & _NO_FOREIGN_KEY_CHECKS if flags else None,
    )
    has_xid = _XID in variables
    if client:
        return Query(thread, statement_text(raw, client), True, session, has_xid)
    try:
        return Query(thread, raw.decode("utf-8"), True, session, has_xid)
    except UnicodeDecodeError:
        return Query(thread, raw.decode("latin-1"), False, session, has_xid)


def _status_variables(status: bytes) -> dict[int, bytes]:
    """Return code -> bytes of the status variables, up to the first unknown code."""
    variables: dict[int, bytes] = {}
    at = 0
    while at < len(status):
        code, at = status[at], at + 1
        if code in _STATUS_SIZES:
            end = at + _STATUS_SIZES[code]
        elif code in _TEXT_VARIABLES:
            end = at
            for _ in range(_TEXT_VARIABLES[code]):
                end += 1 + status[end]
        elif code == 12:  # number of databases that the statement changed (254: too many), and their names
            end = at + 1
            for _ in range(status[at] if status[at] != 254 else 0):
                end = status.index(0, end) + 1
        else:
            break
        variables[code], at = status[at:end], end
    return variables
