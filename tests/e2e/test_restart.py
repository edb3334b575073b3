"""SIGTERM in the middle of a table: the job ends cleanly, and the next start continues there."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from incsnap.checkpoint.status import read_status
from lab.captured_database import CapturedDatabase
from lab.replay import TopicReplay, replay
from lab.table_designs import ORDERS
from lab.workload import Writer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

ROWS = 60_000
#: One chunk a batch, so that the table takes many batches.
SETTINGS = {"incremental.snapshot.chunk.size": "1500", "snapshot.max.threads": "1", "spark.master": "local[1,4]"}
#: The first job would read the table for a minute, so it is stopped in the middle, also by a slow test.
SLOW = {**SETTINGS, "incsnap.snapshot.throttle.rows.per.second": "1000"}


def test_a_stop_in_the_middle_of_a_table_is_clean_and_the_next_start_goes_on(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, ROWS)
    with play.notices() as notices, ExitStack() as second:
        with Writer(play.connect, play.tables, seed=5, rate=100):
            with play.job(SLOW) as job:
                job.wait_until_streaming()
                play.execute_by_row("one-table", [orders])
                job.wait_until("rows were sent", lambda: rows_sent(play) > 0, every=0.01)
                job.stop()
                wait_until(lambda: not job.remains())
            status = read_status(str(play.checkpoint))
            assert status is not None
            assert status.reading == (orders,), "the table was complete before the stop"
            before = TopicReplay()
            replay(play.kafka, {play.topic(orders): before})
            assert 0 < before.counts["r"] < ROWS

            job = second.enter_context(play.job(SETTINGS))
            job.wait_until("the snapshot was complete", lambda: notices.completed("one-table"))
        play.drain(job)
        job.stop()

    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []
    assert verdict.replay.counts["r"] > before.counts["r"]
    assert len(notices.of("STARTED")) == 1
    assert len(notices.of("COMPLETED")) == 1


def rows_sent(play: CapturedDatabase) -> int:
    status = read_status(str(play.checkpoint))
    return status.sent.reads if status is not None else 0
