"""A DataFrame of changes on executors of other machines: executors die, and the table equals its changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pymysql.connections import Connection
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import incsnap
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.object_store import ObjectStore
from lab.spark_cluster import SparkCluster
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send
from tests.support.frames import ReceivedRows, backwards, options, running, table_rows, wait

pytestmark = [pytest.mark.servers, pytest.mark.long]
ROWS = 4_000


@pytest.fixture(scope="module")
def spark(cluster: SparkCluster) -> Iterator[SparkSession]:
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
    for name, value in cluster.settings.items():
        builder = builder.config(name, value)
    # Later tests of this process must not inherit the variable.
    with mock.patch.dict(os.environ, PYSPARK_PYTHON=sys.executable):
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        incsnap.register(session)
        yield session
        session.stop()


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Connection[Any]]:
    with closing(connect(mysql_address, database=database)) as opened, opened.cursor() as cursor:
        cursor.execute("CREATE TABLE signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data TEXT NULL)")
        yield opened


@pytest.fixture
def orders(connection: Connection[Any], database: str) -> TableId:
    return ORDERS.create(connection, database, ROWS)


@pytest.fixture(params=["folder", "bucket"])
def changes(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    mysql_address: MySqlAddress,
    database: str,
    orders: TableId,
    tmp_path: Path,
) -> Callable[[], DataFrame]:
    """A function that loads the DataFrame. Its `checkpoint.location` is in a shared folder or in a bucket."""
    more = {"table": str(orders), "incremental__snapshot__chunk__size": "300"}
    given = options(mysql_address, database, tmp_path, **more)
    if request.param == "bucket":
        store: ObjectStore = request.getfixturevalue("object_store")
        given |= store.properties(f"{database}/frames")

    def load() -> DataFrame:
        read = spark.readStream.format("incsnap").options(**given).load()
        return read.withColumn("updated_at", col("updated_at").cast("timestamp_ntz"))

    return load


def test_executors_that_are_killed_in_a_snapshot_lose_and_repeat_nothing(
    changes: Callable[[], DataFrame],
    cluster: SparkCluster,
    connection: Connection[Any],
    mysql_address: MySqlAddress,
    database: str,
    orders: TableId,
    tmp_path: Path,
) -> None:
    received, killed = ReceivedRows(), 0
    writes = Writer(lambda: connect(mysql_address, database=database), [(ORDERS, orders)], seed=3, rate=100)
    with writes, running(changes(), received, tmp_path) as query:
        wait(query, received, lambda received: received.counts["u"])
        send.to_table(connection, f"`{database}`.signals", "one", "execute-snapshot", data_of(orders))
        for share, worker in zip((5, 2), cluster.workers, strict=True):
            wait(query, received, lambda received, share=share: received.counts["r"] > ROWS // share)
            killed += worker.kill_executors()
        before = received.counts["u"]
        wait(query, received, lambda received: received.counts["u"] > before + 50)
    with running(changes(), received, tmp_path) as query:
        wait(query, received, lambda received: received.state("id") == table_rows(connection, orders))

    assert killed == len(cluster.workers)
    assert backwards(received) == []
    reads = [row["id"] for row in received.rows if row["_op"] == "r"]
    assert len(reads) == len(set(reads))
    places = [row["_position"] for row in received.rows]
    assert len(set(places)) == len(places)


def data_of(table: TableId) -> dict[str, Any]:
    return send.snapshot_data([str(table)])
