"""How busy a server is, for the limits of a throttle. Each is one or two statements of a millisecond.

Raises ``IncsnapError`` where the server does not tell, with what to do.
"""

from __future__ import annotations

from typing import Any, Protocol

from pymysql.connections import Connection

from incsnap.config.servers import MySqlSettings
from incsnap.config.snapshot_settings import SnapshotSettings
from incsnap.errors import IncsnapError
from incsnap.mysql.error_codes import NO_PRIVILEGE
from incsnap.mysql.session import QueryRefusedError, named, query
from incsnap.mysql.versions import replica_status_statement, says_replica, version

#: Seconds for which a server may let a question wait.
PATIENCE_SECONDS = 5.0
#: Of performance_schema's timers in a millisecond.
_PICOSECONDS = 10**9
#: All of both must be ON, as they are by default.
_TIMED = (
    "SELECT (SELECT COUNT(*) FROM performance_schema.setup_instruments"
    " WHERE NAME = 'statement/sql/commit' AND ENABLED = 'YES' AND TIMED = 'YES')"
    " + (SELECT COUNT(*) FROM performance_schema.setup_consumers"
    " WHERE NAME IN ('global_instrumentation', 'thread_instrumentation', 'events_statements_current')"
    " AND ENABLED = 'YES')"
)
_ENDED = (
    "SELECT COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_statements_summary_global_by_event_name"
    " WHERE EVENT_NAME = 'statement/sql/commit'"
)
_UNDER_WAY = (
    "SELECT COALESCE(MAX(TIMER_WAIT), 0) FROM performance_schema.events_statements_current"
    " WHERE EVENT_NAME = 'statement/sql/commit' AND END_EVENT_ID IS NULL"
)


def replicas_of(mysql: MySqlSettings, snapshot: SnapshotSettings) -> dict[str, MySqlSettings]:
    """How each replica whose lag is looked at is asked, by its address: as the server itself is."""
    return {
        f"{host}:{port}": mysql.model_copy(
            update={"hostname": host, "port": port, "connect_timeout_seconds": PATIENCE_SECONDS}
        )
        for host, port in snapshot.throttle_replicas
    }


class Measure(Protocol):
    """What was measured since it was asked last, in the unit of its limit; None where that begins now."""

    def __call__(self, connection: Connection[Any]) -> int | None: ...


def threads_running(connection: Connection[Any]) -> int:
    """As SHOW GLOBAL STATUS has it: the thread that asks, and those that send the binlog, are among them."""
    return int(query(connection, "SHOW GLOBAL STATUS LIKE 'Threads\\_running'")[0][1])


class CommitLatency:
    """Milliseconds that a COMMIT takes: the mean of those that have ended since it was asked last, or what the longest
    that has not ended has taken so far, if that is more. 0 where nobody has committed, None when it is asked first.

    A statement that commits by itself (autocommit) is not counted: the server does not tell its commit apart from it.
    """

    def __init__(self) -> None:
        self._ended: tuple[int, int] | None = None

    def __call__(self, connection: Connection[Any]) -> int | None:
        try:
            if self._ended is None and int(query(connection, _TIMED)[0][0]) != 4:
                raise IncsnapError(
                    "performance_schema does not time COMMIT on the server",
                    "Start mysqld with performance_schema=ON, and switch statement/sql/commit on in setup_instruments.",
                )
            [(count, wait)] = query(connection, _ENDED)
            [(longest,)] = query(connection, _UNDER_WAY)
        except QueryRefusedError as error:
            if error.code in NO_PRIVILEGE:
                raise IncsnapError(
                    "the user may not read performance_schema", "GRANT SELECT ON performance_schema.* TO the user."
                ) from None
            raise
        before, self._ended = self._ended, (int(count), int(wait))
        if before is None:
            return None
        # Fewer than before: somebody has truncated the summary.
        count, wait = self._ended[0] - before[0], self._ended[1] - before[1]
        mean = wait // count if count > 0 else 0
        return max(mean, int(longest)) // _PICOSECONDS


def replica_lag_ms(connection: Connection[Any]) -> int:
    """How far the slowest of the replica's channels is behind, in milliseconds; whole seconds, as Seconds_Behind_Source
    has it. Raises ``IncsnapError`` where that cannot be told."""
    server = version(connection)
    try:
        channels = named(connection, replica_status_statement(server))
    except QueryRefusedError as error:
        if error.code in NO_PRIVILEGE:
            raise IncsnapError(
                "the user may not ask a replica how it is", "GRANT REPLICATION CLIENT ON *.* TO the user, there too."
            ) from None
        raise
    if not channels:
        raise IncsnapError("it replicates from no server", "Name replicas of the server, and start them.")
    new = says_replica(server)
    io, sql, behind = (
        ("Replica_IO_Running", "Replica_SQL_Running", "Seconds_Behind_Source")
        if new
        else ("Slave_IO_Running", "Slave_SQL_Running", "Seconds_Behind_Master")
    )
    for channel in channels:
        if channel[io] != "Yes" or channel[sql] != "Yes" or channel[behind] is None:
            raise IncsnapError(
                f"its replication does not run ({io}: {channel[io]}, {sql}: {channel[sql]})",
                f"START REPLICA, and see {replica_status_statement(server)} there.",
            )
    return 1000 * max(int(channel[behind]) for channel in channels)
