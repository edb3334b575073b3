"""Blocking snapshots of Debezium's: asked for as there, and read beside the stream."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from pymysql.cursors import Cursor

from lab.addresses import MySqlAddress
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


def test_a_blocking_snapshot_is_read_beside_the_stream_with_its_select(
    cursor: Cursor, mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> None:
    table = f"{database}.t"
    settings = settings_of(
        mysql_address,
        kafka_address,
        topic_prefix,
        database,
        snapshot__mode="no_data",
        signal__data__collection=f"{database}.sig",
    )
    cursor.execute(f"CREATE TABLE {database}.sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data TEXT)")
    cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))")
    cursor.execute(f"INSERT INTO {table} VALUES (1, 'old'), (2, 'new'), (3, 'new')")
    job = PlannedJob(settings, str(tmp_path / "checkpoint"))
    with closing(job):
        data = (
            f'{{"type": "BLOCKING", "data-collections": ["{table}"], "additional-conditions": '
            f'[{{"data-collection": "{table}", "filter": "SELECT * FROM {table} WHERE v = \'new\'"}}]}}'
        )
        cursor.execute(f"INSERT INTO {database}.sig VALUES ('b', 'execute-snapshot', %s)", (data,))
        cursor.execute(f"INSERT INTO {table} VALUES (4, 'meanwhile')")
        topic = f"{topic_prefix}.{table}"
        job.until(topic, 3)
        job.batches_until(lambda: not job.offset.snapshot.active, "end of the snapshot")
    sent = [(each.value["op"], each.value["after"]["id"]) for each in job.of(topic)]
    assert sorted(sent) == [("c", 4), ("r", 2), ("r", 3)]
