"""A whole job whose Spark is started by `SparkSession.builder`, with `incsnap.spark.launch.mode=plain`."""

from __future__ import annotations

import pytest

from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from tests.support.ledger import Ledger

pytestmark = [pytest.mark.servers, pytest.mark.long]

#: With a secret among Spark's properties, which must not be on a command line.
SETTINGS = {
    "incsnap.spark.launch.mode": "plain",
    "spark.hadoop.fs.s3a.secret.key": "not-for-everybody",
    "incremental.snapshot.chunk.size": "700",
}


def test_a_job_that_a_plain_builder_starts_delivers_and_goes_on_after_sigkill(play: CapturedDatabase) -> None:
    tables = [play.create(ORDERS, 4_000), play.create(ORDER_LINES, 2_000)]
    ledger = Ledger(play)
    with play.notices() as notices, Writer(play.connect, play.tables, seed=3, rate=100):
        with play.job(SETTINGS) as job:
            job.wait_until_streaming()
            ledger.ask(tables, "source")
            job.wait_until("a chunk was sent", lambda: bool(notices.poll() and notices.of("IN_PROGRESS")))
            commands = job.commands()
            job.kill()
        with play.job(SETTINGS) as job:
            job.wait_until("the snapshots were complete", lambda: ledger.settle(notices))
            job.stop()
    with play.job(SETTINGS) as job:
        play.drain(job)
        job.stop()

    ledger.check()
    names = {name for name, _ in commands}
    assert "java" in names
    assert "incsnap-zygote" not in names
    assert "not-for-everybody" not in str(commands)
    assert "not-for-everybody" not in play.log.read_text()
