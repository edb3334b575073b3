"""XA transactions that are prepared on the server. Their rows are sent when they are committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pymysql.connections import Connection

from incsnap.ddl.xa_statements import xid_of
from incsnap.errors import shorten
from incsnap.mysql.server_rules import Finding
from incsnap.mysql.session import QueryRefusedError, query


def prepared_xids(connection: Connection[Any]) -> tuple[str, ...] | None:
    """Return the xids of prepared transactions, in the form that XA COMMIT takes, or None without the privilege to ask.

    The privilege is XA_RECOVER_ADMIN. https://dev.mysql.com/doc/refman/en/xa-statements.html
    """
    try:
        rows = query(connection, "XA RECOVER CONVERT XID")
    except QueryRefusedError:
        return None
    xids = []
    for format_id, global_length, _, data in rows:
        content = bytes.fromhex(str(data)[2:])  # without 0x
        xids.append(xid_of(int(format_id), content[: int(global_length)], content[int(global_length) :]))
    return tuple(xids)


def prepared_findings(connection: Connection[Any], user: str) -> Iterable[Finding]:
    """Yield a warning if transactions are prepared before a job's first start, or if the user may not ask for them."""
    xids = prepared_xids(connection)
    if xids:
        problem = f"{len(xids)} XA transactions are prepared: {shorten(', '.join(xids))}"
        repair = (
            "XA COMMIT or XA ROLLBACK the forgotten. Keep the binlog files with the others' XA PREPARE until they end"
        )
        yield Finding("XA transactions", problem, repair, "warning")
    elif xids is None and int(query(connection, "SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")[0][1]):
        problem = f"the server has XA transactions, and {user} may not list those that are prepared"
        yield Finding("privileges", problem, f"GRANT XA_RECOVER_ADMIN ON *.* TO {user};", "warning")
