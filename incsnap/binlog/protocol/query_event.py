"""Statements in the binlog, and what their events say of the sessions that ran them.

Each function takes an event's body: what follows the 19-byte header, without the checksum.
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
#: Bytes of the status variables of a fixed length, by code (Query_event_status_vars). The others are read by hand.
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
    17: 8,  # transaction of the storage engine
    18: 2,  # default_collation_for_utf8mb4
    19: 1,  # sql_require_primary_key
    20: 1,  # default_table_encryption
}
_TEXT_VARIABLES: Final = {5: 1, 6: 1, 11: 2}
"""Codes of time zone, catalog and invoker, and of how many texts each consists. A text has its length before it."""


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as text, and the session that ran it."""

    thread: int
    sql: str
    #: False where the event does not tell the client's character set, and the bytes of `sql` are no UTF-8.
    exact: bool
    session: Session


def read_query(body: bytes, charsets: Mapping[int, str] = MappingProxyType({})) -> Query:
    """Read an event 0x02: thread, seconds, length of the database, error, length of the status variables; those;
    database; 0; SQL.

    The SQL is in the client's character set, the database's name in UTF-8. `charsets`: the character set of each
    collation of the server, by the collation's number.
    """
    return _query(body, _FIXED.size, charsets)


def read_execute_load_query(body: bytes) -> Query:
    """Read an event 0x12, which is LOAD DATA logged as a statement. Before the status variables it has, besides what
    0x02 has, the file's number, the places in the SQL where the file's name begins and ends (4 bytes each), and a byte
    about duplicates."""
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
    sql_mode, timestamps = variables.get(1), variables.get(16)
    session = Session(
        database,
        int.from_bytes(sql_mode, "little") if sql_mode else None,
        client,
        connection,
        server,
        bool(timestamps[0]) if timestamps else None,
    )
    if client:
        return Query(thread, statement_text(raw, client), True, session)
    try:
        return Query(thread, raw.decode("utf-8"), True, session)
    except UnicodeDecodeError:
        return Query(thread, raw.decode("latin-1"), False, session)


def _status_variables(status: bytes) -> dict[int, bytes]:
    """Return the status variables by their codes, up to the first one of an unknown code."""
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
        elif code == 12:  # databases that the statement changed: their number (254: too many to be named), their names
            end = at + 1
            for _ in range(status[at] if status[at] != 254 else 0):
                end = status.index(0, end) + 1
        else:
            break
        variables[code], at = status[at:end], end
    return variables
