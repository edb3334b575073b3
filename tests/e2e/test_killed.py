"""`kill -9`, twenty times, while writers write and snapshots run: nothing lost, nothing twice, nothing back in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from incsnap.pipeline.status import read_status
from incsnap.sandbox.designs import ORDER_LINES, ORDERS, PEOPLE
from incsnap.sandbox.listening import Follower, Notices
from incsnap.sandbox.running_job import RunningJob
from incsnap.sandbox.scene import Scene
from incsnap.sandbox.workload import Writer
from tests.support.ledger import Ledger

KILLS = 20
SEED = 20_261

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1_500)]


def batch_and_windows(play: Scene) -> tuple[int, int]:
    """The newest planned batch, and how many windows it leaves in flight."""
    status = read_status(str(play.checkpoint))
    return (status.batch, status.windows_in_flight) if status is not None else (-1, 0)


def test_twenty_kills_lose_nothing_and_repeat_nothing(play: Scene, say: Callable[[str], None]) -> None:
    random = Random(SEED)
    tables = [play.create(ORDERS, 60_000), play.create(ORDER_LINES, 20_000), play.create(PEOPLE, 5_000)]
    # Chunks of 2,000: the planner reads many in a batch, so a window in flight is the rule and not the exception.
    settings = {"incremental.snapshot.chunk.size": "2000"}
    ledger = Ledger(play)
    in_flight = 0
    with play.notices() as notices:
        with play.job(settings) as job:
            job.wait_until_streaming()
            # The block's end kills it: one more than the twenty.
        with Writer(play.connect, play.tables, seed=SEED, rate=200) as writer:
            for number in range(KILLS):
                if ledger.settle(notices):
                    ledger.ask(tables, "source" if number % 2 else "kafka")
                before, _ = batch_and_windows(play)
                with play.job(settings) as job:
                    if number % 3 == 0:
                        # Any moment: while it starts, repeats its last batch, or later.
                        time.sleep(random.uniform(0.0, 12.0))
                    else:
                        # A batch of this life's own, behind the one that it repeats.
                        job.wait_until(
                            "windows of a new batch were in flight",
                            partial(reads_on, play, ledger, notices, before),
                            every=0.005,
                        )
                        if number % 3 == 1:
                            time.sleep(random.choice((0.0, random.uniform(0.0, 0.3), random.uniform(0.0, 1.5))))
                        else:
                            wait_for_a_commit(play, job)
                    batch, windows = batch_and_windows(play)
                    in_flight += windows > 0 and batch > before
                    assert job.exit_code() is None, job.log_tail()
                    # Half of the time Spark's workers outlive their driver for a moment: zombies, to be fenced.
                    job.kill(workers_too=random.random() < 0.5)
        with play.job(settings) as job:
            job.wait_until("the snapshots were complete", lambda: ledger.settle(notices), 180)
            play.drain(job)
            job.stop()

    verdicts = ledger.check()

    status = read_status(str(play.checkpoint))
    assert status is not None
    say(
        f"{KILLS} kills, {in_flight} of them with windows of the same life in flight; {len(ledger.asked)} signals,"
        f" {writer.written.changes} changes, {status.sent.discarded} rows discarded,"
        f" {status.sent.skipped} transactions found committed"
    )
    assert status.sent.skipped > 0, (
        "no kill fell between Kafka's commit and Spark's: exactly once was not put to the test"
    )
    assert in_flight >= KILLS // 4, "most kills met nothing that could be lost"
    assert writer.written.changes > 1_000
    assert all(verdict.replay.counts[op] > 0 for verdict in verdicts for op in "rcud")
    assert status.sent.discarded > 0


def wait_for_a_commit(play: Scene, job: RunningJob) -> None:
    """Returns milliseconds after a bucket's transaction: before the other bucket's, or before Spark knows of it."""
    with Follower(play.kafka, play.topic(play.tables[0][1]), from_now_on=True) as follower:
        job.wait_until("another batch was sent", lambda: bool(follower.poll(0.05)), every=0.0)


def reads_on(play: Scene, ledger: Ledger, notices: Notices, before: int) -> bool:
    """True when this life has windows in flight; gives another signal when all is read."""
    if ledger.settle(notices):
        ledger.ask([table for _, table in play.tables], "source")
    batch, windows = batch_and_windows(play)
    return windows > 0 and batch > before
