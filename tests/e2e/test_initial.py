"""``snapshot.mode=initial``: a new job sends the rows that there are, beside the stream, and only a new one does."""

from __future__ import annotations

import pytest

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.listening import Notices
from lab.replay import TopicReplay, replay
from lab.table_designs import ORDERS
from lab.workload import Writer

pytestmark = pytest.mark.servers

ROWS = 5_000
INITIAL = {"snapshot.mode": "initial", "signal.enabled.channels": "kafka"}


def test_a_new_job_sends_all_rows_once_and_never_again(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, ROWS)
    with play.notices() as notices, Writer(play.connect, play.tables, seed=5, rate=100):
        with play.job(INITIAL) as job:
            job.wait_until("the snapshot was complete", lambda: completed(notices))
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
            job.wait_until("the snapshot was complete", lambda: completed(notices))
        play.drain(job)
        job.stop()
    (verdict,) = play.verdicts()
    assert verdict.faults(snapshots=1) == []


def completed(notices: Notices) -> bool:
    notices.poll()
    return bool(notices.of("COMPLETED"))


def reads(play: CapturedDatabase, orders: TableId) -> int:
    found = TopicReplay()
    replay(play.kafka, {play.topic(orders): found})
    return found.counts["r"]
