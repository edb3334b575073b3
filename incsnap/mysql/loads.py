"""Measuring how busy a server is, for the limits on reading. Each measurement takes one or two quick statements.

A measurement raises IncsnapError with a repair if the server does not provide the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol

from pymysql.connections import Connection

from incsnap.config.servers import MySqlSettings
from incsnap.config.settings import Settings, SnapshotSettings
from incsnap.errors import IncsnapError
from incsnap.mysql.error_codes import NO_PRIVILEGE
from incsnap.mysql.server_rules import Finding
from incsnap.mysql.session import QueryRefusedError, connect, named, query
from incsnap.mysql.versions import replica_status_statement, says_replica, version
from incsnap.snapshot.throttle import COMMIT_LATENCY, REPLICA_LAG, setting_of

#: Seconds that a measurement may wait for a server.
PATIENCE_SECONDS = 5.0
#: Units of performance_schema's timers in a millisecond.
_PICOSECONDS = 10**9
#: Counts what must be enabled to time COMMIT: one instrument and three consumers. All are ON by default.
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
    """Return the connection settings of each replica whose lag is measured, by its `host:port`.

    User and password are those of the server itself.
    """
    return {
        f"{host}:{port}": mysql.model_copy(
            update={"hostname": host, "port": port, "connect_timeout_seconds": PATIENCE_SECONDS}
        )
        for host, port in snapshot.throttle_replicas
    }


class Measure(Protocol):
    """A function that measures a load over a connection, in the unit of the load's limit.

    It returns None if it has nothing to compare with, as `CommitLatency` does at the first call.
    """

    def __call__(self, connection: Connection[Any]) -> int | None: ...


def threads_running(connection: Connection[Any]) -> int:
    """Return Threads_running of SHOW GLOBAL STATUS. It includes this session and the threads that send the binlog."""
    return int(query(connection, "SHOW GLOBAL STATUS LIKE 'Threads\\_running'")[0][1])


class CommitLatency:
    """A measurement of how many milliseconds a COMMIT takes.

    The result is the mean of the COMMITs that ended since the previous call, or the time of the longest running COMMIT
    if that is greater. It is 0 if there was no COMMIT, and None at the first call. An autocommit statement does not
    count: the server does not time its commit separately.
    """

    def __init__(self) -> None:
        self._ended: tuple[int, int] | None = None

    def __call__(self, connection: Connection[Any]) -> int | None:
        """Return the latency in milliseconds. Raise IncsnapError if performance_schema is off or may not be read."""
        with _privilege("performance_schema", "GRANT SELECT ON performance_schema.* TO the user."):
            if self._ended is None and int(query(connection, _TIMED)[0][0]) != 4:
                raise IncsnapError(
                    "performance_schema does not measure COMMIT",
                    "Start mysqld with performance_schema=ON, and enable statement/sql/commit in setup_instruments.",
                )
            [(count, wait)] = query(connection, _ENDED)
            [(longest,)] = query(connection, _UNDER_WAY)
        before, self._ended = self._ended, (int(count), int(wait))
        if before is None:
            return None
        # The count falls if somebody truncates the summary table.
        count, wait = self._ended[0] - before[0], self._ended[1] - before[1]
        mean = wait // count if count > 0 else 0
        return max(mean, int(longest)) // _PICOSECONDS


@contextmanager
def _privilege(source: str, grant: str) -> Iterator[None]:
    """Raise IncsnapError if the server refuses a statement of the block because the user may not read `source`."""
    try:
        yield
    except QueryRefusedError as error:
        if error.code in NO_PRIVILEGE:
            raise IncsnapError(f"the user may not read {source}", grant) from None
        raise


def replica_lag_ms(connection: Connection[Any]) -> int:
    """Return the lag of the replica's slowest channel in milliseconds. The server reports whole seconds.

    Raise IncsnapError if replication does not run, or if the user may not ask.
    """
    server = version(connection)
    with _privilege("the replica's status", "On the replica: GRANT REPLICATION CLIENT ON *.* TO the user."):
        channels = named(connection, replica_status_statement(server))
    if not channels:
        raise IncsnapError("it is not a replica", "Name running replicas of the server.")
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


def load_findings(connection: Connection[Any], settings: Settings) -> Iterable[Finding]:
    """Check that each load which limits snapshots can be measured. Yield a warning for each load that cannot: the limit
    would stop snapshots for ever.

    The live stream needs no measurement. Replicas are measured even if no setting limits their lag, because a signal
    may set such a limit later.
    """
    if COMMIT_LATENCY in settings.snapshot.throttle:
        try:
            CommitLatency()(connection)
        except IncsnapError as error:
            yield _waiting(COMMIT_LATENCY, error.message, error.hint)
    for where, there in replicas_of(settings.mysql, settings.snapshot).items():
        try:
            with closing(connect(there, read_timeout=PATIENCE_SECONDS)) as replica:
                replica_lag_ms(replica)
        except IncsnapError as error:
            yield _waiting(REPLICA_LAG, f"replica {where}: {error.message}", error.hint)


def _waiting(name: str, problem: str, repair: str) -> Finding:
    return Finding(
        setting_of(name), f"{problem}; with this limit snapshots wait until this is repaired", repair, "warning"
    )
