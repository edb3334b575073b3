"""XA transactions whose rows neither a stopped job nor the connector behind it would send.

Debezium sends the rows of an XA transaction at XA PREPARE, and a job sends them at XA COMMIT. So the rows are lost if
XA PREPARE is before the place where the job has stopped, and XA COMMIT is not.

The end of the job's last batch names such a transaction (`prepared` and `sought`) if the stream has read its XA
PREPARE, or if a search looks for it. It may not name one that was prepared before the job's beginning. The job's user
may have had no privilege XA_RECOVER_ADMIN then. The search may have ended without the XA PREPARE, because its binlog
file is purged. Or the job began at an earlier place (`incsnap.start`), and XA COMMIT came before the job asked.

The server and the binlog name such transactions. Each is either prepared now, so XA RECOVER lists it, or its XA COMMIT
is in the binlog behind the place. XA RECOVER also lists a transaction that was prepared behind the place. The binlog
has its XA PREPARE there, so the connector reads it. XA RECOVER is asked before the binlog's end: what ends in between
is in the binlog. A user without XA_RECOVER_ADMIN gets no list. `unseen_xa` and `incsnap check` warn of that.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import ConnectionLost, connect_beside
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, ServerUnreachable, shorten
from incsnap.gtid import GtidSet
from incsnap.mysql.preflight import account
from incsnap.mysql.session import dial
from incsnap.mysql.xa import prepared_xids
from incsnap.takeover.altered_tables import RUN_AGAIN


def unseen_xa(connection: Connection[Any]) -> list[str]:
    """Return a warning if the user may not ask for prepared XA transactions."""
    if prepared_xids(connection) is not None:
        return []
    user = account(connection)
    return [
        f"{user} lacks the privilege XA_RECOVER_ADMIN, so XA transactions that were prepared before the job began"
        " cannot be seen. The connector would not send their rows. If applications use XA transactions, run"
        f" GRANT XA_RECOVER_ADMIN ON *.* TO {user}; and try again."
    ]


def refuse_unsent_xa(settings: Settings, connection: Connection[Any], delivered: GtidSet) -> None:
    """Raise ConfigError if rows of an XA transaction would be sent by neither engine.

    `delivered`: transactions before the place where the job has stopped. The end of its last batch names no XA
    transaction. Raise ServerUnreachable if MySQL does not answer.
    """
    listed = prepared_xids(connection) or ()
    connect = partial(connect_beside, partial(dial, settings.mysql))
    search = PreparedSearch(connect, settings.mysql.server_id, lambda _: False, PreparedTransactions(), damaged="skip")
    try:
        prepared, committed = search.behind(delivered)
    except ConnectionLost as lost:
        raise ServerUnreachable(f"MySQL does not send the binlog behind the job's place: {lost}") from lost
    if committed:
        raise ConfigError(
            "XA transactions were prepared before the place where the job has stopped, and committed behind it:"
            f" {shorten(', '.join(sorted(committed)))}. A connector would not send their rows",
            RUN_AGAIN,
        )
    if unknown := [xid for xid in listed if xid not in prepared]:
        raise ConfigError(
            "XA transactions are prepared, and the binlog has no XA PREPARE of them behind the place where the job has"
            f" stopped: {shorten(', '.join(unknown))}. A connector would not send their rows",
            "XA COMMIT or XA ROLLBACK them while the job runs, stop the job, and try again.",
        )
