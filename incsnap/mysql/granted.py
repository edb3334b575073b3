"""The rights that the server does not ask for: without them it hides rows of `information_schema` instead of refusing.

For such a right a job cannot try a statement and read the error. So the user's GRANTs are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pymysql.connections import Connection

from incsnap.mysql.session import QueryRefusedError, query
from incsnap.tables import TableId

_NAME = r"\*|[`\"](?:[^`\"]|``|\"\")+[`\"]"
_GRANT = re.compile(rf"GRANT (.+?) ON (?:TABLE )?({_NAME})\.({_NAME}) TO ", re.IGNORECASE)


def tables_without(right: str, tables: Iterable[TableId], connection: Connection[Any]) -> list[TableId]:
    """Return those of `tables` on which the user of the connection lacks `right`, such as "TRIGGER".

    Rights of active roles count. Return no table if the server does not show the GRANTs.
    """
    asked = list(tables)
    if not asked:
        return []
    try:
        [(roles,)] = query(connection, "SELECT CURRENT_ROLE()")
        using = "" if roles in (None, "", "NONE") else f" USING {roles}"
        grants = [str(grant) for (grant,) in query(connection, f"SHOW GRANTS FOR CURRENT_USER(){using}")]
    except QueryRefusedError:
        return []
    scopes = [_scope(match) for grant in grants if (match := _GRANT.match(grant)) and _gives(match[1], right)]
    return [table for table in asked if not any(_covers(database, name, table) for database, name in scopes)]


def _gives(rights: str, right: str) -> bool:
    names = [each.strip().upper() for each in rights.split(",")]
    return right in names or "ALL PRIVILEGES" in names or "ALL" in names


def _scope(match: re.Match[str]) -> tuple[str, str]:
    database, name = (each if each == "*" else each[1:-1].replace("``", "`") for each in match.groups()[1:])
    return database, name


def _covers(database: str, name: str, table: TableId) -> bool:
    """Whether a right on `database`.`name` is one on the table. Letter case is ignored.

    A database may be a pattern with `%` and `_` if the right is on all its tables.
    """
    if name != "*":
        return f"{database}.{name}".lower() == table.folded
    if database in ("*", table.database):
        return True
    parts = re.findall(r"\\.|[^\\]", database, re.DOTALL)
    form = "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(form, table.database, re.IGNORECASE | re.DOTALL) is not None
