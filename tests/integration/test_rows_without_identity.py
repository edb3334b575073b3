"""Tests of snapshots of a table without a key, by a surrogate key, while events change the table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.planner.chunk_readers import ReadOrders
from signals import send
from tests.support.planned_job import PlannedJob, ReadersAtHand

pytestmark = pytest.mark.servers

_ROWS = 60


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    cursor.execute("CREATE TABLE t (s INT, v VARCHAR(9), KEY by_s (s))")
    cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(row // 7, f"v{row % 3}") for row in range(_ROWS)])
    return cursor


def ask(job: PlannedJob, database: str, name: str = "by-s") -> None:
    data = send.snapshot_data([f"{database}.t"], surrogate_key="s")
    send.to_file(job.settings.signals.file, name, "execute-snapshot", data)


def replayed(job: PlannedJob, topic: str, ops: str = "rcd") -> Counter[tuple[Any, ...]]:
    """The rows that a consumer has after it has added and removed rows as the records say."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for each in job.of(topic):
        if each.value is not None and each.value["op"] in ops:
            before, after = each.value["before"], each.value["after"]
            rows.update([tuple(after.values())] if after else [])
            rows.subtract([tuple(before.values())] if before else [])
    return +rows


def test_all_rows_of_a_quiet_table_are_read_once_each(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job(incremental__snapshot__chunk__size="10")
    ask(job, database)
    job.batches_until(lambda: job.offset.batch > 2 and not job.offset.snapshot.active, "end of the snapshot")

    cursor.execute("SELECT s, v FROM t")
    assert replayed(job, f"{topic_prefix}.{database}.t") == Counter(cursor.fetchall())
    assert all(each.key is None for each in job.of(f"{topic_prefix}.{database}.t"))


def test_a_chunk_is_read_again_if_the_table_changes_before_its_rows_are_sent(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(incremental__snapshot__chunk__size="10")
    read, updates = ReadersAtHand.order, ["UPDATE t SET s = 200 WHERE s = 0 LIMIT 1"] * 3

    def order(self: ReadersAtHand, message: ReadOrders) -> None:
        if message.orders and updates:
            cursor.execute(updates.pop())
        read(self, message)

    monkeypatch.setattr(ReadersAtHand, "order", order)
    ask(job, database)
    job.batches_until(lambda: job.offset.batch > 2 and not job.offset.snapshot.active, "end of the snapshot")
    sent = [(each.value["op"], each.value["after"]["s"]) for each in job.of(f"{topic_prefix}.{database}.t")]

    # Rows that no event has changed come once each. Those of the changed range come as they are behind the events.
    first = sent.index(("r", 0))
    assert sent[:first].count(("u", 200)) == 3
    assert Counter(s for op, s in sent if op == "r") == {
        **dict.fromkeys(range(1, _ROWS // 7), 7),
        0: 7 - 3,
        _ROWS // 7: _ROWS % 7,
    }


def test_a_table_that_is_always_written_to_is_given_up(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incsnap.snapshot.next_context.MAX_DISTURBANCES", 4)
    job = make_job(notification__enabled__channels="sink", notification__sink__topic__name=f"{topic_prefix}-notes")
    read = ReadersAtHand.order

    def order(self: ReadersAtHand, message: ReadOrders) -> None:
        cursor.execute("INSERT INTO t VALUES (100, 'new')")
        read(self, message)

    monkeypatch.setattr(ReadersAtHand, "order", order)
    ask(job, database)
    job.batches_until(lambda: job.offset.batch > 2 and not job.offset.snapshot.active, "end of the snapshot")

    (ended,) = [each.value for each in job.of(f"{topic_prefix}-notes") if each.value["type"] == "TABLE_SCAN_COMPLETED"]
    assert ended["additional_data"]["status"] == "CHANGED_TOO_OFTEN"
    assert "Nothing tells its rows apart" in ended["additional_data"]["reason"]
    assert replayed(job, f"{topic_prefix}.{database}.t", "r") == Counter()


def test_rows_of_an_xa_transaction_disturb_a_chunk_when_they_are_committed(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in ("START 'x'", "INSERT", "END 'x'", "PREPARE 'x'"):
        cursor.execute("INSERT INTO t VALUES (0, 'late')" if statement == "INSERT" else f"XA {statement}")
    job = make_job()
    read, commits = ReadersAtHand.order, ["XA COMMIT 'x'"]

    def order(self: ReadersAtHand, message: ReadOrders) -> None:
        if message.orders and commits:
            cursor.execute(commits.pop())
        read(self, message)

    monkeypatch.setattr(ReadersAtHand, "order", order)
    ask(job, database)
    job.batches_until(lambda: job.offset.batch > 2 and not job.offset.snapshot.active, "end of the snapshot")

    sent = [(each.value["op"], each.value["after"]["v"]) for each in job.of(f"{topic_prefix}.{database}.t")]
    late = [op for op, text in sent if text == "late"]
    assert commits == []
    assert late == ["c", "r"]
