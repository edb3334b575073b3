"""Hard cases of `--replace-job`, with whole jobs on a server with MySQL's default settings.

Buckets have ended at different batches, tables were changed since, the binlog is purged, or a checkpoint was copied.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pymysql.cursors import Cursor

from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.mysql_client import connect
from lab.running_job import JobFailed, end_of, session_pids
from tests.support.kafka import read_all
from tests.support.two_jobs import ROWS, ended, insert, second_job, times_seen

pytestmark = [pytest.mark.servers, pytest.mark.long]

#: Number of tables: several buckets must have a share of the batch.
TABLES = [f"t{number}" for number in range(8)]
#: Bytes beyond the client's default limit: the bucket of this row cannot send its share.
LARGE = 1_200_000


@pytest.fixture
def shop(
    minimal_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    with closing(connect(minimal_mysql)) as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS shop")
        cursor.execute("CREATE DATABASE shop")
    with captured_database(minimal_mysql, kafka_address, "shop", topic_prefix, tmp_path) as made:
        yield made
        for log in sorted(tmp_path.glob("*.log")):
            sys.stdout.write(f"{log.name} ends:\n{end_of(log, 30)}\n")


def purge(cursor: Cursor) -> None:
    """Leave only the newest binlog file."""
    cursor.execute("FLUSH BINARY LOGS")
    cursor.execute("SHOW BINARY LOGS")
    cursor.execute("PURGE BINARY LOGS TO %s", (cursor.fetchall()[-1][0],))


def sent(play: CapturedDatabase) -> Counter[tuple[str, int]]:
    """Return how often each row was sent, by table and id."""
    return Counter(
        (table, int((record.key or b"").split(b":")[1].rstrip(b"}")))
        for table in TABLES
        for record in read_all(play.kafka, f"{play.prefix}.shop.{table}", (0, 1))
    )


def test_buckets_with_different_last_batches_continue_exactly_after_a_table_change(
    shop: CapturedDatabase, tmp_path: Path
) -> None:
    settings = {"table.include.list": r"shop\.(t[0-9]|marks)"}
    enough = {**settings, "producer.max.request.size": "8000000"}
    with shop.connect() as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, note LONGTEXT)")
        with shop.job(settings) as job:
            job.wait_until_streaming()
            for table in TABLES:
                cursor.execute(f"INSERT INTO shop.{table} VALUES (0, 'first')")
            shop.drain(job)
            connection.begin()
            for table in TABLES:
                cursor.execute(f"INSERT INTO shop.{table} VALUES (1, 'small')")
            cursor.execute("INSERT INTO shop.t7 VALUES (2, %s)", ("x" * LARGE,))
            connection.commit()
            with pytest.raises(JobFailed):
                job.wait_until("its end", lambda: False)
        before = sent(shop)
        assert 0 < sum(before[table, 1] for table in TABLES) < len(TABLES)
        cursor.execute("INSERT INTO shop.t3 VALUES (3, 'before the statement')")
        cursor.execute("ALTER TABLE shop.t3 ADD COLUMN w INT FIRST")
        cursor.execute("INSERT INTO shop.t3 (id, note, w) VALUES (4, 'behind the statement', 5)")

        with second_job(shop, tmp_path / "other", "--replace-job", settings=enough) as second:
            shop.drain(second)
            second.stop()
        rows = [*((table, number) for table in TABLES for number in (0, 1)), ("t7", 2), ("t3", 3), ("t3", 4)]
        assert sent(shop) == dict.fromkeys(rows, 1)

        # The replaced job could begin again, since its position is purged, but it is refused before that.
        purge(cursor)
        with shop.job({**enough, "snapshot.mode": "when_needed"}) as again:
            assert ended(again) == 2, again.log_tail()
            assert "has replaced the job" in again.log_tail(), again.log_tail()
        assert sent(shop) == dict.fromkeys(rows, 1)


def test_a_take_over_whose_binlog_is_purged_is_refused_and_the_first_job_goes_on(
    shop: CapturedDatabase, tmp_path: Path
) -> None:
    rows = shop.create(ROWS, 10)
    with shop.connect() as connection, connection.cursor() as cursor, shop.job() as first:
        first.wait_until_streaming()
        insert(shop, range(1000, 1020))
        shop.drain(first)
        frozen = session_pids(first.pid)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        # The server has sent these changes to the frozen job, which has not read them.
        insert(shop, range(1020, 1040))
        purge(cursor)
        with second_job(shop, tmp_path / "other", "--replace-job") as second:
            assert ended(second) == 2, second.log_tail()
            assert "the binlog no longer holds" in second.log_tail(), second.log_tail()
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        insert(shop, range(1040, 1060))
        shop.drain(first)
        first.stop()
    assert times_seen(shop, shop.topic(rows), range(1000, 1060)) == Counter({1: 60})


def test_a_copied_checkpoint_replaces_a_dead_original_for_good(shop: CapturedDatabase, tmp_path: Path) -> None:
    rows = shop.create(ROWS, 10)
    with shop.job() as first:
        first.wait_until_streaming()
        insert(shop, range(1000, 1020))
        shop.drain(first)
        first.kill()
    shutil.copytree(shop.checkpoint, tmp_path / "older")
    with shop.job() as first:
        first.wait_until_streaming()
        insert(shop, range(1020, 1040))
        shop.drain(first)
        with second_job(shop, tmp_path / "older") as copy:
            assert ended(copy) == 2, copy.log_tail()
            assert "runs with this topic.prefix" in copy.log_tail(), copy.log_tail()
        first.kill()
    shutil.copytree(shop.checkpoint, tmp_path / "newest")
    insert(shop, range(1040, 1060))
    with second_job(shop, tmp_path / "newest") as copy:
        shop.drain(copy)
        assert "which tells that it still runs" in copy.log_tail(), copy.log_tail()
        copy.stop()
    with shop.job() as again:
        assert ended(again) == 2, again.log_tail()
        assert "has gone on with a copy" in again.log_tail(), again.log_tail()
    assert times_seen(shop, shop.topic(rows), range(1000, 1060)) == Counter({1: 60})
