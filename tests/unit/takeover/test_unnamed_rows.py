"""Statements behind a connector's offset that leave rows without column names unreadable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.config.patterns import TableFilter
from incsnap.ddl.statements import schema_change
from incsnap.events import SchemaChange, Session
from incsnap.takeover.unnamed_rows import redefining

_SESSION = Session("shop", sql_mode=0, client="utf8mb4", connection="utf8mb4", server="utf8mb4")
_CAPTURED = TableFilter(database_include=("shop",), table_include=(r"shop\.orders",))


def changes(*statements: str) -> list[SchemaChange]:
    """Return the statements of a session in the database `shop`."""
    made = [schema_change(sql, "shop", sql_mode=0) for sql in statements]
    return [replace(each, session=_SESSION) for each in made if each is not None]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE orders ADD COLUMN c INT",
        "CREATE UNIQUE INDEX i ON orders (a)",
        "DROP TABLE orders",
        "DROP DATABASE shop",
        "RENAME TABLE orders TO gone, _orders_new TO orders",
    ],
)
def test_a_statement_that_redefines_a_captured_table_is_named(sql: str) -> None:
    [change] = changes(sql)

    assert redefining([change], _CAPTURED) == change


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE audit ADD COLUMN c INT",
        "DROP DATABASE crm",
        "ALTER TABLE orders COMMENT 'of customers'",
        "CREATE TABLE orders LIKE audit",
        "ALTER DATABASE shop CHARACTER SET latin1",
    ],
)
def test_a_statement_before_which_rows_are_certain_is_none(sql: str) -> None:
    assert redefining(changes(sql), _CAPTURED) is None
