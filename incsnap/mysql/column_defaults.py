"""The DEFAULT of columns: only schemas show them, and no table map tells them, so the server is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.mysql.session import query
from incsnap.tables import Defaults, TableId, TableShape

#: An expression (``DEFAULT (UUID())``) is no value; CURRENT_TIMESTAMP counts as an expression there too, and is one
#: that schemas can show.
_WANTED = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_DEFAULT FROM information_schema.COLUMNS"
    " WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s AND COLUMN_DEFAULT IS NOT NULL"
    " AND (EXTRA NOT LIKE '%%DEFAULT_GENERATED%%' OR COLUMN_DEFAULT LIKE 'CURRENT_TIMESTAMP%%')"
    " ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
)


def defaults_of(connection: Connection[Any], tables: Sequence[TableId]) -> dict[TableId, Defaults]:
    """As they are now, an entry for each of ``tables``."""
    found: dict[TableId, list[tuple[str, str, str]]] = {table: [] for table in tables}
    if not tables:
        return {}
    wanted = tuple((table.database, table.table) for table in tables)
    for database, name, column, kind, text in query(connection, _WANTED, (wanted,)):
        found.setdefault(TableId(str(database), str(name)), []).append((str(column), str(kind), str(text)))
    return {table: tuple(columns) for table, columns in found.items()}


def shape_with_defaults(connection: Connection[Any], shape: TableShape) -> TableShape:
    return shape.with_defaults(defaults_of(connection, [shape.id])[shape.id])
