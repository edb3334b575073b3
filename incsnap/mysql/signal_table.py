"""The signal table as Debezium defines it, and what a server lacks of it."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from incsnap.mysql import catalog
from incsnap.mysql.session import query
from incsnap.tables import TableId, TableShape, quote


def creation(table: TableId) -> str:
    """Return the statement that creates the signal table."""
    return f"CREATE TABLE {table.sql} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048));"


def shape_or_lack(connection: Connection[Any], table: TableId) -> tuple[TableShape | None, str, str]:
    """Return (shape, "", "") for a table that exists, else (None, what is missing, the SQL that creates it).

    A table that the user may not see counts as missing.
    """
    shape = catalog.shape_of(connection, table)
    if shape is not None:
        return shape, "", ""
    names = query(connection, "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", (table.database,))
    if names:
        return None, f"the table {table} does not exist", creation(table)
    lack = f"the database {table.database} does not exist"
    return None, lack, f"CREATE DATABASE {quote(table.database)}; {creation(table)}"
