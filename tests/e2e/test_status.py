"""Tests of `incsnap status` for a real job: while it reads a table, after it has stopped, and after it was killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from incsnap.cli.main import commands
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import JobStatus, load
from incsnap.version import __version__
from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDERS
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


def status_of(play: CapturedDatabase) -> JobStatus | None:
    path = Path(play.checkpoint) / "incsnap" / NAME
    return load(json.loads(path.read_text())) if path.exists() else None


def shown(play: CapturedDatabase) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["status", str(play.folder / "incsnap.properties")])
    return result.exit_code, " ".join(result.output.split())


def test_a_snapshot_is_followed_from_its_signal_to_the_end_of_the_job(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 60_000)
    with play.job({"incremental.snapshot.chunk.size": "500"}) as job, play.notices() as notices:
        job.wait_until_streaming()
        # The table would take a minute if the limit were not lifted, so a slow test sees it in the middle too.
        play.signal_by_row("slow", "incsnap-throttle", {"rows-per-second": 1_000})
        play.execute_by_row("watched", [orders])
        shown_now: list[JobStatus] = []

        def reading() -> bool:
            status = status_of(play)
            if status is None or not status.snapshot.active:
                return False
            shown_now[:] = [status]
            return any(table.rows_done and table.rows_expected for table in status.snapshot.tables)

        job.wait_until("the status shows the table", reading)
        (status,) = shown_now
        (table,) = status.snapshot.tables
        assert (table.table, table.signal) == (str(orders), "watched")
        assert table.rows_low is not None
        assert table.rows_high is not None
        assert table.rows_low <= 60_000 <= table.rows_high
        assert status.stream is not None
        assert status.stream.connected

        play.signal_by_row("halt", "pause-snapshot", {})
        job.wait_until("the pause is shown", lambda: "paused by signal halt" in shown(play)[1])
        play.signal_by_row("go", "resume-snapshot", {})
        play.signal_by_row("fast", "incsnap-throttle", {"rows-per-second": 0})
        job.wait_until("the snapshot was complete", lambda: notices.completed("watched"))

        def ended() -> bool:
            status = status_of(play)
            shown_now[:] = [] if status is None else [status]
            return status is not None and bool(status.snapshot.finished) and not status.snapshot.active

        job.wait_until("the status shows the end", ended)
        (status,) = shown_now
        assert [(each.table, each.status, each.rows) for each in status.snapshot.finished] == [
            (str(orders), "SUCCEEDED", 60_000)
        ]
        assert status.sums.reads + status.sums.discarded == 60_000
        assert [each.type for each in status.notifications] == [
            "STARTED",
            "PAUSED",
            "RESUMED",
            "TABLE_SCAN_COMPLETED",
            "COMPLETED",
        ]
        job.stop()

    code, text = shown(play)
    assert code == 0
    assert f"{play.prefix} stopped since" in text


def test_a_killed_job_is_dead_since_its_last_sign_of_life(play: CapturedDatabase) -> None:
    with play.job() as job:
        job.wait_until_streaming()
        job.wait_until("the first status", lambda: status_of(play) is not None)
        assert shown(play)[0] == 0
        job.kill()

        code, text = shown(play)

    assert code == 1
    assert "dead since" in text


def test_a_connection_that_was_lost_is_counted(play: CapturedDatabase) -> None:
    with play.job() as job:
        job.wait_until_streaming()
        job.wait_until("the stream is connected", lambda: _is_connected(play))
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL {number}")
        job.wait_until("the stream is connected again", lambda: _disconnects(play) == 1)
        job.stop()


def _is_connected(play: CapturedDatabase) -> bool:
    status = status_of(play)
    return status is not None and status.stream is not None and status.stream.connected


def _disconnects(play: CapturedDatabase) -> int:
    status = status_of(play)
    return status.stream.disconnects if status is not None and status.stream is not None else 0


def test_a_log_in_json_tells_what_runs_and_a_signal_to_the_whole_group_ends_the_job_in_order(
    play: CapturedDatabase,
) -> None:
    orders = play.create(ORDERS, 50)
    with play.notices() as notices, play.job({"incsnap.log.format": "json"}) as job:
        job.wait_until_streaming()
        play.execute_by_row("nightly", [orders])
        job.wait_until("the snapshot was complete", lambda: notices.completed("nightly"))
        os.killpg(os.getpgid(job.pid), signal.SIGTERM)
        wait_until(lambda: job.exit_code() is not None)
        assert job.exit_code() == 0, job.log_tail()
    lines = [json.loads(line) for line in play.log.read_text().splitlines()]
    messages = [line["message"] for line in lines]
    of_snapshot = [line["message"] for line in lines if line.get("snapshot") == "nightly"]

    server = f"{play.mysql.host}:{play.mysql.port}"
    assert any(
        each.startswith(f"incsnap {__version__}: topic.prefix {play.prefix}, MySQL at {server}") for each in messages
    )
    servers = f"MySQL at {server}, Kafka at {play.kafka}"
    assert any(servers in each and each.endswith(f"checkpoint {play.checkpoint}") for each in messages)
    assert any(each.startswith("The new job ") for each in messages)
    assert of_snapshot == [
        f"The snapshot begins, of {orders}",
        f"{orders}: 50 rows were read; SUCCEEDED",
        "The snapshot is complete",
    ]
    assert messages[-1] == "Stopped"
