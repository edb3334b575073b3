"""A job on a server with binlog_row_metadata=MINIMAL: a snapshot beside changes, DDL statements, a stop, verify."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.mysql_client import connect
from lab.running_job import end_of
from lab.table_designs import ORDERS
from lab.workload import Writer
from tests.e2e.test_verify import verify
from tests.support.faulty_topic import send
from tests.support.kafka import read_all

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


def test_verify_names_a_difference_behind_a_statement_that_added_a_column(minimal: CapturedDatabase) -> None:
    play = minimal
    altered, other = TableId("shop", "altered"), TableId("shop", "other")
    settings = {"table.include.list": f"{play.properties()['table.include.list']},shop\\.altered,shop\\.other"}
    with closing(play.connect()) as connection, connection.cursor() as cursor:
        for table in (altered, other):
            cursor.execute(f"CREATE TABLE {table.sql} (id INT PRIMARY KEY, v INT)")
        with play.job(settings) as job:
            job.wait_until_streaming()
            for table in (altered, other):
                cursor.execute(f"INSERT INTO {table.sql} VALUES (1, 1)")
            cursor.execute(f"ALTER TABLE {altered.sql} ADD w INT")
            cursor.execute(f"INSERT INTO {altered.sql} VALUES (2, 2, 2), (3, 3, 3)")
            play.drain(job)
            topic = play.topic(altered)
            (sent,) = [each for each in read_all(play.kafka, topic, range(2)) if each.key == b'{"id":2}']
            assert sent.value is not None
            send(play.kafka, topic, [replace(sent, value=sent.value.replace(b'"v":2', b'"v":9'))])
            code, answers = verify(play, "--allow-unverifiable", settings=settings)
            job.kill()

    # The record of the first row lacks the new column.
    assert (answers["altered"]["wrong"], answers["altered"]["unverifiable"]) == (1, 1)
    assert (code, answers["other"]["equal"]) == (1, True)
