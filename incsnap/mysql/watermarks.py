"""The two watermarks of a chunk, and the GTID sets behind them.

MySQL sends a transaction to replicas before it makes it visible, and makes it visible before it is in gtid_executed. So
a chunk is read when its low watermark is in gtid_executed (all that was delivered can be seen), and its high watermark
is the end of the binlog (all that was seen has been written before it). Taking gtid_executed for both would let a stale
row through.
"""

from __future__ import annotations

from typing import Any

import pymysql
from pymysql.connections import Connection

from incsnap.errors import BinlogError, ChunkFailed, ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.mysql.session import error_of, is_gone, named, query
from incsnap.mysql.versions import status_statement, version


def wait_until_executed(connection: Connection[Any], gtids: GtidSet, timeout: float) -> None:
    """Waits until every transaction of ``gtids`` is visible to a new SELECT, at most ``timeout`` seconds.

    Raises ``ChunkFailed`` when it takes longer (a commit stalled by semi-synchronous replication, a replica behind),
    ``ServerUnreachable`` when the connection is gone.
    https://dev.mysql.com/doc/refman/en/gtid-functions.html#function_wait-for-executed-gtid-set
    """
    if not gtids:
        return
    try:
        with connection.cursor() as cursor:
            # 0 would mean to wait for ever.
            cursor.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", (str(gtids), max(timeout, 0.001)))
            row = cursor.fetchone()
    except (pymysql.err.MySQLError, OSError) as error:
        if is_gone(error):
            raise ServerUnreachable(f"The connection to MySQL was lost: {error_of(error)[1]}") from None
        raise ChunkFailed(f"The wait for delivered transactions failed: {error_of(error)[1]}") from None
    if row is None or row[0] != 0:
        raise ChunkFailed(
            f"Transactions that the binlog has sent are not visible after {timeout:g} s",
            "A commit is stalled (semi-synchronous replication?) or the replica is behind; the chunk is planned again.",
        )


def high_watermark(connection: Connection[Any]) -> tuple[str, int]:
    """File and position of the end of the binlog. Ask after the SELECT."""
    rows = query(connection, status_statement(version(connection)))
    if not rows:
        raise BinlogError("The server writes no binlog", "Start MySQL with log_bin.")
    return str(rows[0][0]), int(rows[0][1])


def logged_databases(connection: Connection[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Gives (binlog_do_db, binlog_ignore_db): databases that alone are logged, and databases that are not."""
    rows = named(connection, status_statement(version(connection)))
    if not rows:
        return (), ()

    def split(text: object) -> tuple[str, ...]:
        return tuple(part for part in str(text or "").split(",") if part)

    return split(rows[0].get("Binlog_Do_DB")), split(rows[0].get("Binlog_Ignore_DB"))


def logs_everything(connection: Connection[Any]) -> bool:
    """Is every statement in the binlog? Filters leave DDL out by the session's database, whatever table it is about."""
    return logged_databases(connection) == ((), ())


def executed(connection: Connection[Any]) -> GtidSet:
    """All transactions that are committed and visible."""
    return GtidSet.parse(str(query(connection, "SELECT @@global.gtid_executed")[0][0]))


def purged(connection: Connection[Any]) -> GtidSet:
    """Transactions that were executed and are in no binlog file any more."""
    return GtidSet.parse(str(query(connection, "SELECT @@global.gtid_purged")[0][0]))


def server_uuid(connection: Connection[Any]) -> str:
    return str(query(connection, "SELECT @@server_uuid")[0][0])
