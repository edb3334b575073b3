"""A table of Apache Iceberg that is kept equal to MySQL's, row by row, through a snapshot under load and a restart."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

import incsnap
import incsnap.spark
from incsnap.errors import ConfigError, ServerUnreachable
from lab.addresses import MySqlAddress
from lab.fetched_iceberg import iceberg_jar
from lab.mysql_client import connect
from lab.table_designs import ORDERS
from lab.workload import Writer
from tests.support.frames import options
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers
ROWS = 3_000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    try:
        jar = iceberg_jar()
    except ServerUnreachable as error:
        pytest.skip(f"Apache Iceberg cannot be fetched: {error}")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    end_jvm()
    warehouse = tmp_path_factory.mktemp("lake")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", str(jar))
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", str(warehouse))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    incsnap.register(session)
    yield session
    session.stop()
    end_jvm()


def end_jvm() -> None:
    """Of the test before: what is in ``spark.jars`` is seen by a JVM that is started with it."""
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Connection[Any]]:
    with closing(connect(mysql_address, database=database)) as opened:
        yield opened


@pytest.fixture
def load(spark: SparkSession, mysql_address: MySqlAddress, database: str, tmp_path: Path) -> Callable[..., DataFrame]:
    def read(table: str, **more: str) -> DataFrame:
        given = options(mysql_address, database, tmp_path, table=table, **more)
        del given["signal.data.collection"]
        return spark.readStream.format("incsnap").options(**given).load()

    return read


def test_the_merged_table_is_mysqls(
    spark: SparkSession,
    load: Callable[..., DataFrame],
    connection: Connection[Any],
    mysql_address: MySqlAddress,
    database: str,
    tmp_path: Path,
) -> None:
    orders, target = ORDERS.create(connection, database, ROWS), f"lake.{database}.orders"
    changes = load(str(orders), snapshot__mode="initial", incremental__snapshot__chunk__size="500")

    def begin() -> Any:
        writer = incsnap.spark.merge_into(changes, target, format="iceberg")
        return writer.option("checkpointLocation", str(tmp_path / "spark")).start()

    def lake() -> dict[int, tuple[Any, ...]]:
        return {row["id"]: tuple(row) for row in spark.table(target).drop("updated_at").collect()}

    query = begin()
    with Writer(lambda: connect(mysql_address, database=database), [(ORDERS, orders)], seed=9, rate=50):
        reached(query, lambda: spark.catalog.tableExists(target) and spark.table(target).count() > ROWS // 3)
        query.stop()
        query = begin()
        reached(query, lambda: query.lastProgress is not None)
    reached(query, lambda: lake() == mysql(connection, str(orders)))
    query.stop()


def test_changes_of_a_table_without_a_key_need_keys(
    load: Callable[..., DataFrame], connection: Connection[Any], database: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a INT)")
    with pytest.raises(ConfigError, match="the table has no primary key"):
        incsnap.spark.merge_into(load(f"{database}.t"), "lake.t")
    with pytest.raises(ConfigError, match="takes the changes of one table"):
        incsnap.spark.merge_into(load(f"{database}.t", envelope="true"), "lake.t")


def reached(query: Any, condition: Callable[[], bool]) -> None:
    def is_reached() -> bool:
        assert query.isActive, str(query.exception())
        return condition()

    wait_until(is_reached, every=0.5)


def mysql(connection: Connection[Any], table: str) -> dict[int, tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, customer_id, status, amount, qty, note, sku, created_at, ratio, version FROM " + table
        )
        return {row[0]: row for row in cursor.fetchall()}
