"""A test of all types of Debezium's notifications on a real topic, with a snapshot that is throttled while it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import SnapshotStatus, load
from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDER_LINES, ORDERS
from signals import send

pytestmark = pytest.mark.servers

ROWS = 20_000


def snapshot_of(play: CapturedDatabase) -> SnapshotStatus:
    path = Path(play.checkpoint) / "incsnap" / NAME
    return load(json.loads(path.read_text())).snapshot if path.exists() else SnapshotStatus()


def test_a_throttled_snapshot_sends_every_type_of_notification(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, ROWS), play.create(ORDER_LINES, 50)
    with play.job({"notification.enabled.channels": "sink,log"}) as job, play.notices() as notices:

        def wait_for(kind: str, signal: str) -> None:
            job.wait_until(f"{kind} of {signal}", lambda: notices.poll() is not None and notices.of(kind, signal) != [])

        job.wait_until_streaming()
        # The table would take minutes if the limit were not lifted.
        play.signal_by_row("slow", "incsnap-throttle", {"rows-per-second": 100})
        play.execute_by_row("first", [orders, lines])
        job.wait_until("the limit is shown", lambda: [limit.most for limit in snapshot_of(play).limits] == [100])
        why = "throttled to 100 rows/s by signal slow"
        job.wait_until("the reason is shown", lambda: snapshot_of(play).waits_for == why)
        wait_for("IN_PROGRESS", "first")
        play.signal_by_row("hold", "pause-snapshot", {})
        wait_for("PAUSED", "first")
        play.signal_by_row("go", "resume-snapshot", {})
        wait_for("RESUMED", "first")
        play.signal_by_row("end", "stop-snapshot", send.snapshot_data([str(orders)]))
        wait_for("ABORTED", "first")
        job.wait_until("the end of the other table", lambda: notices.completed("first"))

        # The limit belongs to the job, and outlives the signal that set it.
        play.execute_by_row("second", [orders])
        job.wait_until("it is throttled too", lambda: snapshot_of(play).waits_for == why)
        # One thread asks for the number of threads and another sends the binlog, so there are never fewer.
        play.signal_by_row("spare", "incsnap-throttle", {"rows-per-second": 0, "threads-running": 1})
        more = "threads run on the server, more than the 1 threads of signal spare"
        seen: list[SnapshotStatus] = []

        def waits_for_the_server() -> bool:
            seen[:] = [snapshot_of(play)]
            return more in seen[0].waits_for

        job.wait_until("it waits for the server", waits_for_the_server)
        assert seen[0].held_back_by == "threads-running"
        play.signal_by_row("fast", "incsnap-throttle", {"threads-running": 0})
        job.wait_until("the end of the snapshot", lambda: notices.completed("second"))
        job.wait_until("the limit is gone", lambda: not snapshot_of(play).limits)
        play.drain(job)
        log = job.log_tail(2_000)
        job.stop()

    assert {each["type"] for each in notices.all} == {
        "STARTED",
        "IN_PROGRESS",
        "PAUSED",
        "RESUMED",
        "ABORTED",
        "TABLE_SCAN_COMPLETED",
        "COMPLETED",
    }
    assert {each["aggregate_type"] for each in notices.all} == {"Incremental Snapshot"}
    (ended,) = notices.of("TABLE_SCAN_COMPLETED", "second")
    assert ended["additional_data"]["total_rows_scanned"] == str(ROWS)
    assert "[Notification Service]  {id='second', aggregateType='Incremental Snapshot', type='COMPLETED'" in log
    assert "[snapshot second]" in log
    assert "Limits of snapshots from now on, by signal slow: rows-per-second 100" in log
    for verdict in play.verdicts():
        assert verdict.faults(2) == []
