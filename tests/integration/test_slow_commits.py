"""A server on which each commit takes 1.5 s: its semi-synchronous replica says late what it has received."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.late_replica import OPTIONS, late_replica
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers
COMMIT_SECONDS, WRITERS, ROWS = 1.5, 3, 3_000


@pytest.fixture(scope="module")
def slow_mysql() -> Iterator[MySqlAddress]:
    """A server of this file alone."""
    with servers(kafka=False, mysql_options=OPTIONS) as started:
        yield started.mysql


class Writers:
    """Threads that commit one after the other, each on a connection of its own, so that a commit is always waiting."""

    def __init__(self, address: MySqlAddress, database: str) -> None:
        self._address, self._database = address, database
        #: Seconds that each commit took.
        self.took: list[float] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _write(self, number: int) -> None:
        # Not all at once: the commits that wait together are told together.
        time.sleep(number * COMMIT_SECONDS / WRITERS)
        with connect(self._address) as connection, connection.cursor() as cursor:
            while not self._stop.is_set():
                began = time.monotonic()
                cursor.execute(f"INSERT INTO {self._database}.written (w) VALUES (%s)", (number,))
                self.took.append(time.monotonic() - began)


def test_a_table_is_begun_and_read_though_every_commit_takes_seconds(
    slow_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    database = "slow"
    with connect(slow_mysql) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"CREATE TABLE {database}.whole (k INT PRIMARY KEY, v CHAR(100) DEFAULT 'x')")
        cursor.execute(f"CREATE TABLE {database}.written (k INT AUTO_INCREMENT PRIMARY KEY, w INT)")
        numbers = ",".join(f"({number})" for number in range(ROWS))
        cursor.execute(f"INSERT INTO {database}.whole (k) VALUES {numbers}")
        connection.commit()
    settings = settings_of(
        slow_mysql,
        kafka_address,
        topic_prefix,
        database,
        signal__enabled__channels="file",
        signal__file=str(tmp_path / "signals"),
        incremental__snapshot__chunk__size="1000",
    )
    with (
        late_replica(slow_mysql, COMMIT_SECONDS) as acknowledged,
        Writers(slow_mysql, database) as writers,
        closing(PlannedJob(settings, str(tmp_path))) as job,
    ):
        # Long enough for commits of all writers to wait.
        job.batches_until(lambda: len(job.of(f"{topic_prefix}.{database}.written")) >= 2 * WRITERS, "changes")
        signal = {"id": "s", "type": "execute-snapshot", "data": {"data-collections": [f"{database}.whole"]}}
        (tmp_path / "signals").write_text(json.dumps(signal) + "\n")
        before = len(acknowledged)
        job.batches_until(lambda: len(job.of(f"{topic_prefix}.{database}.whole")) >= ROWS, "the whole table")
        commits = len(acknowledged) - before

    assert {each.value["op"] for each in job.of(f"{topic_prefix}.{database}.whole")} == {"r"}
    assert sorted(each.key["k"] for each in job.of(f"{topic_prefix}.{database}.whole")) == list(range(ROWS))
    assert min(writers.took) > COMMIT_SECONDS / 2
    # The commits are the clock, however slow the machine is.
    assert commits * COMMIT_SECONDS < 60
