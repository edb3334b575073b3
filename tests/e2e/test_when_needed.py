"""A test of `snapshot.mode=when_needed`: a job is killed in its snapshot, and the binlog that it needs is purged."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from lab.captured_database import CapturedDatabase, captured_database
from lab.running_job import end_of
from lab.servers import servers
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send
from tests.support.mysql_versions import end_of_binlog
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

_ROWS = 5_000


def test_a_job_begins_again_with_windows_in_flight_and_no_key_goes_back(
    kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    with (
        servers(kafka=False) as own,
        captured_database(own.mysql, kafka_address, "shop", topic_prefix, tmp_path) as play,
    ):
        try:
            begin_again(play)
        finally:
            sys.stdout.write(f"The job's log ends:\n{end_of(play.log, 60)}\n")


def begin_again(play: CapturedDatabase) -> None:
    play.create(ORDERS, _ROWS)
    signals = play.folder / "signals"
    settings = {"snapshot.mode": "when_needed", "signal.enabled.channels": "file", "signal.file": str(signals)}
    send.to_file(str(signals), "slow", "incsnap-throttle", {"rows-per-second": _ROWS // 20})
    with play.notices() as notices, Writer(play.connect, play.tables, seed=8, rate=100) as writer:

        def notified(kind: str) -> bool:
            notices.poll()
            return bool(notices.of(kind))

        with play.job(settings) as job:
            job.wait_until("a part of the table was sent", lambda: notified("IN_PROGRESS"))
            job.kill()
        before = writer.written.changes
        wait_until(lambda: writer.written.changes > before + 100)
        purge(play)
        assert not notified("COMPLETED")
        send.to_file(str(signals), "fast", "incsnap-throttle", {"rows-per-second": 0})
        with play.job(settings) as job:
            job.wait_until("the snapshot of the new job was complete", lambda: notified("COMPLETED"))
            writer.stop()
            play.drain(job)
            job.stop()
    log = play.log.read_text()
    assert "the binlog no longer holds" in log
    assert "snapshot.mode=when_needed: the job begins again" in log
    first, second = (note["id"] for note in notices.of("STARTED"))
    assert [note["id"] for note in notices.of("ABORTED")] == [first]
    assert [note["id"] for note in notices.of("COMPLETED")] == [second]
    (verdict,) = play.verdicts()
    judged, compared = verdict.replay.judgement, verdict.comparison
    # Changes in the gap are lost, also deletions.
    assert (judged.back_in_time.examples, judged.duplicates.examples) == ([], [])
    assert (compared.missing.examples, compared.different.examples) == ([], [])


def purge(play: CapturedDatabase) -> None:
    with contextlib.closing(play.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        newest, _ = end_of_binlog(connection)
        cursor.execute(f"PURGE BINARY LOGS TO '{newest}'")
