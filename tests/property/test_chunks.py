"""A test of I2: chunks cover every row exactly once, for any key and any chunk size.

SQLite runs the SQL that would go to MySQL, without clauses that only MySQL has, such as FORCE INDEX.
`tests/integration/test_chunk_queries.py` runs the SQL on MySQL, with every key type and collation.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.snapshot.chunk_query import above, between, chunk_tail, maximum_key, next_boundary
from incsnap.snapshot.keys import Key
from incsnap.snapshot.window import Chunk
from incsnap.tables import Column, TableId

TABLE = TableId("main", "t")
COLUMNS = [Column("a", "int"), Column("b", "varchar", charset="utf8mb4"), Column("c", "varbinary", charset="binary")]
DEFINITIONS = ("a INTEGER NOT NULL", "b TEXT NOT NULL", "c BLOB NOT NULL")

values = st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "A", "'", "ß", "b"]), st.binary(max_size=2))
rows = st.sets(values, max_size=40)


def on_sqlite(sql: str) -> str:
    sql = re.sub(r" FORCE INDEX \(`\w+`\)", "", sql)
    # In SQLite, HEX(NULL) is ''.
    sql = re.sub(r"HEX\((`\w+`)\)", r"CASE WHEN \1 IS NOT NULL THEN HEX(\1) END", sql)
    return re.sub(r"_utf8mb4 x'(\w*)'", r"CAST(x'\1' AS TEXT)", sql)


directions = st.sets(st.sampled_from(["a", "b", "c"])).map(lambda names: tuple(sorted(names)))


def in_order(keys: Iterable[tuple[Any, ...]], columns: Sequence[Column], descending: Sequence[str]) -> list[Any]:
    """Return the rows in the order of the key. The last column is sorted first, because sorts are stable."""
    in_order = list(keys)
    for place, column in reversed(list(enumerate(columns))):
        in_order.sort(key=lambda key, place=place: key[place], reverse=column.name in descending)  # type: ignore[misc]
    return in_order


@given(rows=rows, width=st.integers(1, 3), size=st.integers(1, 50), kept=st.integers(-4, 4), descending=directions)
def test_chunks_cover_every_row_exactly_once(
    rows: set[tuple[int, str, bytes]], width: int, size: int, kept: int, descending: tuple[str, ...]
) -> None:
    columns = COLUMNS[:width]
    keys = in_order({tuple(row[:width]) for row in rows}, columns, descending)
    names = tuple(column.name for column in columns)
    plain = ", ".join(names)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(DEFINITIONS[:width])}, PRIMARY KEY ({plain}))")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * width)})", keys)

        def ask(sql: str) -> list[Key]:
            return [tuple(row) for row in connection.execute(on_sqlite(sql))]

        covered: list[object] = []
        lower: Key | None = None
        for maximum in ask(maximum_key(TABLE, columns, descending=descending)):
            while lower != maximum:
                sql = next_boundary(TABLE, columns, lower, maximum, size, descending=descending)
                upper = (ask(sql) or [maximum])[0]
                chunk = Chunk(TABLE, names, lower, upper, f"a > {kept}", descending=descending)
                part = connection.execute(on_sqlite(f"SELECT {plain} {chunk_tail(chunk, columns)}")).fetchall()
                assert len(part) <= size
                covered += part
                lower = upper

    assert covered == [key for key in keys if int(key[0]) > kept]


sharing = st.tuples(
    st.none() | st.integers(-1, 1), st.none() | st.sampled_from(["", "a"]), st.none() | st.binary(max_size=1)
)


@given(rows=st.lists(sharing, max_size=30), width=st.integers(1, 3), size=st.integers(1, 12), descending=directions)
def test_chunks_of_a_key_with_nulls_and_equal_rows_cover_every_row_once(
    rows: list[tuple[int | None, str | None, bytes | None]], width: int, size: int, descending: tuple[str, ...]
) -> None:
    keys = [row[:width] for row in rows]
    columns = COLUMNS[:width]
    names = tuple(column.name for column in columns)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(text.split(' NOT')[0] for text in DEFINITIONS[:width])})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * width)})", keys)

        def ask(sql: str) -> list[Key]:
            return [tuple(row) for row in connection.execute(on_sqlite(sql))]

        covered: list[object] = []
        lower: Key | None = None
        for maximum in ask(maximum_key(TABLE, columns, index="", descending=descending)):
            while lower != maximum:
                sql = next_boundary(TABLE, columns, lower, maximum, size, index="", descending=descending)
                upper = (ask(sql) or [maximum])[0]
                chunk = Chunk(TABLE, names, lower, upper, index="", descending=descending)
                part = ask(f"SELECT {', '.join(names)} {chunk_tail(chunk, columns)}")
                rest = ask(f"SELECT {', '.join(names)} FROM t WHERE {above(columns, upper, descending)}")
                covered += part
                assert len(covered) + len(rest) == len(rows)
                lower = upper
        order = ", ".join(f"{name} DESC" if name in descending else name for name in names)
        expected = ask(f"SELECT {', '.join(names)} FROM t ORDER BY {order}")

    assert covered == expected
    assert len(covered) == len(rows)


@given(
    lower=st.none() | st.tuples(*[st.integers(0, 3)] * 3),
    upper=st.tuples(*[st.integers(0, 3)] * 3),
    width=st.integers(1, 3),
    descending=directions,
)
def test_a_range_is_what_comparing_whole_keys_gives(
    lower: tuple[int, ...] | None, upper: tuple[int, ...], width: int, descending: tuple[str, ...]
) -> None:
    names = ("a", "b", "c")[:width]
    columns = [Column(name, "int") for name in names]
    where = between(columns, text(lower, width), text(upper, width) or (), descending)
    every = [(x, y, z) for x in range(4) for y in range(4) for z in range(4)]

    def turned(key: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-value if name in descending else value for name, value in zip(names, key, strict=False))

    expected = [key for key in every if (lower is None or turned(lower) < turned(key)) and turned(key) <= turned(upper)]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", every)

        assert connection.execute(f"SELECT * FROM t WHERE {where} ORDER BY a, b, c").fetchall() == expected


def text(key: Sequence[int] | None, width: int) -> Key | None:
    return None if key is None else tuple(map(str, key[:width]))


@pytest.mark.parametrize("size", [1, 3])
def test_a_row_that_appears_between_two_chunks_is_covered_by_the_second(size: int) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), (5,), (9,)])
        sql = next_boundary(TABLE, COLUMNS[:1], ("1",), ("9",), size)
        connection.execute("INSERT INTO t VALUES (3)")

        boundary = connection.execute(on_sqlite(sql)).fetchall()

    assert boundary == [({1: "3", 3: "9"}[size],)]
