"""Partial JSON updates of a real server: the after image is what a SELECT gives of the document, blanks aside."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from incsnap.binlog.protocol.row_images import PARTIAL_UPDATE, UPDATE, decode_rows
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.binlog_dump import TableEvents, charsets_of, events_since, table_events
from tests.support.mysql_versions import end_of_binlog

pytestmark = pytest.mark.servers

#: A long value. It makes the document longer than a difference: otherwise the server writes the whole document.
_PAD = json.dumps(["x" * 90] * 4)


class Server:
    def __init__(self, address: MySqlAddress, database: str) -> None:
        self.address, self.database = address, database
        self.connection = self._connect()
        self.connection.select_db(database)
        self.charsets = charsets_of(self.connection)

    def _connect(self) -> Any:
        return connect(self.address)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def events(self, begin: tuple[str, int]) -> TableEvents:
        with closing(self._connect()) as dump:
            return table_events(events_since(dump, begin), TableId(self.database, "t"), self.charsets)


@pytest.fixture
def server(mysql_address: MySqlAddress, database: str) -> Iterator[Server]:
    server = Server(mysql_address, database)
    server.run("SET SESSION binlog_row_value_options = PARTIAL_JSON")
    yield server
    server.connection.close()


def compact(text: str | None) -> str | None:
    """The server's text without the blanks between tokens."""
    return None if text is None else re.sub(r'("(?:[^"\\]|\\.)*")|\s+', r"\1", text)


@pytest.mark.parametrize(
    ("document", "change"),
    [
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', 2)"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', 'text', '$.p[1]', NULL)"),
        ('{"a": 1, "p": PAD}', "json_remove(j, '$.a')"),
        ('{"a": [1, 2, 3], "p": PAD}', "json_remove(j, '$.a[1]', '$.a[0]')"),
        ('{"a": [1, 2, 3], "p": PAD}', "json_set(j, '$.a[7]', 4)"),
        ('{"a": [1, 2, 3], "p": PAD}', "json_set(j, '$.a[last]', 9)"),
        ('{"a": [1, 2, 3], "p": PAD}', "json_replace(j, '$.a[last-1]', 'zz')"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a[0]', 5)"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a[3]', 5)"),
        ('{"bb": 1, "p": PAD}', "json_set(j, '$.a', 1, '$.ccc', 2, '$.\\u00e4', 3, '$.bc', 4, '$.ba', 5)"),
        ('{"a": 1, "p": PAD}', 'json_set(j, \'$."a b.c"\', 2, \'$."q\\\\"x"\', 3)'),
        ('{"a": {"b": {"c": 1}}, "p": PAD}', "json_set(j, '$.a.b.c', json_object('n', json_array(1, 2, 3)))"),
        ('{"a": {"b": {"c": 1}}, "p": PAD}', "json_set(j, '$.a.b.d', json_object('n', json_array(1, json_array())))"),
        ('["x", "y", PAD]', "json_set(j, '$[0]', '2', '$[1]', NULL)"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', CAST('12.50' AS decimal(9, 2)))"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', CAST('2024-02-29 12:13:14.5' AS datetime(6)))"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', true, '$.b', false)"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', 18446744073709551615)"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', REPEAT('long ', 70))"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.a', 1)"),
        ('{"a": 1, "p": PAD}', "json_set(j, '$.none.x', 1)"),
    ],
)
def test_a_document_changed_in_part_is_what_a_select_gives(server: Server, document: str, change: str) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, j json, n int)")
    server.run(f"INSERT INTO t VALUES (1, '{document.replace('PAD', _PAD)}', 0)")
    [before] = server.run("SELECT id, j, n FROM t")
    begin = end_of_binlog(server.connection)
    server.run(f"UPDATE t SET j = {change}, n = n + 1")
    [after] = server.run("SELECT id, j, n FROM t")
    events = server.events(begin)
    images = events.decode()
    assert events.kinds.tolist() == [PARTIAL_UPDATE]
    assert images.kinds.tolist() == [UPDATE[1]]
    assert images.columns[1].to_pylist() == [compact(before[1]), compact(after[1])]
    assert images.columns[2].to_pylist() == [0, 1]


def test_events_of_all_kinds_keep_their_order(server: Server) -> None:
    """Random changes of rows with two JSON columns, NULLs among them, and blobs between."""
    server.run("CREATE TABLE t (id int PRIMARY KEY, a json, b blob, c json, v varchar(20))")
    source = random.Random(4)
    begin = end_of_binlog(server.connection)
    expected: list[tuple[Any, ...]] = []

    def rows(where: str) -> list[tuple[Any, ...]]:
        selected = server.run(f"SELECT id, a, b, c, v FROM t WHERE {where} ORDER BY id")
        return [(i, compact(a), b, compact(c), v) for i, a, b, c, v in selected]

    for number in range(40):
        document = json.dumps({"k": number, "list": list(range(number % 7)), "pad": "p" * 200})
        c = "NULL" if number % 3 == 0 else f"'{document}'"
        server.run(f"INSERT INTO t VALUES ({number}, '{document}', REPEAT('b', {number}), {c}, 'v{number}')")
        expected += rows(f"id = {number}")
        where = f"id BETWEEN {source.randrange(number + 1)} AND {number}"
        before = rows(where)
        change = source.choice(
            [
                "a = json_set(a, '$.k', v, '$.new', b IS NULL)",
                "a = json_set(a, '$.list[0]', 'first'), c = json_remove(c, '$.k')",
                "c = json_set(c, '$.list[1].x', 3), a = NULLIF(a, a)"
                if number % 5 == 4
                else "c = json_set(c, '$.z', id)",
                "v = CONCAT('w', id)",
                "b = NULL, a = json_replace(a, '$.pad', json_array(v, v))",
            ]
        )
        server.run(f"UPDATE t SET {change} WHERE {where} ORDER BY id")
        for old, new in zip(before, rows(where), strict=True):
            if old != new:
                expected += [old, new]
    events = server.events(begin)
    images = events.decode()
    assert (events.kinds == PARTIAL_UPDATE).sum() > 10
    decoded = list(zip(*(column.to_pylist() for column in images.columns), strict=True))
    assert decoded == expected


def test_columns_that_are_not_needed_are_left_out(server: Server) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, j json)")
    server.run(f"""INSERT INTO t VALUES (1, '{{"a": 1, "p": {_PAD}}}')""")
    begin = end_of_binlog(server.connection)
    server.run("UPDATE t SET j = json_set(j, '$.a', 2)")
    events = server.events(begin)
    images = decode_rows(events.payload, events.starts, events.ends, events.kinds, events.table_map, frozenset({0}))
    assert images.columns[1] is None
    assert images.columns[0].to_pylist() == [1, 1]
