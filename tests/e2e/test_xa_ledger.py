"""Writers of which almost every third transaction is an XA one, snapshots beside them, a restart: topics = tables."""

from __future__ import annotations

import pytest

from incsnap.pipeline.status import read_status
from incsnap.sandbox.designs import ORDERS, PEOPLE
from incsnap.sandbox.listening import Notices
from incsnap.sandbox.owned_keys import Share
from incsnap.sandbox.scene import Scene
from incsnap.sandbox.workload import Writer
from tests.support.ledger import Ledger

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]

SETTINGS = {"incremental.snapshot.chunk.size": "700", "provide.transaction.metadata": "true"}


def begun(notices: Notices) -> int:
    notices.poll()
    return len(notices.of("STARTED"))


def test_snapshots_beside_xa_transactions_agree_with_the_tables(play: Scene) -> None:
    orders, people = play.create(ORDERS, 8_000), play.create(PEOPLE, 3_000)
    ledger = Ledger(play)
    writers = [
        Writer(play.connect, play.tables, seed=seed, rate=150, share=Share(seed, 2), xa_share=0.3) for seed in range(2)
    ]
    with writers[0], writers[1]:
        with play.job(SETTINGS) as job, play.notices() as notices:
            job.wait_until_streaming()
            for tables in [orders, people], [orders]:
                ledger.ask(tables, "source")
                job.wait_until("the snapshots were complete", lambda: ledger.settle(notices), 120)
            ledger.ask([people, orders], "kafka")
            job.wait_until("the last one began", lambda: begun(notices) == 3, 60)
            # Killed by the block's end, in the midst of a snapshot and with transactions prepared.
        with play.job(SETTINGS) as job, play.notices() as notices:
            job.wait_until("the snapshots were complete", lambda: ledger.settle(notices), 120)
            for writer in writers:
                writer.stop()
            play.drain(job)
            job.stop()

    ledger.check()

    for writer in writers:
        assert all(count > 0 for count in writer.prepared.ended.values()), writer.prepared.ended
    status = read_status(str(play.checkpoint))
    assert status is not None
    assert status.sent.discarded > 0, "no event ever met a window: nothing was put to the test"
