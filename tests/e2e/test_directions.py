"""Snapshots of tables whose keys ascend in one column and descend in another, under random writers and with a crash."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDER_LINES, PEOPLE
from lab.workload import Writer
from tests.support.ledger import Ledger

pytestmark = [pytest.mark.servers, pytest.mark.long]

#: Tenants in descending order, and the lines of each in ascending order.
LINES = replace(
    ORDER_LINES, name="lines", columns=ORDER_LINES.columns.replace("KEY (tenant, seq)", "KEY (tenant DESC, seq)")
)
#: The opposite directions, with a text that a collation orders.
MEMBERS = replace(
    PEOPLE, name="members", columns=PEOPLE.columns.replace(" PRIMARY KEY,", ",") + ", PRIMARY KEY (code DESC)"
)
SETTINGS = {"incremental.snapshot.chunk.size": "400"}


def test_keys_that_run_both_ways_agree_with_the_tables_under_writers_and_a_crash(play: CapturedDatabase) -> None:
    tables = [play.create(LINES, 12_000), play.create(MEMBERS, 3_000)]
    ledger = Ledger(play)
    with play.notices() as notices, Writer(play.connect, play.tables, seed=5, rate=150):
        with play.job(SETTINGS) as job:
            job.wait_until_streaming()
            ledger.ask(tables, "source")
            job.wait_until("a chunk was sent", lambda: bool(notices.poll() and notices.of("IN_PROGRESS")))
        # The first job was killed. The next one goes on in the middle of a table.
        with play.job(SETTINGS) as job:
            job.wait_until("the snapshots were complete", lambda: ledger.settle(notices))
            ledger.ask(tables, "kafka")
            job.wait_until("the snapshots were complete", lambda: ledger.settle(notices))
            job.stop()
    with play.job(SETTINGS) as job:
        play.drain(job)
        job.stop()

    verdicts = ledger.check()

    assert all(verdict.replay.counts[op] > 0 for verdict in verdicts for op in "rcud")
    ended = [each["additional_data"]["status"] for each in notices.of("TABLE_SCAN_COMPLETED")]
    assert ended == ["SUCCEEDED"] * 4
    progress = [each["additional_data"] for each in notices.of("IN_PROGRESS")]
    last = {each["maximum_key"] for each in progress if each["current_collection_in_progress"] == str(tables[0])}
    assert all(int(key.split(",")[0]) <= 7 for key in last), "the last tenant is the least one"
