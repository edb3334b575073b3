"""A test of the sizes of chunks of a real table: they follow the time that the server needs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from incsnap.mysql.session import connect, query
from lab.addresses import MySqlAddress
from signals import send
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


def chunk_sizes(job: PlannedJob) -> list[int]:
    return [window.rows for _, end in job.batches for window in end.snapshot.planned]


def test_chunks_of_quick_rows_grow_and_chunks_of_slow_rows_shrink(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> None:
    settings = settings_of(
        mysql_address, kafka_address, topic_prefix, database, signal__data__collection=f"{database}.signals"
    )
    with closing(connect(settings.mysql)) as connection:
        query(connection, f"CREATE TABLE {database}.signals (id VARCHAR(42), type VARCHAR(32), data TEXT)")
        for name, rows in (("quick", 60_000), ("slow", 8_000)):
            query(connection, f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY)")
            query(
                connection,
                f"INSERT INTO {database}.{name} WITH RECURSIVE n AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n"
                f" WHERE id < {rows}) SELECT /*+ SET_VAR(cte_max_recursion_depth=100000) */ id FROM n",
            )
        job = PlannedJob(settings, str(tmp_path))
        with closing(job):
            for name, rows, condition in (("quick", 60_000, ""), ("slow", 8_000, "SLEEP(0.002) = 0")):
                table, before = f"{database}.{name}", len(chunk_sizes(job))
                data = send.snapshot_data([table], [(table, condition)] if condition else [])
                send.to_table(connection, f"{database}.signals", name, "execute-snapshot", data)
                job.until(f"{topic_prefix}.{table}", rows)
                sizes = chunk_sizes(job)[before:]
                assert len(job.of(f"{topic_prefix}.{table}")) == rows
                if condition:
                    # Two milliseconds a row, and a little for the server's clock; two seconds are aimed at.
                    assert min(sizes) < 1_000 < sizes[0]
                else:
                    assert sizes[0] == 2_500
                    assert max(sizes) >= 10_000
