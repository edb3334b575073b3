"""TINYINT(1) as a boolean: its length is asked of the server, for rows of the stream and for rows read by SELECT."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, planned_jobs, settings_of

pytestmark = pytest.mark.servers


@pytest.fixture
def session(mysql_address: MySqlAddress, database: str) -> Iterator[Any]:
    with closing(connect(mysql_address, database=database)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, flag BOOLEAN NOT NULL DEFAULT 1, level TINYINT, other TINYINT(1))"
        )
        cursor.execute("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        yield cursor


@pytest.fixture
def job(
    session: Any, mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, tmp_path: Path
) -> Iterator[PlannedJob]:
    options = {
        "converters": "flags",
        "flags.type": "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
        "flags.selector": r".*\.(flag|level)",
        "include.schema.changes": "false",
        "signal.data.collection": f"{database}.signals",
    }
    session.execute("INSERT INTO t VALUES (1, 0, 1, 1)")
    with planned_jobs(partial(settings_of, mysql_address, kafka_address, topic_prefix, database), tmp_path) as make:
        yield make(**options)


def test_both_ways_write_what_the_definition_says(
    session: Any, job: PlannedJob, topic_prefix: str, database: str
) -> None:
    topic = f"{topic_prefix}.{database}.t"
    data = json.dumps({"type": "incremental", "data-collections": [f"{database}.t"]})
    session.execute("INSERT INTO signals VALUES ('snap', 'execute-snapshot', %s)", (data,))
    job.until(topic)
    session.execute("INSERT INTO t VALUES (2, 5, -1, 0)")
    job.until(topic, 2)
    session.execute("ALTER TABLE t MODIFY flag TINYINT NOT NULL")
    session.execute("INSERT INTO t VALUES (3, 5, 0, 0)")
    job.until(topic, 3)

    changes = [(each.value["op"], each.value["after"]) for each in job.of(topic)]
    assert [json.dumps(each) for each in changes] == [
        '["r", {"id": 1, "flag": false, "level": 1, "other": 1}]',
        '["c", {"id": 2, "flag": true, "level": -1, "other": 0}]',
        # Another length is another definition, as every statement about the table may bring.
        '["c", {"id": 3, "flag": 5, "level": 0, "other": 0}]',
    ]
