"""Warnings of a take-over about XA transactions that are prepared. Debezium has sent their rows at XA PREPARE."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from incsnap.errors import shorten
from incsnap.mysql.preflight import account
from incsnap.mysql.xa import prepared_xids


def xa_warnings(connection: Connection[Any]) -> list[str]:
    """Return a warning if XA transactions are prepared now, or if the user may not ask for them.

    The job asks for them once more at its first start, so a GRANT between the take-over and that start is in time.
    """
    xids = prepared_xids(connection)
    if xids is None:
        user = account(connection)
        return [
            f"{user} lacks the privilege XA_RECOVER_ADMIN, so XA transactions that are prepared now cannot be seen."
            " Debezium has sent their rows at XA PREPARE, and the rows may come twice, at XA COMMIT. If applications"
            f" use XA transactions, run GRANT XA_RECOVER_ADMIN ON *.* TO {user}; before the job's first start"
        ]
    if xids:
        return [
            f"XA transactions are prepared: {shorten(', '.join(xids))}. Debezium sends rows at XA PREPARE. After an"
            " XA ROLLBACK such rows stay in the topics, and the job's log says so"
        ]
    return []
