"""Tables by which rows are read that do not name their columns (``binlog_row_metadata=MINIMAL``): all that their table
maps leave out, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.ddl.created import read_definition
from incsnap.ddl.table_definition import TableDefinition
from incsnap.ddl.words import NotUnderstood
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
) -> tuple[dict[TableId, TableDefinition], dict[TableId, str]]:
    """Return the tables that exist and may be seen, as they are now; and why others cannot be told.

    The binlog's end, asked for behind this, is behind the statement that made each table what it is: whoever changes
    a table holds it exclusively until the statement is logged, and SHOW CREATE TABLE waits for that. Without it this
    would hold for InnoDB alone, whose dictionary changes only behind the binlog.
    """
    definitions: dict[TableId, TableDefinition] = {}
    refused: dict[TableId, str] = {}
    for table, shape in shapes_of(connection, tables).items():
        doubtful = next((column.name for column in shape.columns if _may_hide_a_character(column)), None)
        if doubtful is not None:
            refused[table] = f"a literal of its column {doubtful} may have a character that the server shows as ?"
            continue
        try:
            printed = query(connection, f"SHOW CREATE TABLE {table.sql}")
        except QueryRefusedError as problem:
            refused[table] = f"the server does not show it: {problem.message}"
        else:
            definitions[table] = _with_keys(shape, str(printed[0][1]))
    return definitions, refused


def _with_keys(shape: TableShape, printed: str) -> TableDefinition:
    """Return the definition with its keys, if SHOW CREATE TABLE and information_schema tell the same columns.

    Else they were asked on either side of a statement, or the text has what is not understood. Then rows can be read,
    and no statement can be followed.
    """
    try:
        definition = read_definition(printed, shape.id)
    except NotUnderstood:
        return TableDefinition(shape)
    return definition if definition.shape == shape else TableDefinition(shape)


def _may_hide_a_character(column: Column) -> bool:
    return column.charset in _WIDE and any("?" in literal for literal in column.values)
