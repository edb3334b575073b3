"""A check that the loads which limit snapshots can be measured.

A load that cannot be measured would block them for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.mysql.loads import PATIENCE_SECONDS, CommitLatency, replica_lag_ms, replicas_of
from incsnap.mysql.server_rules import Finding
from incsnap.mysql.session import connect
from incsnap.snapshot.throttle import COMMIT_LATENCY, REPLICA_LAG, setting_of


def load_findings(connection: Connection[Any], settings: Settings) -> Iterable[Finding]:
    """Yield a warning for each load that cannot be measured. The stream itself needs none of them.

    Replicas are also asked if no limit on their lag is set, because a signal may set one.
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
