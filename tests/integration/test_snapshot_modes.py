"""Tests of `snapshot.mode` and its related settings: which rows a start reads, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.config.settings import Settings
from lab.addresses import MySqlAddress
from signals import send
from tests.support.planned_job import MakeJob, PlannedJob, planned_jobs, settings_of

pytestmark = pytest.mark.servers

_TABLES = ("customers", "items", "orders")


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    for table in _TABLES:
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))")
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", [(1, "a"), (2, "b"), (3, "c")])
    return cursor


@pytest.fixture
def make_settings(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Callable[..., Settings]:
    def make(**more: str) -> Settings:
        options = {
            "snapshot__mode": "initial",
            "signal__enabled__channels": "file",
            "signal__file": str(tmp_path / "signals"),
            "notification__enabled__channels": "sink",
            "notification__sink__topic__name": f"{topic_prefix}-notifications",
            **more,
        }
        return settings_of(mysql_address, kafka_address, topic_prefix, database, **options)

    return make


@pytest.fixture
def make_job(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[MakeJob]:
    with planned_jobs(make_settings, tmp_path, one_checkpoint=True) as make:
        yield make


def until_idle(job: PlannedJob) -> None:
    job.batches_until(lambda: job.offset.batch > 0 and not job.offset.snapshot.active, "end of the snapshot")


def reads(job: PlannedJob, database: str) -> dict[str, int]:
    """Rows that were read of each table."""
    ops = [each.topic for each in job.sent if isinstance(each.value, dict) and each.value.get("op") == "r"]
    return {topic.removeprefix(f"{job.settings.topic_prefix}.{database}."): n for topic, n in Counter(ops).items()}


def notified(job: PlannedJob, kind: str) -> list[str]:
    """The ids of the notifications of that type."""
    notes = (each.value for each in job.of(job.settings.notifications.sink_topic or ""))
    return [note["id"] for note in notes if note["type"] == kind]


def test_a_new_job_reads_all_captured_tables_and_tells_it(cursor: Cursor, make_job: Any, database: str) -> None:
    job = make_job(notification__enabled__channels="sink")
    until_idle(job)

    assert reads(job, database) == dict.fromkeys(_TABLES, 3)
    assert notified(job, "STARTED") == notified(job, "COMPLETED") == [f"initial-{job.offset.job_id}"]


def test_a_job_that_began_without_a_snapshot_gets_none_by_another_mode(
    cursor: Cursor, make_job: Any, make_settings: Any, database: str, topic_prefix: str
) -> None:
    job = make_job(snapshot__mode="no_data")
    for mode in ("initial", "initial_only", "when_needed"):
        job.restart(make_settings(snapshot__mode=mode))
        cursor.execute("INSERT INTO items SELECT MAX(id) + 1, 'x' FROM items")
        job.until(f"{topic_prefix}.{database}.items", len(job.of(f"{topic_prefix}.{database}.items")) + 1)

    assert reads(job, database) == {}
    assert not job.offset.snapshot.active


def test_each_start_reads_the_tables_with_always_and_no_restart_of_the_query_does(
    cursor: Cursor, make_job: Any, database: str
) -> None:
    job = make_job(snapshot__mode="always")
    until_idle(job)
    job.restart()
    cursor.execute("INSERT INTO items VALUES (4, 'd')")
    job.until(f"{job.settings.topic_prefix}.{database}.items", 4)
    assert reads(job, database) == dict.fromkeys(_TABLES, 3)

    job.restart(run="second")
    job.batches_until(lambda: len(notified(job, "COMPLETED")) == 2, "end of the second snapshot")
    assert reads(job, database) == {"customers": 6, "items": 7, "orders": 6}
    assert notified(job, "STARTED") == ["initial-first", "initial-second"]


def test_a_new_start_ends_unfinished_initial_snapshots_and_continues_signalled_ones(
    cursor: Cursor, make_job: Any, database: str
) -> None:
    job = make_job(snapshot__mode="always", snapshot__include__collection__list=rf"{database}\.orders")
    asked = send.snapshot_data([f"{database}.items"])
    send.to_file(job.settings.signals.file, "mine", "execute-snapshot", asked)
    job.batches_until(lambda: "mine" in notified(job, "STARTED"), "start of both snapshots")
    assert notified(job, "COMPLETED") == []

    job.restart(run="second")
    job.batches_until(lambda: len(notified(job, "COMPLETED")) == 2, "end of both snapshots")

    assert notified(job, "ABORTED") == ["initial-first"]
    assert sorted(notified(job, "COMPLETED")) == ["initial-second", "mine"]
    assert reads(job, database)["items"] == 3


def test_only_chosen_tables_and_rows_are_read_at_the_start(cursor: Cursor, make_job: Any, database: str) -> None:
    overrides = f"snapshot.select.statement.overrides.{database}.orders"
    job = make_job(
        **{
            "snapshot__include__collection__list": rf"{database}\.(orders|items)",
            "snapshot__select__statement__overrides": f"{database}.orders",
            overrides: f"SELECT * FROM {database}.orders WHERE v = 'a' OR id = 3",
        }
    )
    until_idle(job)
    assert reads(job, database) == {"items": 3, "orders": 2}

    asked = send.snapshot_data([f"{database}.orders", f"{database}.customers"])
    send.to_file(job.settings.signals.file, "all", "execute-snapshot", asked)
    job.batches_until(lambda: "all" in notified(job, "COMPLETED"), "end of the signal's snapshot")
    assert reads(job, database) == {"items": 3, "orders": 5, "customers": 3}
