"""A purge of a server's binlog that is certain to be done."""

from __future__ import annotations

from typing import Any

from tests.support.mysql_versions import end_of_binlog
from tests.support.waiting import wait_until


def purge_binlog(connection: Any) -> None:
    """Purge all binlog files of the server except for the last one.

    MySQL keeps a file, and only warns, while a thread sends the file. After a client has closed its connection, the
    server's thread lives on for a moment. So the statement runs until the files are gone.
    """
    newest, _ = end_of_binlog(connection)

    def is_purged() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(f"PURGE BINARY LOGS TO '{newest}'")
            cursor.execute("SHOW BINARY LOGS")
            return bool(cursor.fetchall()[0][0] == newest)

    wait_until(is_purged)
