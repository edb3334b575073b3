"""Tests of `snapshot.mode`: a new job, and only a new one, sends the existing rows while it streams."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.listening import Notices
from lab.replay import TopicReplay, replay
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

ROWS = 5_000
INITIAL = {"snapshot.mode": "initial", "signal.enabled.channels": "kafka"}


def test_a_new_job_sends_all_rows_once_and_never_again_unless_each_start_is_to(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, ROWS)
    with play.notices() as notices, Writer(play.connect, play.tables, seed=5, rate=100):
        with play.job(INITIAL) as job:
            job.wait_until("the snapshot was complete", lambda: notified(notices, "COMPLETED"))
            job.stop()
        (completed,) = notices.of("COMPLETED")
        assert completed["id"].startswith("initial-")
        sent = reads(play, orders)
        for mode in ("initial", "no_data"):
            with play.job({**INITIAL, "snapshot.mode": mode}) as job:
                play.drain(job)
                job.stop()
        notices.poll()
        assert len(notices.of("STARTED")) == 1
        assert reads(play, orders) == sent
        with play.job({**INITIAL, "snapshot.mode": "always"}) as job:
            job.wait_until("a second snapshot was complete", lambda: len(also(notices, "COMPLETED")) == 2)
            job.stop()


def test_the_topic_equals_the_rows_of_an_initial_snapshot(play: CapturedDatabase) -> None:
    play.create(ORDERS, ROWS)
    with play.notices() as notices, play.job(INITIAL) as job:
        with Writer(play.connect, play.tables, seed=6, rate=100):
            job.wait_until("the snapshot was complete", lambda: notified(notices, "COMPLETED"))
        play.drain(job)
        job.stop()
    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []


@pytest.mark.long
def test_a_job_that_only_reads_the_tables_ends_when_that_is_done_also_after_a_crash(play: CapturedDatabase) -> None:
    play.create(ORDERS, ROWS)
    signals = play.folder / "signals"
    only = {"snapshot.mode": "initial_only", "signal.enabled.channels": "file", "signal.file": str(signals)}
    send.to_file(str(signals), "slow", "incsnap-throttle", {"rows-per-second": ROWS // 20})
    with play.notices() as notices:
        with Writer(play.connect, play.tables, seed=7, rate=50):
            with play.job(only) as job:
                job.wait_until("a part of the table was sent", lambda: notified(notices, "IN_PROGRESS"))
                job.kill()
            assert not notified(notices, "COMPLETED")
            send.to_file(str(signals), "fast", "incsnap-throttle", {"rows-per-second": 0})
            with play.job(only) as job:
                wait_until(lambda: job.exit_code() is not None)
        assert job.exit_code() == 0, job.log_tail()
        assert "The snapshot is complete, and snapshot.mode=initial_only: the job ends" in play.log.read_text()
        with play.job(only) as job:
            wait_until(lambda: job.exit_code() is not None)
        assert job.exit_code() == 0, job.log_tail()
        assert "there is nothing to do" in play.log.read_text()
        with play.job({**only, "snapshot.mode": "no_data"}) as job:  # changes that were written meanwhile follow
            play.drain(job)
            job.stop()
        notices.poll()
    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []
    assert [len(notices.of(kind)) for kind in ("STARTED", "COMPLETED")] == [1, 1]


def also(notices: Notices, kind: str) -> list[dict[str, Any]]:
    """Read new notifications, and return all of that type."""
    notices.poll()
    return notices.of(kind)


def notified(notices: Notices, kind: str) -> bool:
    return bool(also(notices, kind))


def reads(play: CapturedDatabase, orders: TableId) -> int:
    topic = TopicReplay()
    replay(play.kafka, {play.topic(orders): topic})
    return topic.counts["r"]
