"""``snapshot.mode``: a new job sends the rows that there are, beside the stream, and only a new one does."""

from __future__ import annotations

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


def test_a_new_job_sends_all_rows_once_and_never_again(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, ROWS)
    with play.notices() as notices, Writer(play.connect, play.tables, seed=5, rate=100):
        with play.job(INITIAL) as job:
            job.wait_until("the snapshot was complete", lambda: notified(notices, "COMPLETED"))
            job.stop()
        (told,) = notices.of("COMPLETED")
        assert told["id"].startswith("initial-")
        sent = reads(play, orders)
        for mode in ("initial", "no_data"):
            with play.job({**INITIAL, "snapshot.mode": mode}) as job:
                play.drain(job)
                job.stop()
        notices.poll()
    assert len(notices.of("STARTED")) == 1
    assert reads(play, orders) == sent


def test_what_the_rows_were_is_what_the_topic_says(play: CapturedDatabase) -> None:
    play.create(ORDERS, ROWS)
    with play.notices() as notices, play.job(INITIAL) as job:
        with Writer(play.connect, play.tables, seed=6, rate=100):
            job.wait_until("the snapshot was complete", lambda: notified(notices, "COMPLETED"))
        play.drain(job)
        job.stop()
    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []


def test_a_job_that_only_reads_the_tables_ends_when_that_is_done_also_after_a_crash(play: CapturedDatabase) -> None:
    play.create(ORDERS, ROWS)
    slow = {"rows-per-second": ROWS // 5}
    send.to_topic(play.kafka, f"{play.prefix}-signal", play.prefix, "slow", "incsnap-throttle", slow)
    only = {**INITIAL, "snapshot.mode": "initial_only", "incremental.snapshot.chunk.size": "100"}
    with play.notices() as notices:
        with Writer(play.connect, play.tables, seed=7, rate=50):
            with play.job(only) as job:
                job.wait_until("a part of the table was sent", lambda: notified(notices, "IN_PROGRESS"))
                job.kill()
            with play.job(only) as job:
                wait_until(lambda: job.exit_code() is not None)
        assert job.exit_code() == 0, job.log_tail()
        assert "The snapshot is complete, and snapshot.mode=initial_only: the job ends" in play.log.read_text()
        with play.job(only) as job:
            wait_until(lambda: job.exit_code() is not None)
        assert job.exit_code() == 0, job.log_tail()
        assert "there is nothing to do" in play.log.read_text()
        with play.job({**only, "snapshot.mode": "no_data"}) as job:  # what was written meanwhile follows
            play.drain(job)
            job.stop()
        notices.poll()
    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []
    assert [len(notices.of(kind)) for kind in ("STARTED", "COMPLETED")] == [1, 1]


def notified(notices: Notices, kind: str) -> bool:
    notices.poll()
    return bool(notices.of(kind))


def reads(play: CapturedDatabase, orders: TableId) -> int:
    found = TopicReplay()
    replay(play.kafka, {play.topic(orders): found})
    return found.counts["r"]
