"""Table definitions for reading rows whose table maps omit column names (`binlog_row_metadata=MINIMAL`).

A definition supplies all that the table map leaves out. A table without a certain definition is refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.ddl.created import read_definition
from incsnap.ddl.table_definition import TableDefinition
from incsnap.ddl.words import NotUnderstood
from incsnap.mysql.catalog import shapes_of
from incsnap.mysql.session import QueryRefusedError, query
from incsnap.tables import Column, TableId, TableShape

#: Character sets with characters above U+FFFF. For these characters information_schema and SHOW CREATE TABLE print a
#: question mark inside literals.
_WIDE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})


#: Seconds for the definitions of tables that are not captured. Events wait meanwhile.
_OTHERS_SECONDS = 1.0


def leaves_names_out(connection: Connection[Any]) -> bool:
    """Return True if the server now writes table maps without names.

    The variable can change at any time, for all sessions.
    """
    return str(query(connection, "SELECT @@GLOBAL.binlog_row_metadata")[0][0]).upper() == "MINIMAL"


def row_definitions(
    connection: Connection[Any], tables: Sequence[TableId], *, within: float = math.inf
) -> tuple[dict[TableId, TableDefinition], dict[TableId, str]]:
    """Return the present definitions of the tables that exist and may be seen, and why other tables have none.

    A definition is never newer than the binlog. If the caller asks for the binlog's end after this call, the statement
    that made this version of the table lies before that end. The reason: a statement that changes a table locks it
    until the statement is logged, and SHOW CREATE TABLE waits for the lock. Without SHOW CREATE TABLE this would hold
    only for InnoDB, whose dictionary changes after the binlog.

    After `within` seconds the remaining tables are left out.
    """
    begun = time.monotonic()
    definitions: dict[TableId, TableDefinition] = {}
    refused: dict[TableId, str] = {}
    for table, shape in shapes_of(connection, tables).items():
        if time.monotonic() > begun + within:
            break
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


def definitions_at_hand(connection: Connection[Any], tables: Sequence[TableId]) -> dict[TableId, TableDefinition]:
    """Return the definitions of those tables that the server shows at once, for tables that are not captured.

    The first locked table costs a second, and the tables after it are left out.
    """
    [(patience,)] = query(connection, "SELECT @@SESSION.lock_wait_timeout")
    query(connection, "SET SESSION lock_wait_timeout = 1")
    try:
        return row_definitions(connection, tables, within=_OTHERS_SECONDS)[0]
    finally:
        query(connection, f"SET SESSION lock_wait_timeout = {patience}")


def _with_keys(shape: TableShape, printed: str) -> TableDefinition:
    """Return the definition with its keys, if SHOW CREATE TABLE and information_schema show equal columns.

    Otherwise a statement changed the table between the two queries, or the text is not understood. Then rows can be
    read, but later statements on the table cannot be followed.
    """
    try:
        definition = read_definition(printed, shape.id)
    except NotUnderstood:
        return TableDefinition(shape)
    return definition if definition.shape == shape else TableDefinition(shape)


def _may_hide_a_character(column: Column) -> bool:
    """Return True if a question mark in a literal of the column may stand for another character."""
    return column.charset in _WIDE and any("?" in literal for literal in column.values)
