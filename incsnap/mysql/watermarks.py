"""The two watermarks of a chunk, and the GTID sets that they use.

MySQL commits a transaction in three steps. It sends the transaction to replicas, then makes it visible, and then adds
it to gtid_executed. So the low watermark is reached when gtid_executed contains everything that was delivered: a SELECT
then sees all of it. The high watermark is the end of the binlog after the SELECT: everything that the SELECT saw was
written before. With gtid_executed as the high watermark a stale row could be sent.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from incsnap.errors import BinlogError, ChunkFailed
from incsnap.gtid import GtidSet
from incsnap.mysql.session import QueryRefusedError, named, query
from incsnap.mysql.versions import status_statement, version


def wait_until_executed(connection: Connection[Any], gtids: GtidSet, timeout: float) -> None:
    """Wait until a new SELECT sees every transaction of `gtids`, at most `timeout` seconds.

    Raise ChunkFailed if it takes longer (semi-synchronous replication stalls a commit, or a replica lags). Raise
    ServerUnreachable if the connection is lost.
    https://dev.mysql.com/doc/refman/en/gtid-functions.html#function_wait-for-executed-gtid-set
    """
    if not gtids:
        return
    arguments = (str(gtids), max(timeout, 0.001))  # 0 would wait for ever
    try:
        rows = query(connection, "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", arguments)
    except QueryRefusedError as error:
        raise ChunkFailed(f"The wait for delivered transactions failed: {error.message}") from None
    if not rows or rows[0][0] != 0:
        raise ChunkFailed(
            f"Transactions that the binlog has sent are not visible after {timeout:g} s",
            "A commit is stalled (semi-synchronous replication?) or the replica lags; the chunk is planned again.",
        )


def high_watermark(connection: Connection[Any]) -> tuple[str, int]:
    """Return file and position of the end of the binlog.

    Call it after the SELECT. Raise BinlogError without a binlog.
    """
    rows = query(connection, status_statement(version(connection)))
    if not rows:
        raise BinlogError("The server writes no binlog", "Start MySQL with log_bin.")
    return str(rows[0][0]), int(rows[0][1])


def logged_databases(connection: Connection[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return binlog_do_db and binlog_ignore_db: the only databases that are logged, and those that are not logged."""
    rows = named(connection, status_statement(version(connection)))
    if not rows:
        return (), ()

    def split(text: object) -> tuple[str, ...]:
        return tuple(part for part in str(text or "").split(",") if part)

    return split(rows[0].get("Binlog_Do_DB")), split(rows[0].get("Binlog_Ignore_DB"))


def logs_everything(connection: Connection[Any]) -> bool:
    """Return True if the binlog has every statement.

    A filter omits DDL by the session's database, not by the table's.
    """
    return logged_databases(connection) == ((), ())


def executed(connection: Connection[Any]) -> GtidSet:
    """Return all transactions that are committed and visible."""
    return GtidSet.parse(str(query(connection, "SELECT @@global.gtid_executed")[0][0]))


def purged(connection: Connection[Any]) -> GtidSet:
    """Return the executed transactions that no binlog file contains any more."""
    return GtidSet.parse(str(query(connection, "SELECT @@global.gtid_purged")[0][0]))


def server_uuid(connection: Connection[Any]) -> str:
    """Return the server's UUID."""
    return str(query(connection, "SELECT @@server_uuid")[0][0])
