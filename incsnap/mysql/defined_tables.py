"""The definitions of tables as far as the values of old rows depend on them (`incsnap.ddl.old_rows`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.ddl.old_rows import DefinedColumn, DefinedTable
from incsnap.mysql.catalog import shapes_of
from incsnap.mysql.session import query
from incsnap.tables import TableId, printed_charset

#: Tables in one query.
_AT_ONCE = 500
_COLUMNS = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLUMN_DEFAULT, EXTRA,"
    " GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE (TABLE_SCHEMA, TABLE_NAME) IN %s"
    " ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
)


def defined_tables(connection: Connection[Any], tables: Sequence[TableId]) -> dict[TableId, DefinedTable]:
    """Return the present definitions of those of `tables` that exist and may be seen, by their names on the server."""
    columns: dict[TableId, list[DefinedColumn]] = {}
    for first in range(0, len(tables), _AT_ONCE):
        names = tuple((table.database, table.table) for table in tables[first : first + _AT_ONCE])
        for database, table, *column in query(connection, _COLUMNS, (names,)):
            columns.setdefault(TableId(str(database), str(table)), []).append(_column(*column))
    shapes = shapes_of(connection, tables)
    keys = {table: tuple(shape.columns[index].name for index in shape.key) for table, shape in shapes.items()}
    return {table: DefinedTable(tuple(each), keys.get(table, ())) for table, each in columns.items()}


def _column(
    name: Any, kind: Any, nullable: Any, charset: Any, default: Any, extra: Any, generated: Any
) -> DefinedColumn:
    words = _text(extra).upper()
    return DefinedColumn(
        _text(name),
        _text(kind),
        nullable=_text(nullable) == "YES",
        charset=printed_charset(_text(charset)),
        default=None if default is None else _text(default),
        computed="DEFAULT_GENERATED" in words,
        generated=_text(generated),
        counted="AUTO_INCREMENT" in words,
    )


def _text(value: Any) -> str:
    """Return a value of information_schema as text. Some servers send long texts as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value or "")
