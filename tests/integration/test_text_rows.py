"""Rows of a SELECT in large blocks, on a real server: sizes, NULLs, failures, and what becomes of the connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from incsnap.mysql.text_rows import columns_of, fetch_rows
from lab import mysql_client
from lab.addresses import MySqlAddress

pytestmark = pytest.mark.servers

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT {} FROM n"
Connect = Callable[..., Any]


@pytest.fixture
def connect(mysql_address: MySqlAddress) -> Iterator[Connect]:
    opened = []

    def open_one(**options: Any) -> Any:
        connection = mysql_client.connect(
            mysql_address,
            init_command="SET SESSION cte_max_recursion_depth = 10000000, max_execution_time = 60000",
            **{"ssl_disabled": True, **options},
        )
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        if connection.open:
            connection.close()


def fetched(connection: Any, sql: str, count: int, **options: Any) -> list[list[Any]]:
    blocks = [columns_of(rows, count) for rows in fetch_rows(connection, sql, **options)]
    return [pa.chunked_array([block[i] for block in blocks], pa.binary()).to_pylist() for i in range(count)]


def is_usable(connection: Any) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'fine'")
        return bool(cursor.fetchone() == ("fine",))


@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 22])
def test_rows_are_whole_whatever_the_block_is(connect: Connect, block_bytes: int) -> None:
    connection = connect()
    sql = NUMBERS.format(3000, "i, IF(i % 3, REPEAT('é', i % 200), NULL), ''")
    ids, texts, empty = fetched(connection, sql, 3, block_bytes=block_bytes)
    assert ids == [b"%d" % i for i in range(1, 3001)]
    assert texts == [("é" * (i % 200)).encode() if i % 3 else None for i in range(1, 3001)]
    assert empty == [b""] * 3000
    assert is_usable(connection)


def test_no_rows_give_no_blocks(connect: Connect) -> None:
    connection = connect()
    assert list(fetch_rows(connection, "SELECT 1 FROM DUAL WHERE FALSE")) == []
    assert is_usable(connection)


def test_values_around_every_width_of_length(connect: Connect) -> None:
    connection = connect()
    sizes = [0, 1, 250, 251, 255, 256, 65535, 65536]
    sql = " UNION ALL ".join(f"SELECT {size}, REPEAT('x', {size}), NULL" for size in sizes)
    ids, texts, nulls = fetched(connection, sql, 3, block_bytes=70_000)
    assert [int(i) for i in ids] == [len(t) for t in texts] == sizes
    assert nulls == [None] * len(sizes)


@pytest.mark.parametrize("extra", [-20, -6, -5, -4, 0, 1, 17_000_000])
def test_rows_of_16_mib_and_more_come_in_several_packets(connect: Connect, extra: int) -> None:
    connection = connect()
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        (allowed,) = cursor.fetchone()
    size = 0xFFFFFF + extra
    if size + 100 > allowed:
        pytest.skip(f"max_allowed_packet is {allowed}")
    sql = f"SELECT 'a', REPEAT('x', {size}) UNION ALL SELECT 'b', 'small' UNION ALL SELECT 'c', REPEAT('y', {size})"
    got: list[tuple[bytes, int, set[int]]] = []
    for rows in fetch_rows(connection, sql):
        names, texts = columns_of(rows, 2)
        got += [(n, len(t), set(t)) for n, t in zip(names.to_pylist(), texts.to_pylist(), strict=True)]
    assert got == [(b"a", size, set(b"x")), (b"b", 5, set(b"small")), (b"c", size, set(b"y"))]
    assert is_usable(connection)


def test_a_statement_that_cannot_begin_raises_the_servers_error(connect: Connect) -> None:
    connection = connect()
    with pytest.raises(pymysql.err.MySQLError) as caught:
        list(fetch_rows(connection, "SELECT * FROM no_such_database.t"))
    assert caught.value.args[0] in (1049, 1146)
    assert is_usable(connection)


@pytest.mark.parametrize("block_bytes", [100, 1 << 20])
def test_an_error_in_the_middle_of_the_rows_is_raised_and_the_connection_lives(
    connect: Connect, database: str, block_bytes: int
) -> None:
    connection = connect()
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (i INT PRIMARY KEY, p TEXT)")
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute(f"INSERT INTO {database}.t {NUMBERS.format(2000, 'i, REPEAT(char(120), 100)')}")
    # The 1900th row does not fit a BIGINT; rows are sent one by one as they are found.
    sql = f"SELECT i, p, 9223372036854775807 - 1900 + i FROM {database}.t FORCE INDEX (PRIMARY) ORDER BY i"
    seen = 0
    with pytest.raises(pymysql.err.OperationalError) as caught:  # noqa: PT012
        for rows in fetch_rows(connection, sql, block_bytes=block_bytes):
            seen += len(rows)
            columns_of(rows, 3)
    assert caught.value.args[0] == 1690
    assert 0 < seen <= 1900
    assert is_usable(connection)


def test_leaving_early_closes_the_connection(connect: Connect) -> None:
    connection = connect()
    rows = fetch_rows(connection, NUMBERS.format(100_000, "i"), block_bytes=1000)
    next(rows)
    rows.close()
    assert not connection.open


def test_a_connection_that_breaks_is_an_operational_error(connect: Connect) -> None:
    connection, other = connect(), connect()
    with pytest.raises(pymysql.err.OperationalError):  # noqa: PT012
        for number, _ in enumerate(fetch_rows(connection, NUMBERS.format(3_000_000, "i, REPEAT('x', 100)"))):
            if number == 0:
                with other.cursor() as cursor:
                    cursor.execute(f"KILL {connection.thread_id()}")
    assert not connection.open


def test_a_silent_server_is_left_after_the_read_timeout(connect: Connect) -> None:
    connection = connect()
    # Not before: on a slow machine the login may take longer.
    connection._read_timeout = 0.5
    with pytest.raises(pymysql.err.OperationalError, match="timed out"):
        list(fetch_rows(connection, "SELECT SLEEP(20)"))
    assert not connection.open


def test_the_same_through_tls(connect: Connect) -> None:
    connection = connect(ssl_disabled=False, ssl={"check_hostname": False, "verify_mode": False})
    with connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        if not cursor.fetchone()[1]:
            pytest.skip("the server offers no TLS")
    ids, texts = fetched(connection, NUMBERS.format(20_000, "i, REPEAT('x', i % 100)"), 2, block_bytes=10_000)
    assert ids == [b"%d" % i for i in range(1, 20_001)]
    assert texts == [b"x" * (i % 100) for i in range(1, 20_001)]
    assert is_usable(connection)
