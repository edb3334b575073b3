"""Random writers, repeated snapshots by both channels, and a consumer that compares the topics with the tables."""

from __future__ import annotations

import pytest

from incsnap.checkpoint.status import read_status
from lab.captured_database import CapturedDatabase
from lab.owned_keys import Share
from lab.table_designs import ORDER_LINES, ORDERS, PEOPLE
from lab.workload import Writer
from tests.support.ledger import Ledger

pytestmark = pytest.mark.servers


def test_repeated_snapshots_under_random_writers_agree_with_the_tables(play: CapturedDatabase) -> None:
    orders, lines, people = (
        play.create(ORDERS, 12_000),
        play.create(ORDER_LINES, 6_000),
        play.create(PEOPLE, 3_000),
    )
    ledger = Ledger(play)
    # Small chunks make many windows, which the writers' hot keys meet.
    with play.job({"incremental.snapshot.chunk.size": "700"}) as job, play.notices() as notices:
        job.wait_until_streaming()
        shares = [Share(0, 2), Share(1, 2)]
        first, second = (
            Writer(play.connect, play.tables, seed=seed, rate=150, share=share) for seed, share in enumerate(shares)
        )
        with first, second:
            for tables in ([orders, lines], [people]), ([people, lines], [orders]), ([orders, lines, people], [people]):
                ledger.ask(tables[0], "source")
                ledger.ask(tables[1], "kafka")
                job.wait_until("the snapshots were complete", lambda: ledger.settle(notices))
        play.drain(job)
        job.stop()

    verdicts = ledger.check()

    for writer in first, second:
        assert writer.written.rollbacks > 0
        assert all(writer.written.by_kind[kind] > 0 for kind in ("insert", "update", "delete", "re-key"))
    for verdict in verdicts:
        assert all(verdict.replay.counts[op] > 0 for op in "rcud"), verdict.table
        statuses = {
            each["additional_data"]["status"]
            for each in notices.of("TABLE_SCAN_COMPLETED")
            if each["additional_data"]["scanned_collection"] == str(verdict.table)
        }
        assert statuses == {"SUCCEEDED"}
    assert len(notices.of("TABLE_SCAN_COMPLETED")) == sum(len(entry.tables) for entry in ledger.asked)
    assert len(notices.of("IN_PROGRESS")) >= len(notices.of("TABLE_SCAN_COMPLETED"))
    status = read_status(str(play.checkpoint))
    assert status is not None
    assert status.sent.discarded > 0, "no event ever met a window: nothing was put to the test"
    assert status.sent.reads == sum(verdict.replay.counts["r"] for verdict in verdicts)
