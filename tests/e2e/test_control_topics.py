"""Transactions, truncations and schema changes reach their topics exactly once, although the job is killed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from lab.captured_database import CapturedDatabase
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

#: Batches are smaller than a transaction.
SETTINGS = {
    "max.batch.size": "6",
    "provide.transaction.metadata": "true",
    "skipped.operations": "none",
    "include.query": "true",
}
ROUNDS = 4


def test_control_records_come_exactly_once_though_the_job_is_killed(play: CapturedDatabase) -> None:
    tables = {"table.include.list": rf"{play.database}\.(a|b|marks)"}
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE `{play.database}`")
        for table in ("a", "b"):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
        cursor.execute("SET SESSION binlog_rows_query_log_events = ON")
        with play.job({**SETTINGS, **tables}) as job:
            job.wait_until_streaming()
            for nth in range(ROUNDS):
                cursor.execute("BEGIN")
                for row in range(4):
                    cursor.execute(f"INSERT INTO a VALUES ({nth * 10 + row}, 0)")
                    cursor.execute(f"INSERT INTO b VALUES ({nth * 10 + row}, 0)")
                cursor.execute(f"UPDATE a SET id = -id - 1 WHERE id = {nth * 10}")
                cursor.execute("COMMIT")
            cursor.execute("TRUNCATE TABLE b")
            cursor.execute("ALTER TABLE a ADD COLUMN w INT")
            job.wait_until("some was sent", lambda: len(_read(play, "a")) > 4, every=0.01)
            job.kill()
        with play.job({**SETTINGS, **tables}) as job:
            job.wait_until("all was sent", lambda: _complete(play))
            job.wait_until("the change was told", lambda: _altered(play) != [])
            job.stop()

    ends = _ends(play)
    assert Counter(value["event_count"] for value in ends) == {10: ROUNDS}
    assert len({value["id"] for value in ends}) == ROUNDS
    values = [value for name in "ab" for value in _read(play, name)]
    changes = [value for value in values if value["op"] != "t"]
    numbers = Counter((value["transaction"]["id"], value["transaction"]["total_order"]) for value in changes)
    assert numbers == Counter((value["id"], number) for value in ends for number in range(1, 11))
    assert [value["source"]["table"] for value in values if value["op"] == "t"] == ["b"]
    assert all(value["source"]["query"].startswith(("INSERT", "UPDATE")) for value in changes)
    (altered,) = _altered(play)
    assert [column["name"] for column in altered["tableChanges"][0]["table"]["columns"]] == ["id", "v", "w"]


def _complete(play: CapturedDatabase) -> bool:
    return len(_ends(play)) >= ROUNDS and len(_read(play, "b")) > ROUNDS * 4


def _ends(play: CapturedDatabase) -> list[Any]:
    values = _values(play, f"{play.prefix}.transaction")
    return [value for value in values if value["status"] == "END"]


def _altered(play: CapturedDatabase) -> list[Any]:
    return [value for value in _values(play, play.prefix) if value["ddl"].startswith("ALTER")]


def _read(play: CapturedDatabase, table: str) -> list[Any]:
    return _values(play, f"{play.prefix}.{play.database}.{table}")


def _values(play: CapturedDatabase, topic: str) -> list[Any]:
    known = AdminClient({"bootstrap.servers": play.kafka, "log_level": 0}).list_topics(timeout=20).topics
    if topic not in known:
        return []
    records = read_all(play.kafka, topic, list(known[topic].partitions))
    return [json.loads(record.value) for record in records if record.value is not None]
