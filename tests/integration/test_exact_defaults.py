"""The DEFAULT of a column in a schema is the value that a row gets, also where information_schema shows less."""

from __future__ import annotations

from contextlib import closing

import pytest
from pymysql.cursors import Cursor

from incsnap.mysql import column_defaults
from incsnap.mysql.catalog import shapes_of
from incsnap.mysql.column_defaults import defaults_of
from incsnap.mysql.session import connect
from incsnap.tables import TableId
from incsnap.types.column_type import describe
from incsnap.types.modes import Modes
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers

#: Types and DEFAULTs, and the values of a schema.
_COLUMNS = {
    "VARCHAR(9) CHARSET utf8mb4 DEFAULT 'x😀?'": "x😀?",
    "CHAR(3) CHARSET ucs2 DEFAULT 'ä?'": "ä?",
    "BINARY(4) DEFAULT x'00ff'": "AP8AAA==",
    "VARBINARY(8) DEFAULT x'ff00'": "/wA=",
    "VARBINARY(8) DEFAULT '0x41'": "MHg0MQ==",
    "FLOAT DEFAULT 3.402823466e38": 3.4028235e38,
    "FLOAT DEFAULT 16777217": 16777216.0,
    "FLOAT DEFAULT 0.1": 0.1,
    "FLOAT(7,2) DEFAULT 1.1": 1.1,
    "VARCHAR(9) DEFAULT NULL": None,
}


def test_a_default_in_a_schema_is_the_value_that_a_row_gets(
    mysql_address: MySqlAddress, database: str, cursor: Cursor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_defaults, "_EXACT_MS", round(PATIENCE_SECONDS * 1_000))
    columns = ", ".join(f"c{number} {definition}" for number, definition in enumerate(_COLUMNS))
    cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
    table = TableId(database, "t")
    with closing(connect(settings_of(mysql_address, "k:1", "p", database).mysql)) as connection:
        [shape] = shapes_of(connection, [table]).values()
        shape = shape.with_defaults(defaults_of(connection, [table])[table])
    shown = dict(shape.defaults)

    values = [
        None if shown.get(index) is None else describe(column, table).default(shown[index], Modes())
        for index, column in enumerate(shape.columns)
    ]

    assert values[1:] == list(_COLUMNS.values())


def test_a_default_is_as_shown_where_a_statement_holds_the_table(
    mysql_address: MySqlAddress, database: str, cursor: Cursor
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, b BINARY(2) DEFAULT x'6100')")
    cursor.execute("LOCK TABLES t WRITE")
    table = TableId(database, "t")

    with closing(connect(settings_of(mysql_address, "k:1", "p", database).mysql)) as connection:
        [declared] = defaults_of(connection, [table])[table]

    assert declared.default == "0x61"
