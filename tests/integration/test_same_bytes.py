"""I9: a row read by SELECT and the same row read from the binlog give equal key and value bytes, for every type.

The chunk's way is the catalog's shape, the text protocol and from_text; the stream's way is the table map's shape, row
images and their decoding. Only the bytes at the end are compared, under every mode.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.json_rows import json_objects
from incsnap.envelope.table_view import ViewField, view_of
from incsnap.errors import IncsnapError
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.tables import TableId, TableShape
from incsnap.types.modes import Modes
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.all_modes import ALL_MODES
from tests.support.binlog_dump import charsets_of, events_since, table_events
from tests.support.mysql_versions import end_of_binlog
from tests.support.random_values import CASES, GEOMETRIES
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.servers, pytest.mark.named_rows("it decodes table maps without a job")]

_ROWS = 120
#: Types that a primary key may hold as a whole.
KEYABLE = [
    name
    for name, case in CASES.items()
    if not any(word in case.sql for word in ("text", "blob", "json", "(600)", "(300)", "(255)", "vector", *GEOMETRIES))
]


def session(address: MySqlAddress, sql_mode: str = "") -> Any:
    return connect(address, init_command=f"SET SESSION time_zone = '+00:00', sql_mode = '{sql_mode}'")


class Both:
    """A table, and its rows by either way."""

    def __init__(self, address: MySqlAddress, database: str) -> None:
        self.address, self.table = address, TableId(database, "t")
        self.connection = session(address)
        self.connection.select_db(database)
        self.begin = end_of_binlog(self.connection)

    def run(self, sql: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        with self.connection.cursor() as cursor:
            if rows is None:
                cursor.execute(sql)
            for row in rows or []:
                cursor.execute(sql, row)

    def by_select(self, order: str) -> tuple[TableShape, list[Any]]:
        shape = shape_of(self.connection, self.table)
        assert shape is not None
        tail = f"FROM {self.table.sql} ORDER BY {order}"
        return shape, read_chunk(self.connection, shape, tail, max_bytes=1 << 28, timeout_seconds=PATIENCE_SECONDS)

    def by_binlog(self) -> tuple[TableShape, list[Any]]:
        """The columns of the inserted rows, in their order."""
        charsets = charsets_of(self.connection)
        with closing(session(self.address)) as dump:
            events = table_events(events_since(dump, self.begin), self.table, charsets)
        return events.table_map.shape, events.decode().columns

    def compare(self, order: str) -> None:
        selected, chunk = self.by_select(order)
        mapped, images = self.by_binlog()
        assert [c.name for c in selected.columns] == [c.name for c in mapped.columns]
        assert selected.key == mapped.key
        for column, left, right in zip(selected.columns, chunk, images, strict=True):
            assert left.type == right.type, column
            assert left.equals(right), (column, unequal(left, right))
        for modes in ALL_MODES:
            for left, right in zip(fields(selected), fields(mapped), strict=True):
                assert left.schema(modes) == right.schema(modes)
                assert written(left, chunk, modes) == written(right, images, modes)
        for key in (False, True):
            assert row_bytes(selected, chunk, key=key) == row_bytes(mapped, images, key=key)


def fields(shape: TableShape) -> tuple[ViewField, ...]:
    return view_of(shape, ColumnRules()).fields


def written(field: ViewField, columns: list[Any], modes: Modes) -> Any:
    """JSON text and Connect values, or why there are none: a TIME that no clock shows, in a NOT NULL column."""
    try:
        return field.encode(columns, modes).complete(), field.connect(columns, modes)
    except IncsnapError as error:
        assert not field.column.nullable
        return error.message


def row_bytes(shape: TableShape, columns: list[Any], *, key: bool = False) -> Any:
    view = view_of(shape, ColumnRules())
    chosen = view.key if key else view.fields
    return json_objects(chosen, columns, Modes()).to_pylist()


def unequal(left: Any, right: Any) -> list[Any]:
    assert len(left) == len(right)
    return [(a, b) for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True) if a != b][:3]


@pytest.fixture
def both(mysql_address: MySqlAddress, database: str) -> Iterator[Both]:
    opened = Both(mysql_address, database)
    yield opened
    opened.connection.close()


def insert(both: Both, names: list[str], rows: list[tuple[Any, ...]]) -> None:
    both.run(f"INSERT INTO t VALUES ({', '.join(['%s'] * (len(names) + 1))})", rows)


@pytest.mark.parametrize("part", range(6))
def test_random_rows_of_every_type_are_the_same(both: Both, part: int) -> None:
    names = [name for index, name in enumerate(CASES) if index % 6 == part]
    both.run(f"CREATE TABLE t (id INT PRIMARY KEY, {', '.join(f'`{n}` {CASES[n].sql}' for n in names)})")
    source = random.Random(f"same-{part}")
    rows = [
        (number, *(None if source.random() < 0.2 else CASES[name].value(source) for name in names))
        for number in range(_ROWS)
    ]
    insert(both, names, rows)
    both.compare("id")


@pytest.mark.parametrize("part", range(8))
def test_random_keys_of_every_type_are_the_same(both: Both, part: int) -> None:
    names = [name for index, name in enumerate(KEYABLE) if index % 8 == part]
    columns = ", ".join(f"`{n}` {CASES[n].sql.removesuffix(' null')} NOT NULL" for n in names)
    # The key's order is not the columns' order.
    key = ", ".join(f"`{n}`" for n in [*reversed(names[:15]), "id"])
    both.run(f"CREATE TABLE t (id INT, {columns}, PRIMARY KEY ({key}))")
    source = random.Random(f"key-{part}")
    insert(both, names, [(i, *(CASES[name].value(source) for name in names)) for i in range(_ROWS)])
    both.compare("id")


def test_the_odd_corners_are_the_same(both: Both) -> None:
    values = {
        "f0 FLOAT": ["-0e0", "1e-45", "3.4028235e38", "0.1", "16777217"],
        "f1 FLOAT(10,2)": ["0.1", "-0e0", "12345678.9", "99999999.99", "1.005"],
        "f2 FLOAT UNSIGNED": ["0.3", "1e10", "0", "7", "1.17549e-38"],
        "d0 DOUBLE": ["-0e0", "5e-324", "1.7976931348623157e308", "0.1", "123456789012345678"],
        "d1 DOUBLE(20,3)": ["0.1", "12345678901234.567", "-0.0004", "1e15", "99999999999999999"],
        "z INT(9) ZEROFILL": ["0", "42", "4294967295", "7", "1"],
        "m DECIMAL(7,3) ZEROFILL": ["0", "1.5", "9999.999", "0.001", "42"],
        "b BINARY(5)": ["''", "x'00'", "x'2020'", "'abcde'", "x'ffffffffff'"],
        "c CHAR(6)": ["''", "'  a  '", "'é€😀'", "'\\t'", "'a'"],
        "e ENUM('','x') NOT NULL": ["0", "1", "2", "'x'", "''"],
        "dn DATE NOT NULL": ["'0000-00-00'", "'2024-00-01'", "'2024-02-31'", "'0001-01-01'", "'9999-12-31'"],
        "tn DATETIME(3) NOT NULL": ["0", "'2024-05-00 01:02:03'", "'0000-01-01'", "'1969-12-31 23:59:59.999'",
        "'9999-12-31'"], "dm DATETIME(5) NOT NULL": ["0", "'2024-05-00 01:02:03'", "'0000-01-01'",
        "'1969-12-31 23:59:59.999'", "'9999-12-31'"], "sn TIMESTAMP(4) NOT NULL": ["0", "'1970-01-01 00:00:01'",
        "'2038-01-19 03:14:07.9999'", "'2000-01-01'", "0"], "s0 TIMESTAMP NULL": ["0", "NULL",
        "'2038-01-19 03:14:07'", "'2000-01-01'", "0"], "t TIME(6)": ["'-838:59:59'", "'838:59:59'",
        "'-00:00:00.000001'", "'100:00:00'", "'-99:59:59.999999'"], "y YEAR": ["0", "1901", "2155", "NULL", "2024"],
        "j JSON": ["'null'", "NULL", """'{"b":1, "aa":[1.0, -0.0, 1e300, "\\\\u0001\\\\n é"]}'""", "'\" , : \"'",
                   "JSON_ARRAY(1.50, NOW(6), TIME'-01:02:03', x'00ff', CAST(18446744073709551615 AS UNSIGNED))"],
        "lb VARCHAR(9) CHARACTER SET latin1": ["'€é'", "x'818d'", "''", "NULL", "'ÿ'"],
        "b1 BIT NOT NULL": ["b'0'", "b'1'", "1", "0", "b'1'"], "b9 BIT(9)": ["511", "256", "1", "NULL", "b'0'"],
        "b64 BIT(64)": ["~0", "1 << 63", "1", "NULL", "0"],
        "s2 SET('x','','y')": ["7", "2", "3", "6", "NULL"],
        "se SET('','x','y') NOT NULL": ["''", "'x,y'", "'y,x'", "1", "7"],
        "p POINT": ["POINT(1, 2)", "ST_SRID(POINT(-1.5, 2.5), 4326)", "NULL", "POINT(0, -0e0)", "POINT(1e-5, 1e7)"],
        "gm GEOMETRY": ["POINT(1, 2)", "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')", "NULL",
                        "ST_GeomFromText('LINESTRING(0 0, 1 1)', 3857)", "ST_GeomFromText('MULTIPOINT(0 0, 1 1)')"],
        "ve VECTOR(3)": ["STRING_TO_VECTOR('[1,2,3]')", "NULL", "x'00000080'", "STRING_TO_VECTOR('[1e-5,3e38]')",
                         "STRING_TO_VECTOR('[0.1]')"],
        "zf FLOAT(7,2) ZEROFILL": ["1.5", "NULL", "0", "12345.67", "0.01"],
        "gbk CHAR(3) CHARACTER SET gbk": ["'中'", "x'A140'", "''", "NULL", "'a '"],
    }  # fmt: skip
    both.run("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
    both.run(f"CREATE TABLE t (id INT PRIMARY KEY, {', '.join(values)})")
    for row in range(5):
        both.run(f"INSERT INTO t VALUES ({row}, {', '.join(literals[row] for literals in values.values())})")
    both.compare("id")


def test_a_literal_beyond_the_basic_plane_is_whole_in_values_and_one_schema_in_both(both: Both) -> None:
    """information_schema shows a question mark for such a literal."""
    both.run("CREATE TABLE t (id INT PRIMARY KEY, e ENUM('😀','b'), s SET('😀','b'))")
    both.run("INSERT INTO t VALUES (1, '😀', '😀,b'), (2, 'b', ''), (3, NULL, NULL)")
    both.compare("id")
    assert [column.to_pylist() for column in both.by_select("id")[1][1:]] == [["😀", "b", None], ["😀,b", "", None]]


def test_halves_of_surrogate_pairs_in_ucs2_are_the_same_text(both: Both) -> None:
    both.run("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(9) CHARACTER SET ucs2 NOT NULL, d TEXT CHARACTER SET ucs2)")
    for number, code in enumerate(["0061D83D0062", "0061DC000062", "D83DDE00", "D83D", "0061"]):
        both.run(f"INSERT INTO t VALUES ({number}, UNHEX('{code}'), UNHEX('{code}'))")
    both.compare("id")
    texts = ["a\ufffdb", "a\ufffdb", "😀", "\ufffd", "a"]
    assert [column.to_pylist() for column in both.by_select("id")[1][1:]] == [texts, texts]


def test_a_literal_that_is_no_text_is_empty_in_either_way_and_the_rows_go_on(both: Both) -> None:
    both.run(
        "CREATE TABLE t (id INT PRIMARY KEY, e ENUM(0xFF41, 'b') CHARACTER SET binary, f ENUM(0xFFFF, 'a'),"
        " s SET(0xFFFF, 'a', 'c'), u ENUM(0xD83D, 'a') CHARACTER SET ucs2, j ENUM(0x81, 'a') CHARACTER SET cp932)"
    )
    both.run("INSERT INTO t VALUES (1, 1, 1, 1, 1, 1), (2, 2, 2, 7, 2, 2), (3, NULL, NULL, 3, NULL, NULL)")
    both.compare("id")
    assert [column.to_pylist() for column in both.by_select("id")[1][1:]] == [
        ["", "b", None], ["", "a", None], ["", "a,c", "a"], ["", "a", None], ["", "a", None],
    ]  # fmt: skip


def test_made_and_hidden_columns_are_the_same(both: Both) -> None:
    both.run(
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON, v INT GENERATED ALWAYS AS (id * 2) VIRTUAL,"
        " hidden BIT(3) INVISIBLE,"
        " s VARCHAR(9) CHARACTER SET gbk GENERATED ALWAYS AS (CONCAT('中', id)) STORED,"
        " KEY ((CAST(j -> '$.a' AS UNSIGNED ARRAY))), KEY ((id + 1)), KEY ((CAST(LOWER(j ->> '$.b') AS CHAR(9)))))"
    )
    both.run('INSERT INTO t (id, j, hidden) VALUES (1, \'{"a": [1, 2], "b": "X"}\', 5), (2, NULL, NULL)')
    both.compare("id")


def test_a_timestamp_is_the_same_moment_whatever_the_writers_time_zone_is(both: Both) -> None:
    both.run("CREATE TABLE t (id INT PRIMARY KEY, s TIMESTAMP(3) NULL)")
    both.run("SET SESSION time_zone = '+05:30'")
    both.run("INSERT INTO t VALUES (1, '2024-01-01 05:30:00.5')")
    both.run("SET SESSION time_zone = '-08:00'")
    both.run("INSERT INTO t VALUES (2, '2023-12-31 16:00:00.5')")
    both.run("SET SESSION time_zone = '+00:00'")
    both.compare("id")
    assert (
        fields(both.by_select("id")[0])[1].encode(both.by_binlog()[1], Modes()).text.to_pylist()
        == [
            "2024-01-01T00:00:00.500Z",
        ]
        * 2
    )


def test_an_update_of_a_snapshot_row_has_the_same_before(both: Both) -> None:
    both.run("CREATE TABLE t (id INT PRIMARY KEY, f FLOAT, j JSON, s TIMESTAMP(3) NULL)")
    both.run("INSERT INTO t VALUES (1, 0.1, '{\"a\": 1.10}', '2024-01-01 00:00:00.5')")
    selected, chunk = both.by_select("id")
    both.begin = end_of_binlog(both.connection)
    both.run("UPDATE t SET f = f + 1")
    mapped, images = both.by_binlog()
    before = [column.take(pa.array([0])) for column in images]
    assert row_bytes(selected, chunk) == row_bytes(mapped, before)
