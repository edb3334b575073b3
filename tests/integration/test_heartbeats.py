"""Heartbeats and their query, on a real server, through the planner and the tasks of its batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.config.settings import Settings
from incsnap.planner.heartbeat import HeartbeatAction
from lab.addresses import MySqlAddress
from tests.support.planned_job import MakeJob, planned_jobs, run, settings_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    return cursor


@pytest.fixture
def make_job(
    mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, tmp_path: Path
) -> Iterator[MakeJob]:
    def settings(**more: str) -> Settings:
        options = {"heartbeat__interval__ms": "20", "include__schema__changes": "false", **more}
        return settings_of(mysql_address, kafka_address, topic_prefix, database, **options)

    with planned_jobs(settings, tmp_path) as make:
        yield make


def test_heartbeats_come_while_nothing_changes(cursor: Cursor, make_job: MakeJob, topic_prefix: str) -> None:
    job, before = make_job(), time.time_ns() // 1_000_000
    topic = f"__debezium-heartbeat.{topic_prefix}"
    job.until(topic, 3)

    assert [each.key for each in job.of(topic)][:3] == [{"serverName": topic_prefix}] * 3
    times = [each.value["ts_ms"] for each in job.of(topic)]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time_ns() // 1_000_000
    assert all(each.value.keys() == {"ts_ms"} for each in job.of(topic))


@pytest.mark.parametrize("interval", ["0", "3600000"])
def test_no_heartbeat_comes_before_its_time(
    cursor: Cursor, make_job: MakeJob, database: str, topic_prefix: str, interval: str
) -> None:
    job = make_job(heartbeat__interval__ms=interval)
    cursor.execute("INSERT INTO t VALUES (1)")
    job.until(f"{topic_prefix}.{database}.t")
    assert {each.topic for each in job.sent} == {f"{topic_prefix}.{database}.t"}


def test_a_heartbeat_comes_behind_the_events_of_its_batch(
    cursor: Cursor, make_job: MakeJob, database: str, topic_prefix: str
) -> None:
    # Records of two buckets have no order: one bucket takes the events and the heartbeats.
    job, events = make_job(buckets=1, topic__heartbeat__name="beats"), f"{topic_prefix}.{database}.t"
    batches: list[list[str]] = []

    def together() -> bool:
        cursor.execute(f"INSERT INTO t VALUES ({len(batches)})")
        before = len(job.sent)
        job.batch()
        batches.append([each.topic for each in job.sent[before:]])
        return {events, "beats"} <= set(batches[-1])

    wait_until(together)

    assert [topics for topics in batches if topics != sorted(topics, key="beats".__eq__)] == []


def test_a_batch_that_is_run_again_has_its_heartbeat_again(
    cursor: Cursor, make_job: MakeJob, topic_prefix: str
) -> None:
    json = "org.apache.kafka.connect.json.JsonConverter"
    job = make_job(value__converter=json, key__converter=json)
    topic = f"__debezium-heartbeat.{topic_prefix}"
    job.until(topic, 2)
    [sent, *_] = job.of(topic)
    start, end = next((start, end) for start, end in job.batches if end.control == (topic,))
    assert sent.value["schema"]["name"] == "io.debezium.connector.common.Heartbeat"
    assert sent.key == {
        "schema": {
            "type": "struct",
            "fields": [{"type": "string", "optional": False, "field": "serverName"}],
            "optional": False,
            "name": "io.debezium.connector.common.ServerNameKey",
            "version": 1,
        },
        "payload": {"serverName": topic_prefix},
    }

    job.offset = start
    job.restart()
    assert run(job.planner.parts(start, end), job.settings, job.root) == [sent]


def test_the_query_is_executed_with_heartbeats_as_the_server_would_execute_it(
    cursor: Cursor, make_job: MakeJob, database: str
) -> None:
    cursor.execute("CREATE TABLE beats (n INT AUTO_INCREMENT PRIMARY KEY, zone TEXT, mode TEXT)")
    statement = f"INSERT INTO {database}.beats (zone, mode) VALUES (@@time_zone, @@sql_mode)"
    job = make_job(heartbeat__action__query=statement)
    rows: list[tuple[Any, ...]] = []

    def executed() -> bool:
        cursor.execute("SELECT zone, mode FROM beats")
        rows[:] = cursor.fetchall()
        return len(rows) >= 2

    job.batches_until(executed, "second row of the query")
    cursor.execute("SELECT @@GLOBAL.time_zone, @@GLOBAL.sql_mode")
    assert set(rows) == set(cursor.fetchall())


def test_a_query_that_fails_is_told_once_and_heartbeats_go_on(
    cursor: Cursor, make_job: MakeJob, database: str, topic_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = make_job(heartbeat__action__query=f"INSERT INTO {database}.later VALUES ()")
    topic = f"__debezium-heartbeat.{topic_prefix}"

    with caplog.at_level(logging.INFO):
        job.batches_until(lambda: "is not executed" in caplog.text, "warning")
        job.until(topic, len(job.of(topic)) + 3)
        cursor.execute("CREATE TABLE later (n INT AUTO_INCREMENT PRIMARY KEY)")
        job.batches_until(lambda: "is executed again" in caplog.text, "end of it")

    [message] = [each.message for each in caplog.records if "is not executed" in each.message]
    assert "later' doesn't exist (error 1146)" in message


def test_the_query_is_not_executed_in_a_read_only_job(cursor: Cursor, make_job: MakeJob, topic_prefix: str) -> None:
    cursor.execute("CREATE TABLE beats (n INT AUTO_INCREMENT PRIMARY KEY)")
    job = make_job(read__only="true", heartbeat__action__query="INSERT INTO beats VALUES ()")
    assert job.settings.heartbeat.action_query == ""
    job.until(f"__debezium-heartbeat.{topic_prefix}", 2)


def test_a_heartbeat_waits_for_no_lock_that_its_query_waits_for(
    cursor: Cursor, make_job: MakeJob, database: str, topic_prefix: str
) -> None:
    cursor.execute("INSERT INTO t VALUES (1)")
    cursor.execute("BEGIN")
    cursor.execute("SELECT * FROM t WHERE id = 1 FOR UPDATE")
    job = make_job(heartbeat__action__query=f"UPDATE {database}.t SET id = 2")
    job.until(f"__debezium-heartbeat.{topic_prefix}", 5)
    cursor.execute("SELECT id FROM t")
    assert cursor.fetchall() == ((1,),)
    cursor.execute("ROLLBACK")
    job.until(f"{topic_prefix}.{database}.t", 1)


def test_the_query_is_not_executed_on_a_server_that_is_read_only(
    mysql_address: MySqlAddress,
    kafka_address: str,
    database: str,
    cursor: Cursor,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server's own variable is everybody's: what is asked is changed instead."""
    cursor.execute("CREATE TABLE beats (n INT AUTO_INCREMENT PRIMARY KEY)")
    monkeypatch.setattr("incsnap.planner.heartbeat._READ_ONLY", "SELECT 1")
    settings = settings_of(mysql_address, kafka_address, "unused", database)
    action = HeartbeatAction(settings.mysql, f"INSERT INTO {database}.beats VALUES ()")
    with closing(action), caplog.at_level(logging.WARNING):
        action.ask()
        wait_until(lambda: "the server is read-only" in caplog.text)
    cursor.execute("SELECT * FROM beats")
    assert not cursor.fetchall()
