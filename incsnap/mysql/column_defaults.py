"""The DEFAULT, the defined type and the comment of columns: only schemas show them, and no table map tells them, so the
server is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.mysql.session import query
from incsnap.mysql.table_definitions import as_printed, source_type
from incsnap.tables import Declared, Defaults, TableId, TableShape

#: An expression (``DEFAULT (UUID())``) is no value; CURRENT_TIMESTAMP counts as an expression there too, and is one
#: that schemas can show.
_VALUE = "EXTRA NOT LIKE '%%DEFAULT_GENERATED%%' OR COLUMN_DEFAULT LIKE 'CURRENT_TIMESTAMP%%'"
_DEFAULT = f"COLUMN_DEFAULT IS NOT NULL AND ({_VALUE})"
_ALL = (
    f"SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), IF({_DEFAULT}, COLUMN_DEFAULT, NULL),"
    " COLUMN_TYPE, COLUMN_COMMENT FROM information_schema.COLUMNS WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s"
)
_ORDER = " ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"


def defaults_of(
    connection: Connection[Any], tables: Sequence[TableId], *, definitions: bool = False
) -> dict[TableId, Defaults]:
    """As they are now, an entry for each of ``tables``. ``definitions``: with the types and comments that columns were
    defined with, else columns without a DEFAULT are left out."""
    by_table: dict[TableId, list[Declared]] = {table: [] for table in tables}
    if not tables:
        return {}
    names = tuple((table.database, table.table) for table in tables)
    sql = _ALL + ("" if definitions else f" AND {_DEFAULT}") + _ORDER
    for database, name, column, kind, default, defined, comment in query(connection, sql, (names,)):
        declared = Declared(str(column), str(kind), None if default is None else str(default))
        if definitions:
            declared = declared._replace(source=source_type(_text(defined)), comment=as_printed(str(comment)))
        by_table.setdefault(TableId(str(database), str(name)), []).append(declared)
    return {table: tuple(columns) for table, columns in by_table.items()}


def _text(value: object) -> str:
    """COLUMN_TYPE is a text that some servers send as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def shape_with_defaults(connection: Connection[Any], shape: TableShape, *, definitions: bool = False) -> TableShape:
    return shape.with_defaults(defaults_of(connection, [shape.id], definitions=definitions)[shape.id])
