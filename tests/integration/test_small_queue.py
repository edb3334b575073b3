"""A queue that is smaller than what comes at once: one row, one event, one transaction."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from pymysql.cursors import Cursor

from lab.addresses import MySqlAddress
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("queue", ["1", "65536", "300000"])
def test_rows_larger_than_the_queue_flow_through_it(
    queue: str,
    cursor: Cursor,
    mysql_address: MySqlAddress,
    kafka_address: str,
    database: str,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, max__queue__size__in__bytes=queue)
    cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY AUTO_INCREMENT, v MEDIUMTEXT)")
    job = PlannedJob(settings, str(tmp_path / "checkpoint"))
    with closing(job):
        cursor.execute("BEGIN")
        for _ in range(20):
            cursor.execute(f"INSERT INTO {database}.t (v) VALUES (REPEAT('x', 100000))")
        cursor.execute(f"INSERT INTO {database}.t (v) VALUES (REPEAT('x', 100000)), (REPEAT('y', 100000))")
        cursor.execute("COMMIT")
        cursor.execute(f"INSERT INTO {database}.t (v) VALUES ('z')")
        topic = f"{topic_prefix}.{database}.t"
        job.until(topic, 23)
    assert [each.value["after"]["id"] for each in job.of(topic)] == list(range(1, 24))
