"""Tests that information_schema and SHOW CREATE TABLE give the same definitions of columns.

Debezium's records are the oracle for SHOW CREATE TABLE (`tests/unit/mysql/test_table_definitions.py`).
"""

from __future__ import annotations

from contextlib import closing

import pytest
from pydantic import SecretStr

from incsnap.config.servers import MySqlSettings
from incsnap.mysql.column_defaults import defaults_of
from incsnap.mysql.session import connect, query
from incsnap.mysql.table_definitions import definitions_of
from incsnap.tables import TableId
from lab.addresses import MySqlAddress

pytestmark = pytest.mark.servers

_COLUMNS = (
    "a tinyint(1), b bool, c int(7) zerofill, d bigint(30) unsigned, e numeric(9),"
    " f decimal(9,2) unsigned default 1.5, g float(7,3) unsigned, h double precision, i real, j bit, k bit(12), l year,"
    " m timestamp(3) null, n datetime,"
    " o time(6), p date, q char, r character varying(12), s nchar(4), t long varchar, u varbinary(9), v tinyblob,"
    r" w enum('it''s','a,b','back\\','(x)','ü\'') default 'a,b', x set('p','q\\','unsigned'), y json, z vector(3),"
    " aa point srid 4326, ab geomcollection, ac int generated always as (c + 1) virtual, ad text charset latin1,"
    " ae char(0), af varchar(3) charset binary, ag int default (1 + 1), id serial primary key"
)

#: As a statement writes it between its quotes.
_COMMENT = r"""it''s "x" \\ \n \r \0 \t é (,)"""


def settings_of(address: MySqlAddress) -> MySqlSettings:
    return MySqlSettings(
        hostname=address.host, port=address.port, user=address.user, password=SecretStr(address.password)
    )


def test_types_are_told_alike_by_information_schema_and_by_show_create_table(
    mysql_address: MySqlAddress, database: str
) -> None:
    table = TableId(database, "t")
    with closing(connect(settings_of(mysql_address))) as connection:
        query(connection, f"CREATE TABLE {table.sql} ({_COLUMNS})")
        columns = definitions_of(connection, {table: ""}, comments=True)[table].shown["columns"]
        known = defaults_of(connection, [table], definitions=True)[table]
        assert {each.column: each.default for each in defaults_of(connection, [table])[table]} == {
            "f": "1.50",
            "w": "a,b",
        }

    sources = [(each.column, each.source) for each in known]
    assert [(name, source.name, source.length, source.scale) for name, source in sources if source is not None] == [
        (each["name"], each["typeName"], each["length"], each["scale"]) for each in columns
    ]
    assert len(sources) == len(columns) == 34
    assert {each.column: each.default for each in known if each.default is not None} == {"f": "1.50", "w": "a,b"}


def test_comments_are_told_alike_by_information_schema_and_by_show_create_table(
    mysql_address: MySqlAddress, database: str
) -> None:
    table = TableId(database, "t")
    with closing(connect(settings_of(mysql_address))) as connection:
        query(
            connection,
            f"CREATE TABLE {table.sql} (id INT PRIMARY KEY COMMENT '{_COMMENT}', a INT COMMENT '', b INT)"
            f" COMMENT = '{_COMMENT}' PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9) COMMENT = 'of p')",
        )
        shown = definitions_of(connection, {table: ""}, comments=True)[table].shown
        unasked = definitions_of(connection, {table: ""})[table].shown
        comments = {each.column: each.comment for each in defaults_of(connection, [table], definitions=True)[table]}

    assert {each["name"]: each["comment"] or "" for each in shown["columns"]} == comments
    assert comments["id"] == shown["comment"] == _COMMENT.replace(r"\t", "\t")
    assert [each["comment"] for each in (*unasked["columns"], unasked)] == [None] * 4
