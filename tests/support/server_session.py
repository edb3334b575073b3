"""A connection to a server, as a test talks to it."""

from __future__ import annotations

from typing import Any

from lab.addresses import MySqlAddress
from lab.mysql_client import connect


class ServerSession:
    """It is open from the beginning; whoever made it closes it."""

    def __init__(self, address: MySqlAddress) -> None:
        self.address = address
        self._connection = self.connect()

    def connect(self) -> Any:
        """Another connection, which is the caller's."""
        return connect(self.address)

    def close(self) -> None:
        self._connection.close()

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows that the last statement returned, if there is one."""
        rows: list[tuple[Any, ...]] = []
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def end(self) -> tuple[str, int]:
        """File and position of the binlog's end."""
        [(file, pos, *_)] = self.run("SHOW BINARY LOG STATUS")
        return file, pos
