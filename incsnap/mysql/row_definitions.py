"""Tables by which rows are read that do not name their columns (``binlog_row_metadata=MINIMAL``): all that their table
maps leave out, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.mysql.catalog import shapes_of
from incsnap.mysql.session import QueryRefusedError, query
from incsnap.tables import Column, TableId, TableShape

#: Character sets with characters beyond U+FFFF, for which information_schema and SHOW CREATE TABLE print a question
#: mark inside literals.
_WIDE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})


def leaves_names_out(connection: Connection[Any]) -> bool:
    """Does the server write table maps without names now? It can be changed at any time, for all sessions at once."""
    return str(query(connection, "SELECT @@GLOBAL.binlog_row_metadata")[0][0]).upper() == "MINIMAL"


def row_definitions(
    connection: Connection[Any], tables: Sequence[TableId]
) -> tuple[dict[TableId, TableShape], dict[TableId, str]]:
    """The tables that exist and may be seen, as they are now; and of those that cannot be told, why.

    The binlog's end, asked for behind this, is behind the statement that made each table what it is: whoever changes
    a table holds it exclusively until the statement is logged, and SHOW CREATE TABLE waits for that. Without it this
    would hold for InnoDB alone, whose dictionary changes only behind the binlog.
    """
    shapes: dict[TableId, TableShape] = {}
    refused: dict[TableId, str] = {}
    for table, shape in shapes_of(connection, tables).items():
        doubtful = next((column.name for column in shape.columns if _may_hide_a_character(column)), None)
        if doubtful is not None:
            refused[table] = f"a literal of its column {doubtful} may have a character that the server shows as ?"
            continue
        try:
            query(connection, f"SHOW CREATE TABLE {table.sql}")
        except QueryRefusedError as problem:
            refused[table] = f"the server does not show it: {problem.message}"
        else:
            shapes[table] = shape
    return shapes, refused


def _may_hide_a_character(column: Column) -> bool:
    return column.charset in _WIDE and any("?" in literal for literal in column.values)
