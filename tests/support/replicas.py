"""Helpers for servers that replicate from another server."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.mysql_versions import reset_statement


def execute(address: MySqlAddress, *statements: str) -> list[tuple[Any, ...]]:
    """Run the statements as an administrator, and return the rows of the last one."""
    with closing(connect(address)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def begin_binlog_anew(server: MySqlAddress) -> None:
    """Forget all transactions that the server has executed, and begin its binlog with the first file."""
    with closing(connect(server)) as connection:
        statement = reset_statement(connection)
    execute(server, statement)


def follow(replica: MySqlAddress, source: MySqlAddress) -> None:
    """Let `replica` replicate from `source`, from where its own GTID set ends."""
    execute(
        replica,
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{source.host}', SOURCE_PORT={source.port},"
        f" SOURCE_USER='{source.user}', SOURCE_PASSWORD='{source.password}', SOURCE_AUTO_POSITION=1,"
        " SOURCE_CONNECT_RETRY=1, GET_SOURCE_PUBLIC_KEY=1",
        "START REPLICA",
    )


def catch_up(replica: MySqlAddress, source: MySqlAddress, seconds: float = 120.0) -> None:
    """Wait until the replica has executed all that the source has; fail after `seconds`."""
    [(executed,)] = execute(source, "SELECT @@GLOBAL.gtid_executed")
    [(missing,)] = execute(replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', {seconds})")
    assert not missing, f"the replica did not catch up in {seconds:g} s"
