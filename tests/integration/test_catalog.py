"""The catalog tells of a table exactly what its table map event tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pydantic import SecretStr

from incsnap.binlog.protocol.table_map import parse_table_map
from incsnap.config.patterns import TableFilter
from incsnap.config.servers import MySqlSettings
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.session import connect, named
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from tests.support.binlog_dump import events_since
from tests.support.random_values import CHARACTERS

pytestmark = pytest.mark.servers

_TABLE_MAP = 19

_TABLES = {
    "numbers": "a tinyint, b smallint unsigned not null, c mediumint, d int unsigned, e bigint, f bigint unsigned,"
    " g decimal(12,3), h decimal(65,30) unsigned, i float, j double unsigned, k boolean, l float(7,3), m double(9,2),"
    " primary key (b, a)",
    "texts": "a char(5) charset latin1, b varchar(20), c tinytext, d text charset ascii, e mediumtext, f longtext,"
    " g varchar(7) charset utf8mb3 collate utf8mb3_bin, h char(3) charset binary, primary key (b)",
    "bytes": "a binary(7), b varbinary(300), c tinyblob, d blob, e mediumblob, f longblob, primary key (c(10))",
    "lists": r"a enum('x','it''s','a,b','back\\slash','line\nbreak','ü'), b set('p','q') charset latin1,"
    " c enum('only') charset ascii, id int primary key",
    "times": "a date, b time, c time(6), d datetime, e datetime(3), f timestamp null, g timestamp(6) null, h year,"
    " id int primary key",
    "others": "a json, b bit(9), c bit, d bit(64) not null default 0, id int auto_increment primary key",
    "shapes": "id int primary key, a geometry, b point, c linestring, d polygon, e multipoint, f multilinestring,"
    " g multipolygon, h geometrycollection, i point srid 4326, v vector(3), w vector",
    "choices": "id int primary key, a enum('中','x') charset gbk, b set('é','') charset utf16, c enum('é','b') charset"
    " binary, d set('ソ','表') charset sjis, e enum('Å@','b') charset swe7, f set('a','b') charset ucs2",
    "bytes_in_lists": "id int primary key, a enum(0xFF41,'b') charset binary, b enum(0xFFFF,'a'), c set('a',0xFFFF),"
    " d enum(0xD83D,'a') charset ucs2, e enum(0xF09F9880,'x''ff''') charset binary, f enum(0x81,'a') charset cp932",
    "sets": "id int primary key, "
    + ", ".join(
        f"{charset}_ varchar(5) charset {charset}, {charset}_e enum('x','y') charset {charset}"
        for charset in CHARACTERS
    ),
    "generated": "id int, v int generated always as (id + 1) virtual, s int generated always as (id + 2) stored,"
    " hidden int invisible, primary key (id), key behind ((id * 2))",
    "multi_valued": "id int primary key, j json, key many ((cast(j -> '$.a' as unsigned array))), k int invisible,"
    " key lower ((cast(lower(j ->> '$.b') as char(9))))",
    "keyless": "a int, b int, key (b), unique (b)",
    "promoted": "a int, b int not null, c int not null default 1, unique n (a), unique l (c, b), unique e (b, c)",
    "after_year": "y year, b int, c bigint unsigned, d year, e smallint",
}


def _connect(address: MySqlAddress) -> Any:
    password = SecretStr(address.password)
    return connect(MySqlSettings(hostname=address.host, port=address.port, user=address.user, password=password))


@pytest.fixture
def session(mysql_address: MySqlAddress) -> Iterator[Any]:
    with closing(_connect(mysql_address)) as connection:
        yield connection


def _execute(session: Any, sql: str) -> None:
    with session.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.named_rows("it compares the names that table maps tell")
@pytest.mark.parametrize("name", list(_TABLES))
def test_the_shape_is_the_one_of_the_table_map_event(
    session: Any, mysql_address: MySqlAddress, database: str, name: str
) -> None:
    table = TableId(database, name)
    _execute(session, f"CREATE TABLE {table.sql} ({_TABLES[name]}) CHARACTER SET utf8mb4")
    start = watermarks.high_watermark(session)
    column = (
        "b" if name in ("numbers", "texts", "keyless", "promoted", "after_year") else "c" if name == "bytes" else "id"
    )
    _execute(session, f"INSERT INTO {table.sql} ({column}) VALUES (1)")
    charsets = catalog.charsets(session)
    with closing(_connect(mysql_address)) as replica:
        maps = [event.body for event in events_since(replica, start) if event.kind == _TABLE_MAP]
    shapes = [parse_table_map(body, charsets).shape for body in maps]
    (mapped,) = [shape for shape in shapes if shape.id == table]
    known = catalog.shape_of(session, table)
    assert known is not None
    for seen, read in zip(mapped.columns, known.columns, strict=True):
        assert seen == read
    assert mapped == known


def test_a_decimal_that_a_long_number_made_has_the_precision_of_its_type(session: Any, database: str) -> None:
    """NUMERIC_PRECISION tells 81."""
    _execute(session, f"CREATE TABLE `{database}`.t AS SELECT {'9' * 81} AS n, 1.50 AS m")
    shape = catalog.shape_of(session, TableId(database, "t"))
    assert shape is not None
    assert [(column.precision, column.scale) for column in shape.columns] == [(65, 0), (3, 2)]


def test_a_table_that_does_not_exist_has_no_shape(session: Any, database: str) -> None:
    assert catalog.shape_of(session, TableId(database, "nowhere")) is None


def test_a_generated_invisible_primary_key_is_seen(session: Any, database: str) -> None:
    _execute(session, "SET SESSION sql_generate_invisible_primary_key = 1")
    _execute(session, f"CREATE TABLE `{database}`.t (a int)")
    shape = catalog.shape_of(session, TableId(database, "t"))
    assert shape is not None
    assert [shape.columns[index].name for index in shape.key] == ["my_row_id"]


def test_tables_are_those_the_filter_takes_without_views(session: Any, database: str) -> None:
    _execute(session, f"CREATE TABLE `{database}`.one (a int)")
    _execute(session, f"CREATE TABLE `{database}`.two (a int)")
    _execute(session, f"CREATE VIEW `{database}`.seen AS SELECT * FROM `{database}`.one")
    both = TableFilter(database_include=(database,))
    assert catalog.tables(session, both) == [TableId(database, "one"), TableId(database, "two")]
    assert catalog.tables(session, TableFilter(table_include=(rf"{database}\.t.*",))) == [TableId(database, "two")]


def test_a_session_depends_on_no_default_of_the_server(session: Any) -> None:
    (row,) = named(session, "SELECT @@time_zone z, @@sql_mode m, @@autocommit a, @@character_set_results c")
    assert row == {"z": "+00:00", "m": "ALLOW_INVALID_DATES", "a": 1, "c": "utf8mb4"}
