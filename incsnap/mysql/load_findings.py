"""Can the loads be measured that hold snapshots back? What cannot be known would hold them back for ever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.mysql.loads import CommitLatency, replica_lag_ms
from incsnap.mysql.server_rules import Finding
from incsnap.mysql.session import connect
from incsnap.snapshot.throttle import COMMIT_LATENCY, REPLICA_LAG, setting_of

#: Seconds that a replica has to answer.
_PATIENCE_SECONDS = 5.0


def load_findings(connection: Connection[Any], settings: Settings) -> Iterable[Finding]:
    """Warnings, as the stream needs none of it. Replicas are asked also where only a signal may limit their lag."""
    if COMMIT_LATENCY in settings.snapshot.throttle:
        try:
            CommitLatency()(connection)
        except IncsnapError as error:
            yield _waiting(COMMIT_LATENCY, error.message, error.hint)
    for host, port in settings.snapshot.throttle_replicas:
        there = settings.mysql.model_copy(
            update={"hostname": host, "port": port, "connect_timeout_seconds": _PATIENCE_SECONDS}
        )
        try:
            replica = connect(there, read_timeout=_PATIENCE_SECONDS)
            try:
                replica_lag_ms(replica)
            finally:
                replica.close()
        except IncsnapError as error:
            yield _waiting(REPLICA_LAG, f"replica {host}:{port}: {error.message}", error.hint)


def _waiting(name: str, problem: str, repair: str) -> Finding:
    return Finding(setting_of(name), f"{problem}; with this limit snapshots wait until that ends", repair, "warning")
