"""Pause, resume and stop of one table and of all, in the middle of a table, by all channels, and over a restart."""

from __future__ import annotations

import secrets
from contextlib import ExitStack

import pytest

from incsnap.checkpoint.status import Status, read_status
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.listening import Notices
from lab.running_job import RunningJob
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from signals import send

pytestmark = pytest.mark.servers


ROWS = 60_000
#: The table takes a minute, so signals come in its middle, also from a slow test. The job chooses the size of chunks.
#: With a fixed size the whole table would be planned ahead, and planned chunks are read in spite of a pause.
SLOWLY = "SLEEP(0.001) = 0"


def test_a_snapshot_is_paused_resumed_and_stopped_in_the_middle_of_a_table(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, ROWS), play.create(ORDER_LINES, 600)
    file = play.folder / "signals.json"
    settings = {
        "signal.enabled.channels": "source,kafka,file",
        "signal.file": str(file),
        "snapshot.max.threads": "1",
    }
    conditions = [(f"{play.database}\\.ORDERS", SLOWLY)]
    with ExitStack() as stack:
        notices = stack.enter_context(play.notices())

        def wait_for(job: RunningJob, kind: str, signal: str) -> None:
            job.wait_until(f"{kind} of {signal}", lambda: notices.poll() is not None and notices.of(kind, signal) != [])

        writer = stack.enter_context(Writer(play.connect, play.tables, seed=11, rate=20))
        with play.job(settings) as job:
            job.wait_until_streaming()
            pattern = f"{play.database}\\.order.*"
            send.to_file(file, "by-file", "execute-snapshot", send.snapshot_data([pattern], conditions))
            job.wait_until("rows of the second table", lambda: reading(notices, orders))
            play.signal_by_row("hold", "pause-snapshot", {"type": "incremental"})
            wait_for(job, "PAUSED", "by-file")
            job.wait_until("what was read was sent", lambda: status_of(play).windows_in_flight == 0)
            play.drain(job)
            paused = at_rest(play)
            play.drain(job)  # the stream goes on
            assert at_rest(play) == paused
            job.stop()
        assert paused[1:] == ((orders,), True)
        assert paused[0] < ROWS

        job = stack.enter_context(play.job(settings))
        play.drain(job)
        assert at_rest(play) == paused, "a restart has ended the pause"
        send.to_topic(play.kafka, f"{play.prefix}-signal", play.prefix, "go-on", "resume-snapshot", {})
        wait_for(job, "RESUMED", "by-file")
        job.wait_until("further rows", lambda: status_of(play).sent.reads > paused[0])
        stop(play, [orders])
        wait_for(job, "ABORTED", "by-file")

        # The signal stops the table that is being read. The waiting table is then read.
        play.signal_by_row("one", "execute-snapshot", send.snapshot_data([str(orders), str(lines)], conditions))
        wait_for(job, "IN_PROGRESS", "one")
        stop(play, [orders])
        job.wait_until("the end of the other table", lambda: notices.completed("one"))

        play.signal_by_row("all", "execute-snapshot", send.snapshot_data([str(orders), str(lines)], conditions))
        wait_for(job, "IN_PROGRESS", "all")
        stop(play, [])
        wait_for(job, "ABORTED", "all")
        writer.stop()
        play.drain(job)
        last = status_of(play)
        job.stop()

    for kind in ("STARTED", "PAUSED", "RESUMED", "ABORTED"):
        data = notices.of(kind, "by-file")[0]["additional_data"]["data_collections"]
        assert data == (f"{lines},{orders}" if kind == "STARTED" else str(orders))
    ended = {each["id"]: each["additional_data"] for each in notices.of("TABLE_SCAN_COMPLETED")}
    assert {name: (each["scanned_collection"], each["status"]) for name, each in ended.items()} == {
        "by-file": (str(lines), "SUCCEEDED"),
        "one": (str(lines), "SUCCEEDED"),
    }
    assert [each["id"] for each in notices.of("COMPLETED")] == ["one"]
    assert notices.of("ABORTED", "all")[0]["additional_data"]["data_collections"] == f"{orders},{lines}"
    assert (last.reading, last.queue, last.windows_in_flight, last.paused) == ((), (), 0, False)
    for verdict in play.verdicts():
        # Rows of the stopped table are missing, as requested. The rows that were sent must be right and in order.
        assert verdict.replay.judgement.faults() == []
        assert verdict.comparison.different.examples == []
        assert verdict.comparison.extra.count == 0
        if verdict.table == lines:
            assert verdict.faults(2) == []


def reading(notices: Notices, table: TableId) -> bool:
    """Whether rows of the table have been sent."""
    notices.poll()
    begun = [each["additional_data"]["current_collection_in_progress"] for each in notices.of("IN_PROGRESS")]
    return str(table) in begun


def stop(play: CapturedDatabase, tables: list[TableId]) -> None:
    name = f"stop-{secrets.token_hex(3)}"
    play.signal_by_row(name, "stop-snapshot", send.snapshot_data([str(table) for table in tables]))


def status_of(play: CapturedDatabase) -> Status:
    status = read_status(str(play.checkpoint))
    assert status is not None
    return status


def at_rest(play: CapturedDatabase) -> tuple[int, tuple[TableId, ...], bool]:
    """Return what must not change during a pause: rows sent, remaining tables, and whether the snapshot is paused."""
    status = status_of(play)
    return status.sent.reads, (*status.reading, *status.queue), status.paused
