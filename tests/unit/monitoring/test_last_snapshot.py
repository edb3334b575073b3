"""The newest snapshot as Debezium's metrics show it."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from incsnap.gtid import GtidSet
from incsnap.monitoring.last_snapshot import SnapshotHistory
from incsnap.monitoring.metrics import exposition
from incsnap.monitoring.status import JobStatus, LastSnapshot, NotificationStatus, SnapshotStatus
from tests.support.job_statuses import running


def _notice(kind: str, at_s: int, name: str = "a", table: str = "") -> NotificationStatus:
    return NotificationStatus(name, kind, at_s * 1000, {"scanned_collection": table} if table else {})


_WHOLE = [
    _notice("STARTED", 10),
    _notice("TABLE_SCAN_COMPLETED", 20, table="shop.a"),
    _notice("PAUSED", 30),
    _notice("RESUMED", 45),
    _notice("TABLE_SCAN_COMPLETED", 50, table="shop.b"),
    _notice("TABLE_SCAN_COMPLETED", 50, table="shop.c"),
    _notice("COMPLETED", 50),
]


def _metrics(status: JobStatus) -> dict[str, float]:
    text = exposition(lambda: status)().decode()
    families = text_string_to_metric_families(text)
    return {each.name.removeprefix("debezium_metrics_"): each.value for one in families for each in one.samples}


def test_a_snapshot_has_its_tables_its_duration_and_its_pauses() -> None:
    history = SnapshotHistory()
    for end in range(len(_WHOLE) + 1):  # each look sees the earlier notifications again
        history.see(_WHOLE[:end])

    last = history.last(0, 99_000)
    assert last == LastSnapshot(10_000, 50_000, aborted=False, tables=3, paused_ms=15_000)
    metrics = _metrics(replace(running(), snapshot=SnapshotStatus(), last_snapshot=last))
    assert metrics["SnapshotCompleted"] == 1
    assert metrics["SnapshotAborted"] == metrics["SnapshotRunning"] == metrics["SnapshotSkipped"] == 0
    assert metrics["SnapshotDurationInSeconds"] == 40
    assert metrics["SnapshotPausedDurationInSeconds"] == 15
    assert metrics["TotalTableCount"] == 3


def test_tables_that_wait_count_and_a_running_snapshot_is_not_complete() -> None:
    history = SnapshotHistory()
    history.see(_WHOLE[:3])

    last = history.last(4, 40_000)
    assert (last.tables, last.ended_ms, last.paused_at_ms) == (5, 0, 30_000)
    metrics = _metrics(replace(running(), last_snapshot=last, written_ms=40_000))
    assert metrics["SnapshotCompleted"] == 0
    assert metrics["SnapshotDurationInSeconds"] == 30
    assert metrics["SnapshotPausedDurationInSeconds"] == 10


def test_a_stopped_snapshot_is_aborted_and_a_second_signal_belongs_to_the_first() -> None:
    history = SnapshotHistory()
    history.see([_notice("STARTED", 10), _notice("STARTED", 12, "b"), _notice("COMPLETED", 20)])
    assert not history.last(1, 21_000).ended_ms

    history.see([_notice("ABORTED", 30, "b")])
    last = history.last(0, 31_000)
    assert (last.started_ms, last.ended_ms, last.aborted) == (10_000, 30_000, True)


def test_a_snapshot_that_runs_at_the_start_begins_with_the_process() -> None:
    assert SnapshotHistory().last(2, 5_000) == LastSnapshot(started_ms=5_000, tables=2)


def test_a_set_of_gtids_knows_its_number_of_transactions() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    assert len(GtidSet.parse(f"{uuid}:1-5:11")) == 6
    assert len(GtidSet()) == 0
