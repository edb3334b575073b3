"""A job that is started again with settings that give its records another form, in the middle of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from lab.addresses import MySqlAddress
from signals import send
from tests.support.planned_job import MakeJob, PlannedJob, planned_jobs, settings_of

pytestmark = pytest.mark.servers

_ROWS = 12
_LAST = _ROWS - 1


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window has a few parts, and a batch sends one."""
    monkeypatch.setattr("incsnap.tasks.chunk.PART_BYTES", 2_000)
    monkeypatch.setattr("incsnap.planner.batch_budget.BatchBudget.release_bytes", 0)


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    cursor.execute("CREATE TABLE t (id BINARY(2) PRIMARY KEY, v VARCHAR(9), n INT)")
    rows = [(number.to_bytes(2), f"old{number}", number) for number in range(_ROWS)]
    cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows)
    return cursor


@pytest.fixture
def make_job(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[MakeJob]:
    def settings(**more: str) -> Settings:
        options = {"signal__enabled__channels": "file", "signal__file": str(tmp_path / "signals"), **more}
        return settings_of(mysql_address, kafka_address, topic_prefix, database, **options)

    with planned_jobs(settings, tmp_path) as make:
        yield make


def until_complete(job: PlannedJob) -> None:
    job.batches_until(lambda: not job.offset.snapshot.active, "end of the snapshot")


def rows(job: PlannedJob) -> list[tuple[str, Any, Any]]:
    """Topic, key and row of each record of the table."""
    values = [(each, each.value.get("payload", each.value)) for each in job.sent]
    return [(each.topic, each.key, value["after"]) for each, value in values if "after" in value]


def by_number(numbered_rows: list[tuple[str, Any, Any]]) -> dict[int, tuple[str, Any, Any]]:
    return {row["n"]: (topic, key, row) for topic, key, row in numbered_rows}


def ask(job: PlannedJob, database: str) -> None:
    send.to_file(job.settings.signals.file, "s", "execute-snapshot", send.snapshot_data([f"{database}.t"]))


@pytest.mark.parametrize(
    "options",
    [
        {"key__converter": "JsonConverter"},
        {"message__key__columns": ".*:n"},
        {"topic__delimiter": "-"},
    ],
    ids=lambda options: next(iter(options)).replace("__", "."),
)
def test_after_a_change_of_form_no_row_is_old_in_form_or_in_time(
    cursor: Cursor,
    make_job: Callable[..., PlannedJob],
    database: str,
    options: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = make_job()
    ask(job, database)
    job.batches_until(lambda: bool(rows(job)), "first row")
    assert len(rows(job)) < _ROWS // 2, "a part of the window is sent"

    anew = make_job(**options)
    job.restart(anew.settings)
    job.sent.clear()
    cursor.execute("UPDATE t SET v = 'new' WHERE n = %s", (_LAST,))
    with monkeypatch.context() as patch:  # no part is sent before the update has come, and some are behind it
        patch.setattr("incsnap.planner.stream_port._seconds_to_wait", lambda *_, **__: 10.0)
        job.batches_until(lambda: _LAST in by_number(rows(job)), "last row")
    until_complete(job)

    anew.batches_until(lambda: bool(rows(anew)), "first row")
    until_complete(anew)
    in_new_form = by_number(rows(anew))
    assert [each for each in rows(job) if each != in_new_form[each[2]["n"]]] == []
    assert by_number(rows(job)) == in_new_form


@pytest.mark.usefixtures("cursor")
def test_a_chunk_that_nobody_has_read_is_asked_for_in_the_new_form_alone(
    make_job: Callable[..., PlannedJob], database: str, topic_prefix: str
) -> None:
    job = make_job()
    ask(job, database)
    job.batches_until(lambda: bool(job.offset.snapshot.planned), "planned window")
    for window in job.offset.snapshot.planned:
        WindowBuffers(job.root).delete(window.id)

    job.restart(make_job(topic__delimiter="-").settings)
    until_complete(job)
    assert sorted(row["n"] for _, _, row in rows(job)) == list(range(_ROWS))
    assert {topic for topic, _, _ in rows(job)} == {f"{topic_prefix}-{database}-t"}
