"""A session on a MySQL server for a test."""

from __future__ import annotations

from typing import Any

import pymysql

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.mysql_versions import end_of_binlog, reset_statement


class ServerSession:
    """An open session. The test that created it closes it."""

    def __init__(self, address: MySqlAddress) -> None:
        self.address = address
        self.connection = self.connect()

    def connect(self) -> Any:
        """Return another connection, which the caller closes."""
        return connect(self.address)

    def close(self) -> None:
        self.connection.close()

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run the statements, and return the rows of the last one."""
        rows: list[tuple[Any, ...]] = []
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def end(self) -> tuple[str, int]:
        """Return file and position of the binlog's end."""
        return end_of_binlog(self.connection)

    def end_dumps(self) -> None:
        """End the server's threads that send its binlog. A thread of a closed connection may end before that."""
        for (number,) in self.run(
            "SELECT PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_COMMAND LIKE 'Binlog Dump%'"
        ):
            try:
                self.run(f"KILL {number}")
            except pymysql.err.OperationalError as gone:
                assert gone.args[0] == 1094  # noqa: PT017

    def reset(self) -> None:
        """Delete the server's binlog and its GTIDs."""
        self.run(reset_statement(self.connection))
