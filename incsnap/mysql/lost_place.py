"""A check whether the server can still send the transactions after an offset.

It runs before the binlog is requested.
"""

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

#: Seconds to wait until a replica that has taken over has applied the transactions that it received.
_CATCH_UP_SECONDS = 5.0
_CATCH_UP_PAUSE_SECONDS = 0.1
#: The part of gtid_owned that names the owning session.
_OWNER = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class Lost:
    """The transactions that an offset has lost. The value is false if both sets are empty."""

    #: transactions after the offset that no binlog file contains any more
    purged: GtidSet = field(default_factory=GtidSet)
    unknown: GtidSet = field(default_factory=GtidSet)  #: transactions that were sent and that the server has never had

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
    """Return the transactions that an offset has lost.

    `delivered` is what the next batch continues from. `sent` is everything that was sent, also with an unfinished
    batch. A transaction that a replica has not received yet, or that a stalled commit has not made visible yet, is not
    lost.

    Raise ServerUnreachable, so that the caller tries again, if transactions are purged while sent ones may still
    appear.
    """
    behind = _behind(connection, sent)
    purged = watermarks.purged(connection) - delivered
    if not behind:
        return Lost(purged)
    if not _may_still_come(connection, behind):
        return Lost(purged, behind)
    if purged:
        raise ServerUnreachable(
            f"The binlog no longer holds the transactions after the offset, and what was sent is not executed yet:"
            f" {shorten(behind)}",
            "A replica may lag, or a commit may be stalled. The job begins again when the server has caught up.",
        )
    return Lost()


def _behind(connection: Connection[Any], sent: GtidSet) -> GtidSet:
    """Return the transactions of `sent` that are still not executed after a short wait."""
    deadline = time.monotonic() + _CATCH_UP_SECONDS
    while (missing := sent - watermarks.executed(connection)) and time.monotonic() < deadline:
        time.sleep(_CATCH_UP_PAUSE_SECONDS)
    return missing


def _may_still_come(connection: Connection[Any], behind: GtidSet) -> bool:
    """Return True if the server is a replica, or if it has written some of `behind` that is not visible yet."""
    owned = _OWNER.sub("", str(query(connection, "SELECT @@global.gtid_owned")[0][0]))
    if owned and behind - GtidSet.parse(owned) != behind:
        return True
    server = version(connection)
    channels = named(connection, replica_status_statement(server))
    running = "Replica_SQL_Running" if says_replica(server) else "Slave_SQL_Running"
    return any(channel.get(running) == "Yes" for channel in channels)
