"""Differences between MySQL 8.0 and 9: renamed statements, and types and GTIDs that came later."""

from __future__ import annotations

from typing import Any

from incsnap.mysql.versions import status_statement, version


def end_of_binlog(connection: Any) -> tuple[str, int]:
    """Return file and position of the binlog's end."""
    with connection.cursor() as cursor:
        cursor.execute(status_statement(version(connection)))
        file, position = cursor.fetchone()[:2]
    return str(file), int(position)


def reset_statement(connection: Any) -> str:
    """Return the statement that begins the binlog again. It was renamed in 8.2, and 8.4 has no old name."""
    return "RESET BINARY LOGS AND GTIDS" if version(connection) >= (8, 2, 0) else "RESET MASTER"


def has_tags(connection: Any) -> bool:
    """Whether a GTID may have a tag (from 8.3 on)."""
    return version(connection) >= (8, 3, 0)


def has_vector(connection: Any) -> bool:
    """Whether the type VECTOR exists (from 9.0 on)."""
    return version(connection) >= (9, 0, 0)
