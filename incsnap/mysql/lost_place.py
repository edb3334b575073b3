"""Can the server still send what follows an offset? Asked before the binlog is, so that there is time to decide."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from pymysql.connections import Connection

from incsnap.errors import ServerUnreachable, shorten
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import named, query
from incsnap.mysql.versions import replica_status_statement, says_replica, version

#: A replica that has taken over applies what it had received.
_CATCH_UP_SECONDS = 5.0
_CATCH_UP_PAUSE_SECONDS = 0.1
#: Of gtid_owned: which session has it.
_OWNER = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class Lost:
    """``purged``: transactions that follow the offset and are in no file of the binlog any more. ``unknown``: those
    that were sent, and that the server has never had. Where both are empty, nothing is lost."""

    purged: GtidSet = field(default_factory=GtidSet)
    unknown: GtidSet = field(default_factory=GtidSet)

    def __bool__(self) -> bool:
        return bool(self.purged or self.unknown)

    def __str__(self) -> str:
        parts = []
        if self.purged:
            parts.append(f"the binlog no longer holds {self.purged}, which was not delivered")
        if self.unknown:
            parts.append(f"the server does not know {self.unknown}, which was delivered")
        return "; ".join(parts)


def lost_behind(connection: Connection[Any], delivered: GtidSet, sent: GtidSet) -> Lost:
    """What an offset has lost. ``delivered``: what the next batch follows; ``sent``: all that has gone out, also with a
    batch that was not finished.

    What a replica has not received yet, or a stalled commit has not made visible yet, is not lost: nothing is, then.
    Raises ``ServerUnreachable`` (worth another try) where that keeps a job from beginning again though there is a loss.
    """
    behind = _behind(connection, sent)
    purged = watermarks.purged(connection) - delivered
    if not behind:
        return Lost(purged)
    if not _may_still_come(connection, behind):
        return Lost(purged, behind)
    if purged:
        raise ServerUnreachable(
            f"The binlog no longer holds what follows the offset, and what was sent is not executed yet:"
            f" {shorten(behind)}",
            "Is the replica behind, or a commit stalled? The job begins again when the server has caught up.",
        )
    return Lost()


def _behind(connection: Connection[Any], sent: GtidSet) -> GtidSet:
    deadline = time.monotonic() + _CATCH_UP_SECONDS
    while (missing := sent - watermarks.executed(connection)) and time.monotonic() < deadline:
        time.sleep(_CATCH_UP_PAUSE_SECONDS)
    return missing


def _may_still_come(connection: Connection[Any], behind: GtidSet) -> bool:
    """Does the server replicate from another, or has it written some of it that is not visible yet?"""
    owned = _OWNER.sub("", str(query(connection, "SELECT @@global.gtid_owned")[0][0]))
    if owned and behind - GtidSet.parse(owned) != behind:
        return True
    server = version(connection)
    channels = named(connection, replica_status_statement(server))
    running = "Replica_SQL_Running" if says_replica(server) else "Slave_SQL_Running"
    return any(channel.get(running) == "Yes" for channel in channels)
