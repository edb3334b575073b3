"""The comparison of a table with a replay sees a missing, an extra and a different row, and equal ones as equal."""

from __future__ import annotations

from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.tables import TableId
from lab.compare import compare

pytestmark = pytest.mark.servers

#: As Debezium's documentation says each of these values is written.
ROW = {
    "id": 7,
    "big": -1,
    "amount": "/w==",
    "price": "AN6t",
    "status": "paid",
    "note": "naïve ",
    "day": 19_000,
    "made": 1_650_000_000_123,
    "fine": 1_650_000_000_123_456,
    "seen": "2022-04-15T05:20:00.120Z",
    "plain": "2022-04-15T05:20:00Z",
    "ratio": 0.1,
    "data": '{"a":[1,2.5,null]}',
    "raw": "AAEC",
    "nothing": None,
    "version": 3,
}


@pytest.fixture
def connection(connection: Connection[Any]) -> Connection[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, big BIGINT UNSIGNED, amount DECIMAL(5,2), price DECIMAL(9,3),"
            " status ENUM('new', 'paid'), note VARCHAR(20), day DATE, made DATETIME(3), fine DATETIME(6),"
            " seen TIMESTAMP(3), plain TIMESTAMP NULL, ratio DOUBLE, data JSON, raw VARBINARY(9), nothing INT,"
            " version BIGINT) CHARACTER SET utf8mb4"
        )
        cursor.execute(
            "INSERT INTO t VALUES (7, 18446744073709551615, -0.01, 57.005, 'paid', 'naïve ', '2022-01-08',"
            " '2022-04-15 05:20:00.123', '2022-04-15 05:20:00.123456', '2022-04-15 05:20:00.12',"
            " '2022-04-15 05:20:00', 0.1, '{\"a\": [1, 2.5, null]}', X'000102', NULL, 3)"
        )
    return connection


def test_equal_rows_are_equal_whatever_their_type(connection: Connection[Any], database: str) -> None:
    result = compare(connection, TableId(database, "t"), {(7,): tuple(ROW.values())}, tuple(ROW))

    assert result.faults() == []
    assert result.rows == 1


@pytest.mark.parametrize("column", sorted(set(ROW) - {"id"}))
def test_one_changed_value_is_seen(connection: Connection[Any], database: str, column: str) -> None:
    other = ROW | {column: '{"a":[1,2.5]}' if column == "data" else "something else"}

    result = compare(connection, TableId(database, "t"), {(7,): tuple(other.values())}, tuple(ROW))

    assert (result.different.count, result.missing.count, result.extra.count) == (1, 0, 0)
    assert column in result.faults()[0]


def test_missing_and_extra_rows_are_seen(connection: Connection[Any], database: str) -> None:
    result = compare(connection, TableId(database, "t"), {(8,): tuple(ROW.values())}, tuple(ROW))

    assert (result.missing.count, result.extra.count, result.unequal) == (1, 1, 2)
