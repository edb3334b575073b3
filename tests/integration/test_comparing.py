"""`incsnap.compare` with a real table: seeded differences, changes after the GTID set, and what cannot be compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's name)

import incsnap
from incsnap.config.load import from_properties
from incsnap.errors import ConfigError
from incsnap.mysql.watermarks import executed
from incsnap.verify.changed_keys import TableChanged
from lab.addresses import MySqlAddress
from tests.support.frames import options
from tests.support.purging import purge_binlog

pytestmark = pytest.mark.servers

#: A column of each type that Spark has a type of its own for.
_COLUMNS = """
    id INT, part VARBINARY(3), tiny TINYINT, big BIGINT UNSIGNED, price DECIMAL(20,4), ratio DOUBLE, small FLOAT,
    name VARCHAR(20), raw VARBINARY(9), flag BIT(1), bits BIT(12), day DATE, at DATETIME(6), stamp TIMESTAMP(3) NULL,
    hour TIME(3), doc JSON, PRIMARY KEY (id, part)
"""
_ROW = """
    ({0}, 'p', -{0}, 18446744073709551615 - {0}, {0}.0001, {0}/3, {0}/7, 'n{0}', x'00ff', {0} % 2, {0}, '2024-02-29',
    '1969-12-31 23:59:59.000001', '2024-05-01 01:02:03.004', '-838:59:59', '{{"a": {0}}}')
"""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "Asia/Kolkata")
    session = builder.getOrCreate()
    incsnap.register(session)
    yield session
    session.stop()


class Table:
    """The table `t`, and the comparison of DataFrames with it."""

    def __init__(self, spark: SparkSession, connection: Connection[Any], given: dict[str, str], database: str) -> None:
        self._spark, self._connection, self._given, self._name = spark, connection, given, f"{database}.t"
        self.settings = from_properties({**given, "bootstrap.servers": "localhost:1"}).settings

    def execute(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def now(self) -> tuple[DataFrame, str]:
        """Return the table's present rows as a lake has them, and the GTID set that they have."""
        reader = self._spark.read.format("incsnap").options(**self._given).option("table", self._name)
        rows = reader.load().drop("_op", "_ts", "_gtid", "_position", "_snapshot").localCheckpoint()
        return rows, str(executed(self._connection))

    def compare(self, frame: DataFrame, gtid_set: str, keys: tuple[str, ...] = ("id",)) -> set[tuple[Any, ...]]:
        """Return kind, columns and key of each difference."""
        differences = incsnap.compare(self._spark, self.settings, self._name, frame, gtid_set).collect()
        return {(row["_kind"], tuple(row["_columns"] or ()), *(row[key] for key in keys)) for row in differences}


@pytest.fixture
def table(
    spark: SparkSession, connection: Connection[Any], mysql_address: MySqlAddress, database: str, tmp_path: Path
) -> Table:
    return Table(spark, connection, options(mysql_address, database, tmp_path), database)


