"""The SQL of chunks on a real server: every row once whatever the key, in as many index steps as rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pymysql
import pytest

from incsnap.envelope.column_rules import ColumnRules
from incsnap.gtid import GtidSet
from incsnap.mysql import session
from incsnap.planner.answers import Answers
from incsnap.snapshot.chunk_query import chunk_tail, condition_probe, listed_tail, maximum_key, next_boundary
from incsnap.snapshot.keys import Key
from incsnap.snapshot.planning import MAX_LISTED
from incsnap.snapshot.questions import Describe, KeyOrder
from incsnap.snapshot.window import Chunk
from incsnap.tables import Column, TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect

pytestmark = pytest.mark.servers

Connection = Any

WORDS = (
    "",
    "a",
    "A",
    "ä",
    "Ä",
    "ae",
    "b",
    "B ",
    "b_",
    "z",
    "ß",
    "ss",
    "SS",
    "'",
    '"',
    "\\",
    "%",
    "日本",
    "😀",
    "\n",
    "0",
)
KEYS: dict[str, tuple[str, Column, list[object]]] = {
    "int": ("INT", Column("k", "int"), [-(2**31), -5, -1, 0, 1, 7, 2**31 - 1]),
    "unsigned bigint": (
        "BIGINT UNSIGNED",
        Column("k", "bigint", unsigned=True),
        [0, 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1],
    ),
    "decimal": (
        "DECIMAL(38,10)",
        Column("k", "decimal", precision=38, scale=10),
        [
            "-1.5",
            "0",
            "0.0000000001",
            "0.1",
            "12345678901234567890.1",
            "12345678901234567890.2",
            "99999999999999999999",
        ],
    ),
    "float": ("FLOAT", Column("k", "float"), [-1.5, 0, 0.1, 0.10000001, 1.1, 16777216, 1e-30, 3.4e38, 123456.789]),
    "double": ("DOUBLE", Column("k", "double"), [-1e300, 0, 0.1, 0.1 + 2**-54, 0.30000000000000004, 0.3, 1e-300, 1e17]),
    "year": ("YEAR", Column("k", "year"), [0, 1901, 1970, 2000, 2069, 2155]),
    "accent-blind text": (
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
        Column("k", "varchar", charset="utf8mb4"),
        ["", "a", "ae", "b", "b_", "z", "'", '"', "\\", "%", "日本", "😀", "\n", "0", "Ö"],
    ),
    "binary text": (
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        Column("k", "varchar", charset="utf8mb4"),
        [word for word in WORDS if not word.endswith(" ")],
    ),
    "padded text": (
        "CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        Column("k", "char", charset="utf8mb4"),
        ["", "a", "b", "b_", "z", "ß", "ss", "'", '"', "\\", "%", "日本", "0"],
    ),
    "latin1": (
        "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci",
        Column("k", "varchar", charset="latin1"),
        ["", "a", "b", "z", "ß", "é", "€", "'", "\\"],
    ),
    "varbinary": (
        "VARBINARY(20)",
        Column("k", "varbinary", charset="binary"),
        [b"", b"\0", b"\0\0", b"'", b"\\", b"a", b"A", b"a ", b"\xff", b"\xff\0"],
    ),
    "binary": ("BINARY(3)", Column("k", "binary", length=3), [b"", b"\0\x01", b"a", b"ab", b"abc", b"\xff"]),
    "enum": (
        "ENUM('z','a','10','2','')",
        Column("k", "enum", values=("z", "a", "10", "2", "")),
        ["z", "a", "10", "2", ""],
    ),
    "set": (
        "SET('z','a','10','')",
        Column("k", "set", charset="utf8mb4", values=("z", "a", "10", "")),
        ["", "z", "a", "z,a", "10", "z,a,10", 8, 15],
    ),
    "bit": ("BIT(64)", Column("k", "bit", length=64), [0, 1, 255, 256, 1 << 63, (1 << 64) - 1]),
    "gbk": (
        "VARCHAR(20) CHARACTER SET gbk",
        Column("k", "varchar", charset="gbk"),
        ["", "a", "中", "中文", "b", b"\xa1\x40", b"\xa1\x41", "'", "\\"],
    ),
    "utf16": (
        "CHAR(9) CHARACTER SET utf16",
        Column("k", "char", charset="utf16"),
        ["", "a", "é", "中", "'", "\\", "b"],
    ),
    "sjis": (
        "VARCHAR(9) CHARACTER SET sjis COLLATE sjis_bin",
        Column("k", "varchar", charset="sjis"),
        ["", "a", "A", "ソ", "表", "ｱ", "\\", "'"],
    ),
    "swe7": ("VARCHAR(9) CHARACTER SET swe7", Column("k", "varchar", charset="swe7"), ["", "a", "Ä", "é", "z", "Z1"]),
    "date": ("DATE", Column("k", "date"), ["0000-00-00", "1000-01-01", "1969-12-31", "1970-01-01", "9999-12-31"]),
    "invalid date": (
        "DATE",
        Column("k", "date"),
        ["0000-00-00", "2023-02-29", "2024-00-10", "2024-02-00", "2024-02-29", "2024-02-30", "2026-11-31"],
    ),
    "time": (
        "TIME(6)",
        Column("k", "time", fraction=6),
        ["-838:59:59", "-00:00:00.000001", "00:00:00", "00:00:00.5", "12:00:00", "838:59:59"],
    ),
    "datetime": (
        "DATETIME(6)",
        Column("k", "datetime", fraction=6),
        ["0000-00-00", "1000-01-01", "1999-12-31 23:59:59.999999", "2000-01-01", "9999-12-31 23:59:59.999999"],
    ),
    "invalid datetime": (
        "DATETIME",
        Column("k", "datetime"),
        ["2023-02-29 01:02:03", "2024-00-10", "2024-02-29", "2024-02-30 23:59:59", "2026-11-31"],
    ),
    "timestamp": (
        "TIMESTAMP(3)",
        Column("k", "timestamp", fraction=3),
        ["1970-01-01 00:00:01", "2024-03-31 01:59:59.999", "2024-03-31 02:30:00", "2024-10-27 02:30:00", "2038-01-19"],
    ),
}


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Connection]:
    with closing(connect(mysql_address, database=database, init_command=session._SESSION)) as opened:
        yield opened


def query(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def walk(
    connection: Connection,
    table: TableId,
    columns: list[Column],
    rows: int,
    index: str = "PRIMARY",
    descending: tuple[str, ...] = (),
) -> list[Any]:
    """Ids of all rows in the order in which chunks bring them."""
    names = tuple(column.name for column in columns)
    ids: list[Any] = []
    largest = query(connection, maximum_key(table, columns, index=index, descending=descending))
    if not largest:
        return ids
    maximum, lower = largest[0], None
    while lower != maximum:
        sql = next_boundary(table, columns, lower, maximum, rows, index=index, descending=descending)
        boundary = query(connection, sql)
        upper: Key = boundary[0] if boundary else maximum
        assert all(value is None or isinstance(value, str) for value in upper)
        chunk = Chunk(table, names, lower, upper, index=index, descending=descending)
        ids += [row[0] for row in query(connection, f"SELECT id {chunk_tail(chunk, columns)}")]
        lower = upper
    return ids


@pytest.mark.parametrize("kind", KEYS)
def test_chunks_cover_every_row_once_in_the_servers_own_order(connection: Connection, database: str, kind: str) -> None:
    sql_type, column, values = KEYS[kind]
    table = TableId(database, "t")
    query(connection, f"CREATE TABLE t (id INT, k {sql_type} PRIMARY KEY)")
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(values)))
        cursor.execute(session._SESSION)

    ordered = [row[0] for row in query(connection, "SELECT id FROM t ORDER BY k")]

    assert len(ordered) == len(values)
    for rows in (1, 2, 3, 100):
        assert walk(connection, table, [column], rows) == ordered


def in_directions(names: Iterable[str], descending: tuple[str, ...]) -> str:
    return ", ".join(f"{name} DESC" if name in descending else name for name in names)


@pytest.mark.parametrize("seed", range(12))
def test_composite_keys_of_several_types_and_directions_are_covered_once(
    connection: Connection, database: str, seed: int
) -> None:
    rng = random.Random(seed)
    names = rng.sample(list(KEYS), 1 + seed % 3)
    columns = [replace(KEYS[n][1], name=f"k{i}", nullable=False) for i, n in enumerate(names)]
    descending = tuple(each.name for each in columns if seed > 2 and rng.random() < 0.5)
    key = in_directions([each.name for each in columns], descending)
    definitions = ", ".join(f"k{i} {KEYS[n][0]}" for i, n in enumerate(names))
    query(connection, f"CREATE TABLE t (id INT, {definitions}, PRIMARY KEY ({key}))")
    keys = {tuple(rng.randrange(len(KEYS[n][2])) for n in names) for _ in range(60)}
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO t VALUES (%s{', %s' * len(names)})",
            [(i, *(KEYS[n][2][at] for n, at in zip(names, key, strict=True))) for i, key in enumerate(sorted(keys))],
        )

    ordered = [row[0] for row in query(connection, f"SELECT id FROM t ORDER BY {key}")]

    for rows in (1, 7):
        assert walk(connection, TableId(database, "t"), columns, rows, descending=descending) == ordered


@pytest.mark.parametrize("descending", [(), ("a",), ("b",), ("a", "b")])
def test_nulls_and_equal_values_of_any_direction_are_covered_once(
    connection: Connection, database: str, descending: tuple[str, ...]
) -> None:
    key = in_directions(("a", "b"), descending)
    query(connection, f"CREATE TABLE t (id INT PRIMARY KEY, a INT NULL, b VARCHAR(9) NULL, KEY by_ab ({key}))")
    with connection.cursor() as cursor:
        values = [(a, b) for a in (None, 1, 2) for b in (None, "", "x", "X", "y")] * 2
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", [(i, *value) for i, value in enumerate(values)])
    columns = [Column("a", "int"), Column("b", "varchar", charset="utf8mb4")]
    ordered = query(connection, f"SELECT a, b FROM t ORDER BY {key}")
    at = {row[0]: row[1:] for row in query(connection, "SELECT id, a, UPPER(b) FROM t")}

    for rows in (1, 4, 100):
        walked = walk(connection, TableId(database, "t"), columns, rows, "by_ab", descending)
        assert len(walked) == len(set(walked)) == len(values)
        assert [at[each] for each in walked] == [(a, b and b.upper()) for a, b in ordered]


def test_a_surrogate_key_orders_the_chunks_by_its_own_index(connection: Connection, database: str) -> None:
    query(connection, "CREATE TABLE t (id INT PRIMARY KEY, other INT NOT NULL, UNIQUE KEY by_other (other))")
    query(connection, "INSERT INTO t VALUES (1, 30), (2, 10), (3, 20)")

    ids = walk(connection, TableId(database, "t"), [Column("other", "int")], 2, index="by_other")

    assert ids == [2, 3, 1]


def test_keys_that_lie_far_apart_make_chunks_of_equal_size(connection: Connection, database: str) -> None:
    query(connection, "CREATE TABLE t (k BIGINT PRIMARY KEY)")
    query(
        connection, "INSERT INTO t VALUES (-9000000000000000000), (1), (2), (3), (4), (5), (6), (9000000000000000000)"
    )
    table, columns = TableId(database, "t"), [Column("k", "bigint", nullable=False)]
    ((maximum,),) = query(connection, maximum_key(table, columns))

    lower: Key | None = None
    sizes = []
    while lower != (maximum,):
        boundary = query(connection, next_boundary(table, columns, lower, (maximum,), 3))
        upper: Key = boundary[0] if boundary else (maximum,)
        sizes.append(len(query(connection, f"SELECT k {chunk_tail(Chunk(table, ('k',), lower, upper), columns)}")))
        lower = upper

    assert sizes == [3, 3, 2]


def test_rows_inserted_behind_the_maximum_are_in_no_chunk(connection: Connection, database: str) -> None:
    query(connection, "CREATE TABLE t (k BIGINT PRIMARY KEY)")
    query(connection, "INSERT INTO t VALUES (1), (2), (3)")
    table, columns = TableId(database, "t"), [Column("k", "bigint", nullable=False)]
    maximum: Key = query(connection, maximum_key(table, columns))[0]
    query(connection, "INSERT INTO t VALUES (4), (5), (6), (7)")

    assert query(connection, next_boundary(table, columns, ("2",), maximum, 2)) == []
    last = Chunk(table, ("k",), ("2",), maximum)
    assert query(connection, f"SELECT k {chunk_tail(last, columns)}") == [(3,)]


COMPOSITE = [Column("a", "int"), Column("b", "int", unsigned=True), Column("s", "varchar", charset="utf8mb4")]
BOUNDS: list[tuple[Key | None, Key]] = [
    (None, ("3", "700", "k4")),
    (("3", "500", "k3"), ("4", "500", "k4")),
    (("3", "500", "k3"), ("3", "700", "k4")),
    (("3", "500", "k3"), ("9", "999", "k9")),
]


@pytest.fixture
def composite(connection: Connection, database: str) -> TableId:
    query(
        connection,
        "CREATE TABLE c (a INT, b INT UNSIGNED, s VARCHAR(20), p VARCHAR(50), PRIMARY KEY (a, b, s), KEY (p))",
    )
    query(connection, "SET cte_max_recursion_depth = 10000")
    query(
        connection,
        "INSERT INTO c WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
        " SELECT i DIV 1000, i MOD 1000, CONCAT('k', i MOD 7), i MOD 5 FROM n",
    )
    query(connection, "ANALYZE TABLE c")
    return TableId(database, "c")


def plan_of(connection: Connection, sql: str) -> dict[str, Any]:
    """Return the plan of the only table in `sql`, by EXPLAIN."""
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("EXPLAIN FORMAT=TRADITIONAL " + sql)
        (row,) = cursor.fetchall()
        return dict(row)


def explained(connection: Connection, sql: str) -> tuple[str, str]:
    """Return (access type, extra) of the only table in `sql`, by EXPLAIN."""
    plan = plan_of(connection, sql)
    return plan["type"], plan["Extra"] or ""


def steps(connection: Connection, sql: str) -> int:
    """Return how many index entries the server read for `sql`."""
    query(connection, "FLUSH STATUS")
    query(connection, sql)
    return sum(int(value) for _, value in query(connection, "SHOW STATUS LIKE 'Handler_read%'"))


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_a_chunk_of_a_composite_key_is_a_range_without_sorting(
    connection: Connection, composite: TableId, lower: Key | None, upper: Key
) -> None:
    for condition in ("", "p > 1"):
        chunk = Chunk(composite, ("a", "b", "s"), lower, upper, condition)
        sql = f"SELECT * {chunk_tail(chunk, COMPOSITE)}"
        access, extra = explained(connection, sql)

        assert access == "range"
        assert "filesort" not in extra
        assert steps(connection, sql) <= len(query(connection, sql.replace(" AND (p > 1)", ""))) + 10


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_a_boundary_is_found_in_the_index_in_as_many_steps_as_rows(
    connection: Connection, composite: TableId, lower: Key | None, upper: Key
) -> None:
    sql = next_boundary(composite, COMPOSITE, lower, upper, 150)
    access, extra = explained(connection, sql)

    assert access == "range"
    assert "Using index" in extra
    assert "filesort" not in extra
    assert steps(connection, sql) <= 150 + 10


def test_the_maximum_key_takes_one_step(connection: Connection, composite: TableId) -> None:
    sql = maximum_key(composite, COMPOSITE)

    assert query(connection, sql) == [("9", "999", "k3")]
    assert steps(connection, sql) <= 3


@pytest.mark.parametrize("descending", [("a",), ("b",), ("s",), ("a", "b"), ("a", "s"), ("a", "b", "s")])
def test_a_key_of_any_directions_is_read_without_sorting(
    connection: Connection, composite: TableId, descending: tuple[str, ...]
) -> None:
    key = in_directions(("a", "b", "s"), descending)
    query(connection, f"ALTER TABLE {composite.sql} DROP PRIMARY KEY, ADD PRIMARY KEY ({key})")
    query(connection, f"ANALYZE TABLE {composite.sql}")
    ordered = [tuple(map(str, row)) for row in query(connection, f"SELECT a, b, s FROM c ORDER BY {key}")]
    last = maximum_key(composite, COMPOSITE, descending=descending)

    assert query(connection, last) == [ordered[-1]]
    assert steps(connection, last) <= 3
    for lower, upper in ((None, ordered[-1]), (ordered[3_456], ordered[-1]), (ordered[3_456], ordered[5_000])):
        sql = next_boundary(composite, COMPOSITE, lower, upper, 150, descending=descending)
        access, extra = explained(connection, sql)
        assert (access, "Using index" in extra, "filesort" in extra) == ("range", True, False)
        assert steps(connection, sql) <= 150 + 10
        first = 0 if lower is None else 3_457
        assert query(connection, sql) == [ordered[first + 149]]
        chunk = Chunk(composite, ("a", "b", "s"), lower, ordered[first + 149], descending=descending)
        access, extra = explained(connection, f"SELECT * {chunk_tail(chunk, COMPOSITE)}")
        assert (access, "filesort" in extra) == ("range", False)


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ("id INT PRIMARY KEY, s INT, KEY by_s (s)", "s, id"),
        ("id INT PRIMARY KEY, s INT, KEY by_s (s DESC)", "s DESC, id"),
        ("id INT, s INT, PRIMARY KEY (id DESC), KEY by_s (s)", "s, id DESC"),
        ("id INT, p INT DEFAULT 1, s INT, PRIMARY KEY (p, id), KEY by_s (s)", "s, p, id"),
        ("id INT PRIMARY KEY, s INT, x INT, KEY by_s (s, x)", "s, x, id"),
        ("id INT NOT NULL UNIQUE, s INT, KEY by_s (s)", "s, id"),
        ("s INT, KEY by_s (s), id INT AUTO_INCREMENT INVISIBLE PRIMARY KEY", "s, id"),
    ],
)
def test_rows_of_one_value_of_a_surrogate_key_are_read_without_sorting(
    connection: Connection, database: str, columns: str, key: str
) -> None:
    table = TableId(database, "surrogate")
    query(connection, f"CREATE TABLE {table.sql} ({columns})")
    rows = ", ".join(f"({number}, {('NULL', '7', '8')[number % 3]})" for number in range(1, 3_001))
    query(connection, f"INSERT INTO {table.sql} (id, s) VALUES {rows}")
    query(connection, f"ANALYZE TABLE {table.sql}")
    described = Answers(connection, ColumnRules())(Describe(table, "s", "", GtidSet()))
    assert isinstance(described, KeyOrder)
    names, descending = described.columns, described.descending
    assert (in_directions(names, descending), described.index) == (key, "by_s")
    order = tuple(Column(name, "int") for name in names)
    ordered = [
        tuple(None if value is None else str(value) for value in row)
        for row in query(connection, f"SELECT {', '.join(names)} FROM {table.sql} ORDER BY {key}")
    ]

    for lower in (None, ordered[10], ordered[1_800]):
        sql = next_boundary(table, order, lower, ordered[-1], 500, index="by_s", descending=descending)
        access, extra = explained(connection, sql)
        assert (access, "filesort" in extra) == ("range", False)
        assert steps(connection, sql) <= 500 + 10
        first = 0 if lower is None else ordered.index(lower) + 1
        assert query(connection, sql) == [ordered[first + 499]]
        chunk = Chunk(table, names, lower, ordered[first + 499], index="by_s", descending=descending)
        assert "filesort" not in explained(connection, f"SELECT id {chunk_tail(chunk, order)}")[1]
        read = query(connection, f"SELECT {', '.join(names)} {chunk_tail(chunk, order)}")
        assert len(read) == 500


def test_a_condition_is_probed_without_reading(connection: Connection, composite: TableId) -> None:
    assert query(connection, condition_probe(composite, "p = 'x' AND a > 1")) == []

    with pytest.raises(pymysql.MySQLError):
        query(connection, condition_probe(composite, "nonsense >"))


#: By the columns of the key: the definition of the key's columns, the key of row number `i`, and how it is shown.
LISTED: dict[str, tuple[str, str, tuple[Column, ...]]] = {
    "one column": ("a INT PRIMARY KEY", "i", (Column("a", "int", nullable=False),)),
    "two columns": (
        "a INT, b VARCHAR(20), PRIMARY KEY (a, b)",
        "i DIV 100, CONCAT('k', i)",
        (Column("a", "int", nullable=False), Column("b", "varchar", nullable=False, charset="utf8mb4")),
    ),
    "two columns, the second downwards": (
        "a INT, b INT, PRIMARY KEY (a, b DESC)",
        "i DIV 100, i",
        (Column("a", "int", nullable=False), Column("b", "int", nullable=False)),
    ),
    **{
        f"{count} columns": (
            f"{', '.join(f'c{n} INT' for n in range(count))}, PRIMARY KEY ({', '.join(f'c{n}' for n in range(count))})",
            ", ".join(["i"] * count),
            tuple(Column(f"c{n}", "int", nullable=False) for n in range(count)),
        )
        for count in (7, 8, 16)
    },
}
LISTED_ROWS = 3 * MAX_LISTED


@pytest.mark.parametrize("kind", LISTED)
def test_listed_keys_are_found_by_the_primary_key_in_as_many_steps_as_keys(
    connection: Connection, database: str, kind: str
) -> None:
    definition, values, columns = LISTED[kind]
    table, names = TableId(database, "l"), tuple(column.name for column in columns)
    query(connection, f"CREATE TABLE l ({definition}, p VARCHAR(50), KEY (p))")
    query(connection, f"SET cte_max_recursion_depth = {LISTED_ROWS}")
    query(
        connection,
        f"INSERT INTO l WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < {LISTED_ROWS - 1})"
        f" SELECT {values}, i MOD 5 FROM n",
    )
    query(connection, "ANALYZE TABLE l")
    keys: list[Key] = [
        tuple(map(str, row)) for row in query(connection, f"SELECT {', '.join(names)} FROM l ORDER BY RAND(1)")
    ]
    absent: list[Key] = [("-1",) + ("7",) * (len(names) - 1), ("999999",) + ("7",) * (len(names) - 1)]

    for count in (1, 2, 150, 1_000, MAX_LISTED):
        chosen = keys[:count]
        for condition in ("", "p > 1"):
            chunk = Chunk(table, names, ("0",), (str(count),), condition, keys="list")
            sql = f"SELECT * {listed_tail(chunk, columns, [*chosen, *absent])}"
            plan = plan_of(connection, sql)
            assert (plan["key"], plan["type"]) == ("PRIMARY", "range"), (count, plan)
            assert plan["rows"] <= count + len(absent), plan
            assert steps(connection, sql) <= 2 * (count + len(absent)) + 10
        chunk = Chunk(table, names, ("0",), (str(count),), keys="list")
        selected = query(connection, f"SELECT {', '.join(names)} {listed_tail(chunk, columns, [*chosen, *absent])}")
        assert {tuple(map(str, row)) for row in selected} == set(chosen)

    alone = plan_of(connection, f"SELECT * {listed_tail(chunk, columns, keys[:1])}")
    assert (alone["key"], alone["type"], alone["rows"]) == ("PRIMARY", "const", 1)


def test_a_slice_costs_in_proportion_to_the_slice(connection: Connection, database: str) -> None:
    """The pages of a range of an indexed column, and the boundaries between the pages, walk through no other rows."""
    table = TableId(database, "s")
    query(connection, "CREATE TABLE s (id INT PRIMARY KEY, at DATETIME NOT NULL, p INT, KEY by_at (at))")
    query(connection, "SET cte_max_recursion_depth = 20000")
    query(
        connection,
        "INSERT INTO s WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 19999)"
        " SELECT i, '2026-01-01' + INTERVAL (i * 7919 MOD 20000) MINUTE, 1 FROM n",
    )
    query(connection, "ANALYZE TABLE s")
    described = Answers(connection, ColumnRules())(Describe(table, "at", "", GtidSet()))
    assert isinstance(described, KeyOrder)
    order = (Column("at", "datetime", nullable=False), Column("id", "int", nullable=False))
    assert (described.columns, described.index) == (("at", "id"), "by_at")
    limits: list[tuple[Key | None, Key | None, int]] = [
        (("2026-01-05 00:00:00",), ("2026-01-05 01:39:00",), 100),
        (("2026-01-14 20:00:00",), None, 80),
        (None, ("2026-01-01 00:49:00",), 50),
    ]

    for first, last, size in limits:
        maximum_sql = maximum_key(table, order, index="by_at", first=first, last=last)
        (maximum,) = query(connection, maximum_sql)
        assert last is None or maximum[0] == last[0]
        assert steps(connection, maximum_sql) <= 3
        lower: Key | None = None
        ids: list[int] = []
        used = 0
        while lower != maximum:
            sql = next_boundary(table, order, lower, maximum, 30, index="by_at", first=first, last=last)
            plan = plan_of(connection, sql)
            assert (plan["key"], plan["type"], "filesort" in (plan["Extra"] or "")) == ("by_at", "range", False)
            used += steps(connection, sql)
            boundary = query(connection, sql)
            upper: Key = boundary[0] if boundary else maximum
            page = Chunk(table, ("at", "id"), lower, upper, index="by_at", first=first, last=last)
            sql = f"SELECT id, p {chunk_tail(page, order)}"
            plan = plan_of(connection, sql)
            assert (plan["key"], plan["type"], "filesort" in (plan["Extra"] or "")) == ("by_at", "range", False)
            assert plan["rows"] <= 2 * size, plan
            used += steps(connection, sql)
            ids += [row[0] for row in query(connection, sql)]
            lower = upper
        assert len(ids) == len(set(ids)) == size
        assert used <= 2 * size + 40, (first, last, used)
