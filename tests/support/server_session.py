"""A connection to a server, as a test talks to it."""

from __future__ import annotations

from typing import Any

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.mysql_versions import end_of_binlog, reset_statement


class ServerSession:
    """It is open from the beginning; whoever made it closes it."""

    def __init__(self, address: MySqlAddress) -> None:
        self.address = address
        self.connection = self.connect()

    def connect(self) -> Any:
        """Another connection, which is the caller's."""
        return connect(self.address)

    def close(self) -> None:
        self.connection.close()

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows that the last statement returned, if there is one."""
        rows: list[tuple[Any, ...]] = []
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def end(self) -> tuple[str, int]:
        """File and position of the binlog's end."""
        return end_of_binlog(self.connection)

    def reset(self) -> None:
        """Throws its binlog away, and its GTIDs."""
        self.run(reset_statement(self.connection))
