"""What servers of MySQL 8.0 to 9 do not all know: statements under new names, types and GTIDs that came later."""

from __future__ import annotations

from typing import Any

from incsnap.mysql.versions import status_statement, version


def end_of_binlog(connection: Any) -> tuple[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(status_statement(version(connection)))
        file, position = cursor.fetchone()[:2]
    return str(file), int(position)


def reset_statement(connection: Any) -> str:
    """What begins the binlog anew: renamed with 8.2, the old name gone with 8.4."""
    return "RESET BINARY LOGS AND GTIDS" if version(connection) >= (8, 2, 0) else "RESET MASTER"


def has_tags(connection: Any) -> bool:
    """May a GTID have a tag?"""
    return version(connection) >= (8, 3, 0)


def has_vector(connection: Any) -> bool:
    return version(connection) >= (9, 0, 0)
