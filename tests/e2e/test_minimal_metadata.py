"""A whole job on a server with binlog_row_metadata=MINIMAL: a snapshot beside changes, DDL statements, a stop."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.mysql_client import connect
from lab.running_job import end_of
from lab.table_designs import ORDERS
from lab.workload import Writer

pytestmark = pytest.mark.servers

ROWS = 20_000


@pytest.fixture
def minimal(
    minimal_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    with closing(connect(minimal_mysql)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
    with captured_database(minimal_mysql, kafka_address, "shop", topic_prefix, tmp_path) as made:
        yield made
        sys.stdout.write(f"The job's log ends:\n{end_of(made.log, 60)}\n")


def test_what_a_consumer_replays_is_the_table(minimal: CapturedDatabase) -> None:
    play = minimal
    orders = play.create(ORDERS, ROWS)
    with play.notices() as notices, closing(play.connect()) as connection, connection.cursor() as cursor:
        with Writer(play.connect, play.tables, seed=14, rate=100):
            with play.job({"incremental.snapshot.chunk.size": "1000"}) as job:
                job.wait_until_streaming()
                play.execute_by_row("all", [orders])
                cursor.execute(f"ALTER TABLE {orders.sql} ADD INDEX one (id), ALGORITHM=INPLACE")
                job.wait_until("the snapshot was complete", lambda: notices.completed("all"))
                job.stop()
            cursor.execute(f"ALTER TABLE {orders.sql} ADD INDEX two (id), ALGORITHM=INPLACE")
        with play.job({}) as job:
            play.drain(job)
            job.stop()

    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []
    assert verdict.replay.counts["r"] > 0
