"""The order in which a replica's workers commit is the order in which a job tells its changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.replicas import begin_binlog_anew, catch_up, execute, follow
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


class Pair(NamedTuple):
    source: MySqlAddress
    replica: MySqlAddress


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with (
        servers(kafka=False, mysql_options=["--server-id=83"]) as source,
        servers(kafka=False, mysql_options=["--server-id=84", "--replica-parallel-workers=4"]) as replica,
    ):
        begin_binlog_anew(replica.mysql)
        follow(replica.mysql, source.mysql)
        yield Pair(source.mysql, replica.mysql)


def order_of_tables(pair: Pair, kafka: str, tmp_path: Path, *, preserved: bool) -> list[str]:
    """Return the tables of two changes as a job on the replica tells them.

    The source commits a change of `customers`, then one of `orders`. On the replica a lock holds up the worker that has
    the first change.
    """
    database = "kept" if preserved else "free"
    execute(
        pair.source,
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.customers (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {database}.orders (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {database}.customers VALUES (1, 0)",
        f"INSERT INTO {database}.orders VALUES (0, 0)",
    )
    catch_up(pair.replica, pair.source)
    execute(
        pair.replica,
        "STOP REPLICA SQL_THREAD",
        f"SET GLOBAL replica_preserve_commit_order = {int(preserved)}",
        "START REPLICA SQL_THREAD",
    )
    # An applier that has just begun executes its first transaction alone.
    execute(pair.source, f"INSERT INTO {database}.orders VALUES (2, 0)")
    catch_up(pair.replica, pair.source)
    settings = settings_of(pair.replica, kafka, f"order-{database}", database, include__schema__changes="false")
    job = PlannedJob(settings, str(tmp_path / "checkpoint"), buckets=1)
    try:
        with closing(connect(pair.replica)) as other, other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"SELECT * FROM {database}.customers FOR UPDATE")
            execute(
                pair.source, f"UPDATE {database}.customers SET v = 1", f"INSERT INTO {database}.orders VALUES (1, 1)"
            )
            # The second change is visible at once, or its worker waits for the first one to commit.
            waits = (
                "SELECT COUNT(*) FROM information_schema.processlist"
                " WHERE state LIKE 'Waiting for preceding transaction to commit%'"
            )
            seen = waits if preserved else f"SELECT COUNT(*) FROM {database}.orders WHERE id = 1"
            wait_until(lambda: execute(pair.replica, seen) == [(1,)])
            cursor.execute("ROLLBACK")
        job.batches_until(lambda: len(job.sent) == 2, "two changes")
    finally:
        job.close()
    return [each.value["source"]["table"] for each in job.sent]


def test_changes_are_told_in_the_order_of_the_source_where_the_replica_preserves_it(
    pair: Pair, kafka_address: str, tmp_path: Path
) -> None:
    assert order_of_tables(pair, kafka_address, tmp_path, preserved=True) == ["customers", "orders"]


def test_an_order_is_told_before_its_customer_where_the_replica_preserves_no_order(
    pair: Pair, kafka_address: str, tmp_path: Path
) -> None:
    """`incsnap check` refuses such a replica: a consumer would see states that the source never had."""
    assert order_of_tables(pair, kafka_address, tmp_path, preserved=False) == ["orders", "customers"]
