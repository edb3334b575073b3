"""The differences between MySQL 8.0, 8.4 and 9.x that matter to incsnap, in one place.

    since    change                                                how incsnap handles it
    8.0.1    binlog_row_metadata, original_commit_timestamp        required; preflight asks for binlog_row_metadata=FULL
    8.0.3    partial JSON updates (PARTIAL_UPDATE_ROWS_EVENT)      `binlog.partial_updates` reads them
    8.0.20   compressed transactions (TRANSACTION_PAYLOAD_EVENT)   `binlog` unpacks them
    8.0.26   heartbeats with 64-bit positions; variables renamed   both names are set; an unknown one has no effect
    8.0.28   utf8 is printed as utf8mb3, its collations by 8.0.30  `tables.printed_charset`
    8.2.0    SHOW BINARY LOG STATUS                                `status_statement`
    8.3.0    tagged GTIDs (GTID_TAGGED_LOG_EVENT)                  `binlog` reads them
    8.4.0    SHOW MASTER STATUS removed                            `status_statement`
    9.0.0    VECTOR, with its own collation in table maps          `binlog.wire_types`

Tests run on a real server of version 9.7; 8.0 and 8.4 are untried. For them this table follows MySQL's manual, and
tests use hand-made events. MariaDB has different GTIDs and events and is refused.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

Version = tuple[int, int, int]
#: The oldest version whose table maps have signedness and character sets, which incsnap needs.
OLDEST: Version = (8, 0, 1)


def version(connection: Connection[Any]) -> Version:
    """Return the server's version, for example (8, 4, 3) for `8.4.3-35-Percona`."""
    text = str(connection.get_server_info())  # type: ignore[no-untyped-call]
    numbers = text.split("-")[0].split(".")
    return tuple(int(number) for number in (*numbers, "0", "0")[:3])  # type: ignore[return-value]


def status_statement(server: Version) -> str:
    """Return the statement that shows the end of the binlog. It was renamed in 8.2, and 8.4 removed the old name."""
    return "SHOW BINARY LOG STATUS" if server >= (8, 2, 0) else "SHOW MASTER STATUS"


def says_replica(server: Version) -> bool:
    """Return True if statements and columns say "replica", and not "slave" as before 8.0.22."""
    return server >= (8, 0, 22)


def replica_status_statement(server: Version) -> str:
    """Return the statement that shows from which server this server replicates."""
    return "SHOW REPLICA STATUS" if says_replica(server) else "SHOW SLAVE STATUS"
