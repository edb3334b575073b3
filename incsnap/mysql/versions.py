"""What MySQL 8.0, 8.4 and 9.x do differently, as far as it matters here; the one place for it.

since    what                                                       how it is met
8.0.1    binlog_row_metadata, original_commit_timestamp             needed; preflight asks for the former to be FULL
8.0.3    partial JSON updates (PARTIAL_UPDATE_ROWS_EVENT)           read by ``binlog.partial_updates`` where they come
8.0.20   compressed transactions (TRANSACTION_PAYLOAD_EVENT)        unpacked by ``binlog`` where they come
8.0.26   heartbeats with 64-bit positions; new names of variables   asked for with both names, older servers ignore it
8.2.0    SHOW BINARY LOG STATUS                                     ``status_statement``
8.3.0    tagged GTIDs (GTID_TAGGED_LOG_EVENT)                       read where they come
8.4.0    SHOW MASTER STATUS is gone                                 ``status_statement``
9.0.0    VECTOR, with a collation of its own in table maps          ``binlog.wire_types``

Tried on real servers: 9.7. For the others this table is MySQL's manual read, and events made by hand in the tests.
MariaDB has other GTIDs and other events; it is refused.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

Version = tuple[int, int, int]
#: Signs and character sets in table maps are what everything stands on.
OLDEST: Version = (8, 0, 1)


def version(connection: Connection[Any]) -> Version:
    """Gives (8, 4, 3) for ``8.4.3-35-Percona``."""
    text = str(connection.get_server_info())  # type: ignore[no-untyped-call]
    numbers = text.split("-")[0].split(".")
    return tuple(int(number) for number in (*numbers, "0", "0")[:3])  # type: ignore[return-value]


def status_statement(server: Version) -> str:
    """What tells the end of the binlog: renamed with 8.2, the old name gone with 8.4."""
    return "SHOW BINARY LOG STATUS" if server >= (8, 2, 0) else "SHOW MASTER STATUS"


def says_replica(server: Version) -> bool:
    """Are statements and columns named after replicas, and not after slaves as before 8.0.22?"""
    return server >= (8, 0, 22)


def replica_status_statement(server: Version) -> str:
    """What tells where the server replicates from."""
    return "SHOW REPLICA STATUS" if says_replica(server) else "SHOW SLAVE STATUS"
