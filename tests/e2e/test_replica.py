"""A job that reads from a replica, while the replica's applier runs, stops, and dies with its server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from lab.addresses import MySqlAddress
from lab.breakable import Breakable
from lab.captured_database import captured_database
from lab.fetched_mysql import breakable_mysql
from lab.owned_keys import Share
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from tests.support.ledger import Ledger
from tests.support.replicas import begin_binlog_anew, catch_up, execute, follow

pytestmark = pytest.mark.servers

#: Workers of the replica's applier.
_WORKERS = 4


class Pair(NamedTuple):
    source: MySqlAddress
    replica: MySqlAddress  #: the server that the job reads; nobody may write to it
    server: Breakable  #: the replica's process


@pytest.fixture
def pair() -> Iterator[Pair]:
    applier = [
        f"--replica-parallel-workers={_WORKERS}",
        "--replica-preserve-commit-order=ON",
        "--log-replica-updates=ON",
        "--relay-log-recovery=ON",
    ]
    with (
        breakable_mysql(["--server-id=81"]) as (source, _),
        breakable_mysql(["--server-id=82", *applier]) as (replica, server),
    ):
        begin_binlog_anew(replica)
        follow(replica, source)
        execute(replica, "SET GLOBAL super_read_only = ON")
        yield Pair(source, replica, server)


def test_changes_and_rows_read_from_a_busy_replica_come_once_and_in_order(
    pair: Pair, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    with captured_database(pair.source, kafka_address, "shop", topic_prefix, tmp_path) as play, ExitStack() as stack:
        orders, lines = play.create(ORDERS, 20_000), play.create(ORDER_LINES, 10_000)
        catch_up(pair.replica, pair.source)
        settings = {
            **pair.replica.properties(),
            "read.only": "true",
            "signal.enabled.channels": "kafka",
            "incremental.snapshot.chunk.size": "2000",
        }
        ledger = Ledger(play)
        job, notices = stack.enter_context(play.job(settings)), stack.enter_context(play.notices())
        job.wait_until_streaming()
        # Several sessions, so that the applier's workers execute their transactions in parallel.
        shares = [Share(number, _WORKERS) for number in range(_WORKERS)]
        writers = [
            stack.enter_context(Writer(play.connect, play.tables, seed=share.index, rate=80, share=share))
            for share in shares
        ]

        ledger.ask([orders], "kafka")
        job.wait_until("windows were in flight", play.has_windows_in_flight, every=0.02)
        execute(pair.replica, "STOP REPLICA SQL_THREAD")
        written = sum(writer.written.changes for writer in writers)
        job.wait_until("the source went on", lambda: sum(w.written.changes for w in writers) > written + 300)
        execute(pair.replica, "START REPLICA SQL_THREAD")
        job.wait_until("the first snapshot was complete", partial(ledger.settle, notices))

        ledger.ask([orders, lines], "kafka")
        job.wait_until("windows were in flight", play.has_windows_in_flight, every=0.02)
        pair.server.kill()
        pair.server.start()
        execute(pair.replica, "SET GLOBAL super_read_only = ON", "START REPLICA")
        job.wait_until("the second snapshot was complete", partial(ledger.settle, notices))
        for writer in writers:
            writer.stop()
        play.drain(job)
        job.stop()

        ledger.check()
        [(own, executed, read_only)] = execute(
            pair.replica, "SELECT @@server_uuid, @@GLOBAL.gtid_executed, @@GLOBAL.super_read_only"
        )
        assert read_only == 1
        assert str(own) not in str(executed), "something was written to the replica"