def test_each_difference_is_named_and_later_changes_are_none(table: Table) -> None:
    rows = ", ".join(_ROW.format(number) for number in range(1, 31))
    table.execute("SET time_zone = '+00:00'", f"CREATE TABLE t ({_COLUMNS})", f"INSERT INTO t VALUES {rows}")
    frame, gtid_set = table.now()
    assert table.compare(frame, gtid_set) == set()

    id_ = F.col("id")
    spoilt = (
        frame.where("id <> 1")
        .withColumn("price", F.when(id_ == 2, F.col("price") + 1).otherwise(F.col("price")).cast("decimal(20,4)"))
        .withColumn("raw", F.when(id_ == 3, F.lit(None)).otherwise(F.col("raw")))
        .withColumn("at", F.when(id_ == 3, F.expr("at + INTERVAL 1 MICROSECOND")).otherwise(F.col("at")))
        .withColumn("id", F.when(id_ == 4, 400).otherwise(id_))
    )
    spoilt = spoilt.union(spoilt.where("id = 5"))
    faults = {
        ("missing", (), 1),
        ("wrong", ("price",), 2),
        ("wrong", ("raw", "at"), 3),
        ("missing", (), 4),
        ("extra", (), 400),
        ("duplicate", (), 5),
    }
    assert table.compare(spoilt, gtid_set) == faults

    # All keys change after the set, faulty ones too. Some come back to their row, and some to another key.
    table.execute(
        "UPDATE t SET name = 'x'",
        "UPDATE t SET price = price + 2 WHERE id <= 4",
        "DELETE FROM t WHERE id IN (7, 8)",
        f"INSERT INTO t VALUES {_ROW.format(8)}",
        "UPDATE t SET id = 500 WHERE id = 9",
        "UPDATE t SET name = 'n10' WHERE id = 10",
    )
    between, _ = table.now()
    table.execute(
        "DELETE FROM t WHERE id IN (10, 500)", "UPDATE t SET name = 'y'", "UPDATE t SET id = 600 WHERE id = 11"
    )
    assert table.compare(spoilt, gtid_set) == faults
    # A DataFrame may be newer than the set: each row is one that the table had since.
    assert table.compare(frame, gtid_set) == set()
    assert table.compare(between, gtid_set) == set()
    # It may not be older.
    _, newer = table.now()
    kinds = [kind for kind, *_ in sorted(table.compare(frame, newer))]
    assert kinds == ["extra"] * 4 + ["missing"] + ["wrong"] * 26


def test_columns_are_matched_by_name_and_compared_in_the_wider_type(table: Table) -> None:
    table.execute(
        "CREATE TABLE t (Id SMALLINT PRIMARY KEY, price DECIMAL(6,2), ratio FLOAT)",
        "INSERT INTO t VALUES (1, 1.5, 0.1), (2, NULL, NULL)",
    )
    frame, gtid_set = table.now()
    lake = frame.select(
        F.lit("x").alias("more"), F.col("price").cast("decimal(20,4)"), F.col("ratio").cast("double"),
        F.col("Id").cast("int").alias("iD"),
    )  # fmt: skip
    assert table.compare(lake, gtid_set, ("Id",)) == set()
    off = lake.withColumn("price", (F.col("price") + F.lit("0.0001").cast("decimal(9,4)")).cast("decimal(20,4)"))
    assert table.compare(off, gtid_set, ("Id",)) == {("wrong", ("price",), 1)}


def test_what_cannot_be_compared_is_refused_with_the_reason(table: Table) -> None:
    table.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO t VALUES (1, 'a')")
    frame, gtid_set = table.now()

    def refused(given: DataFrame, position: str, reason: str, error: type[Exception] = ConfigError) -> None:
        with pytest.raises(error, match=reason):
            table.compare(given, position)

    refused(frame.drop("v"), gtid_set, "lacks columns of .*t: v")
    refused(frame.withColumn("v", F.lit(1)), gtid_set, "v is string and not int")
    other = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    refused(frame, f"{gtid_set},{other}", f"has not executed: {other}")

    table.execute("ALTER TABLE t ADD w INT")
    refused(frame.withColumn("w", F.lit(1)), gtid_set, "ALTER TABLE t ADD w", TableChanged)
    table.execute("ALTER TABLE t DROP PRIMARY KEY")
    frame, gtid_set = table.now()
    refused(frame, gtid_set, "no primary key")


def test_a_set_whose_binlog_is_purged_is_refused(table: Table, connection: Connection[Any]) -> None:
    table.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    frame, gtid_set = table.now()
    table.execute("INSERT INTO t VALUES (1, 'a')", "FLUSH BINARY LOGS")
    purge_binlog(connection)

    with pytest.raises(ConfigError, match="has purged binlog that is not in gtid_set"):
        table.compare(frame, gtid_set)
