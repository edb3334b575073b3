"""One broker of three is killed while a snapshot runs beside writes: the other two carry the job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.checkpoint.status import read_status
from lab.addresses import MySqlAddress
from lab.breakable import Breakable
from lab.captured_database import CapturedDatabase, captured_database
from lab.fetched_kafka import three_brokers
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer

pytestmark = pytest.mark.servers

ROWS = 60_000
#: One chunk a batch, so that the tables take many batches. They would take a minute if the limit were not lifted behind
#: the kill, which so comes in their middle, also in a slow test.
SETTINGS = {
    "incsnap.snapshot.throttle.rows.per.second": "1000",
    "incremental.snapshot.chunk.size": "1500",
    "snapshot.max.threads": "1",
    "topic.creation.default.partitions": "4",
    "topic.creation.default.replication.factor": "3",
    "topic.creation.default.min.insync.replicas": "2",
}


@pytest.fixture
def on_three(
    mysql_address: MySqlAddress, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[tuple[CapturedDatabase, list[Breakable]]]:
    """A captured database whose job writes to three brokers, and these brokers."""
    with (
        three_brokers() as (addresses, brokers),
        captured_database(mysql_address, addresses, database, topic_prefix, tmp_path) as made,
    ):
        yield made, brokers


def test_a_broker_killed_during_a_snapshot_loses_and_repeats_nothing(
    on_three: tuple[CapturedDatabase, list[Breakable]],
) -> None:
    play, brokers = on_three
    orders, lines = play.create(ORDERS, ROWS), play.create(ORDER_LINES, 500)
    with play.job(SETTINGS) as job, play.notices() as notices:
        job.wait_until_streaming()
        with Writer(play.connect, play.tables, seed=11, rate=200):
            play.execute_by_row("beside", [orders, lines])
            job.wait_until("rows were sent", lambda: _reads(play) > 0, every=0.01)
            brokers[1].kill()
            at_the_kill = _reads(play)
            assert not notices.completed("beside")
            assert at_the_kill < ROWS, "the snapshot was complete before the kill"
            play.signal_by_row("fast", "incsnap-throttle", {"rows-per-second": 0})
            job.wait_until("the snapshot's end without the broker", lambda: notices.completed("beside"))
        play.drain(job)
        brokers[1].start()
        play.execute_by_row("again", [lines])
        job.wait_until("a snapshot with the broker", lambda: notices.completed("again"))
        play.drain(job)
        log = job.log_tail(2_000)
        job.stop()

    by_table = {verdict.table: verdict for verdict in play.verdicts()}
    assert by_table[orders].faults(snapshots=1) == []
    assert by_table[lines].faults(snapshots=2) == []
    assert by_table[orders].replay.counts["r"] > at_the_kill
    assert "Traceback" not in log


def _reads(play: CapturedDatabase) -> int:
    status = read_status(str(play.checkpoint))
    return status.sent.reads if status is not None else 0
