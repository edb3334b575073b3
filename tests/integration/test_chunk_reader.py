"""Chunks of a real table as canonical columns: every type's values, and every bound."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from incsnap.errors import ChunkFailed
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.tables import TableId
from incsnap.types.column_type import describe
from lab.addresses import MySqlAddress
from lab.mysql_client import connect

pytestmark = pytest.mark.servers

#: column definition -> [(SQL literal, canonical value)]
VALUES: dict[str, list[tuple[str, Any]]] = {
    "tinyint": [("-128", -128), ("127", 127)],
    "tinyint unsigned": [("255", 255)],
    "smallint": [("-32768", -32768)],
    "mediumint unsigned": [("16777215", 16777215)],
    "int": [("-2147483648", -2147483648), ("0", 0)],
    "int(8) unsigned zerofill": [("42", 42)],
    "bigint": [("-9223372036854775808", -(2**63))],
    "bigint unsigned": [("18446744073709551615", 2**64 - 1)],
    "decimal(12,2)": [("-1234567890.12", Decimal("-1234567890.12")), ("0.05", Decimal("0.05"))],
    "decimal(18,18)": [("-0.000000000000000001", Decimal("-1e-18"))],
    "decimal(38,10)": [("1234567890123456789012345678.0000000001", Decimal("1234567890123456789012345678.0000000001"))],
    "decimal(65,30)": [("-" + "9" * 35 + "." + "9" * 30, Decimal("-" + "9" * 35 + "." + "9" * 30))],
    "float": [("0.1", 0.10000000149011612), ("16777217", 16777216.0), ("3.40282e38", float(np.float32("3.40282e38")))],
    "float(10,2)": [("1.5", 1.5)],
    "double": [
        ("0.1", 0.1),
        ("1e308", 1e308),
        ("-5e-324", -5e-324),
        ("1.7976931348623157e308", 1.7976931348623157e308),
    ],
    "double(20,3)": [("1234567890.1239", 1234567890.124)],
    "char(5)": [("'ab  '", "ab"), ("'é€'", "é€")],
    "varchar(20)": [("'ab  '", "ab  "), ("'😀'", "😀"), ("''", "")],
    "varchar(20) character set latin1": [("'€é'", "€é")],
    "longtext character set utf8mb3": [("REPEAT('é', 300)", "é" * 300)],
    "enum('a','b''c','€')": [("'b''c'", "b'c"), ("0", ""), ("'€'", "€")],
    "binary(4)": [("x'0100'", b"\x01\0\0\0")],
    "varbinary(4)": [("x'00ff'", b"\0\xff")],
    "longblob": [("x'ff00'", b"\xff\0"), ("''", b"")],
    "json": [
        (
            """'{"b": [1, 2.5, true, null, "x: y, \\\\\\\\ z"], "a": {}}'""",
            '{"a":{},"b":[1,2.5,true,null,"x: y, \\\\ z"]}',
        ),
        ("'12.50'", "12.5"),
    ],
    "date": [("'2024-02-29'", (dt.date(2024, 2, 29) - dt.date(1970, 1, 1)).days), ("'0000-00-00'", None)],
    "time": [("'-838:59:59'", -3020399000000), ("'00:00:01'", 1000000)],
    "time(3)": [("'-00:00:00.500'", -500000), ("'123:00:00.001'", 442800001000)],
    "time(6)": [("'838:59:59.000000'", 3020399000000)],
    "datetime": [("'1969-12-31 23:59:59'", -1000000), ("'2024-00-01 00:00:00'", None)],
    "datetime(6)": [("'9999-12-31 23:59:59.999999'", 253402300799999999)],
    "timestamp": [("'1970-01-01 00:00:01'", 1000000), ("0", None)],
    "timestamp(2)": [("'2038-01-19 03:14:07.99'", 2147483647990000)],
    "year": [("2155", 2155), ("0", 0)],
}


@pytest.fixture
def connection(mysql_address: MySqlAddress) -> Iterator[Any]:
    opened = connect(
        mysql_address,
        init_command="SET SESSION time_zone = '+00:00', sql_mode = '', cte_max_recursion_depth = 10000000",
    )
    yield opened
    if opened.open:
        opened.close()


def execute(connection: Any, *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_every_type_has_its_canonical_values_and_null(connection: Any, database: str) -> None:
    columns = ", ".join(f"`c {i}` {kind} NULL" for i, kind in enumerate(VALUES))
    execute(connection, f"CREATE TABLE {database}.t (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    most = max(len(values) for values in VALUES.values())
    for row in range(most + 1):
        literals = [values[row][0] if row < len(values) else "NULL" for values in VALUES.values()]
        execute(connection, f"INSERT INTO {database}.t VALUES ({row}, {', '.join(literals)})")
    shape = shape_of(connection, TableId(database, "t"))
    assert shape is not None
    tail = f"FROM {database}.t ORDER BY id"
    ids, *got = read_chunk(connection, shape, tail, max_bytes=1 << 20, timeout_seconds=60)
    assert ids.to_pylist() == list(range(most + 1))
    for (kind, values), column, array in zip(VALUES.items(), shape.columns[1:], got, strict=True):
        array.validate(full=True)
        assert array.type == describe(column, shape.id).arrow
        expected = [value for _, value in values]
        assert array.to_pylist() == expected + [None] * (most + 1 - len(expected)), kind


@pytest.fixture
def numbers(connection: Any, database: str) -> Any:
    """A table of 1000 rows of about 110 bytes."""
    execute(
        connection,
        f"CREATE TABLE {database}.n (i INT PRIMARY KEY, p VARCHAR(100))",
        f"INSERT INTO {database}.n WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
        " SELECT i, REPEAT('x', 100) FROM n",
    )
    return shape_of(connection, TableId(database, "n"))


def test_a_chunk_is_the_rows_of_its_range_in_its_order(connection: Any, numbers: Any) -> None:
    tail = f"FROM {numbers.id.sql} WHERE i > 10 AND i <= 15 ORDER BY i DESC"
    ids, texts = read_chunk(connection, numbers, tail, max_bytes=1 << 20, timeout_seconds=60)
    assert ids.to_pylist() == [15, 14, 13, 12, 11]
    assert texts.to_pylist() == ["x" * 100] * 5


def test_an_empty_chunk_has_empty_columns_of_the_right_types(connection: Any, numbers: Any) -> None:
    tail = f"FROM {numbers.id.sql} WHERE i > 5000"
    columns = read_chunk(connection, numbers, tail, max_bytes=1 << 20, timeout_seconds=60)
    assert [(str(c.type), len(c)) for c in columns] == [("int64", 0), ("string", 0)]


def test_a_chunk_of_too_many_bytes_fails_and_says_so(connection: Any, numbers: Any) -> None:
    with pytest.raises(ChunkFailed, match="more than 50000 bytes"):
        read_chunk(connection, numbers, f"FROM {numbers.id.sql}", max_bytes=50_000, timeout_seconds=60)
    assert not connection.open


def test_one_row_may_be_of_any_size(connection: Any, numbers: Any) -> None:
    """A chunk of one row cannot be halved, so its bytes are not limited."""
    tail = f"FROM {numbers.id.sql} WHERE i = 7"
    assert len(read_chunk(connection, numbers, tail, max_bytes=50, timeout_seconds=60)[0]) == 1
    with pytest.raises(ChunkFailed, match="more than 50 bytes"):
        read_chunk(connection, numbers, f"FROM {numbers.id.sql} WHERE i < 3", max_bytes=50, timeout_seconds=60)


def test_a_chunk_that_takes_too_long_fails_and_the_connection_lives(connection: Any, numbers: Any) -> None:
    tail = f"FROM {numbers.id.sql} WHERE SLEEP(0.1) = 0 AND i < 100"
    before = connection._read_timeout
    with pytest.raises(ChunkFailed, match=r"more than 0\.3 seconds"):
        read_chunk(connection, numbers, tail, max_bytes=1 << 20, timeout_seconds=0.3)
    assert connection._read_timeout == before
    execute(connection, "SELECT 1")


def test_the_servers_error_is_in_the_failure(connection: Any, numbers: Any) -> None:
    with pytest.raises(ChunkFailed, match=r"error 1146, Table .* doesn't exist"):
        read_chunk(connection, numbers, f"FROM {numbers.id.sql[:-1]}z`", max_bytes=1 << 20, timeout_seconds=60)
    with pytest.raises(ChunkFailed, match="error 1054"):
        read_chunk(connection, numbers, f"FROM {numbers.id.sql} WHERE z = 1", max_bytes=1 << 20, timeout_seconds=60)
