"""Whole jobs that read chosen rows again, beside writers and over a `kill -9`."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from incsnap.cli.main import commands
from lab.captured_database import CapturedDatabase
from lab.listening import Notices
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from lab.workload import Writer

pytestmark = pytest.mark.servers

_ROWS = 20_000


def ended(notices: Notices, signal: str) -> dict[str, str]:
    """Return the additional data of the end of the signal's only table."""
    return dict(notices.of("TABLE_SCAN_COMPLETED", signal)[0]["additional_data"])


def test_listed_keys_are_exact_beside_writers_and_over_a_crash(play: CapturedDatabase) -> None:
    """Half of the keys have no row. A consumer ends with the table, and no key that came meanwhile is deleted."""
    orders = play.create(ORDERS, _ROWS)
    keys = random.Random(5).sample(range(1, 4 * _ROWS), _ROWS)
    topic = f"{play.prefix}-keys"
    producer = Producer({"bootstrap.servers": play.kafka})
    for key in keys:
        producer.produce(topic, key=json.dumps({"id": key}).encode())
    producer.flush(60)
    settings = {"incremental.snapshot.chunk.size": "500", "snapshot.max.threads": "1"}
    file = write_properties(play.folder / "signal.properties", play.properties(settings))
    command = ["signal", str(file), "execute-snapshot", "--table", str(orders), "--keys-topic", topic]
    with ExitStack() as stack:
        notices = stack.enter_context(play.notices())
        writer = stack.enter_context(Writer(play.connect, play.tables, seed=3, rate=100))
        with play.job(settings) as job:
            job.wait_until_streaming()
            sent = CliRunner().invoke(commands, [*command, "--absent", "delete", "--id", "lost"])
            assert sent.exit_code == 0, sent.output
            job.wait_until(
                "first windows", lambda: notices.poll() is not None and notices.of("IN_PROGRESS", "lost") != []
            )
            job.kill()
        job = stack.enter_context(play.job(settings))
        job.wait_until("the end of the list", lambda: notices.completed("lost"))
        writer.stop()
        play.drain(job)
        end = ended(notices, "lost")
        assert end["status"] == "SUCCEEDED"
        assert int(end["total_rows_scanned"]) + int(end["absent_keys"]) == _ROWS
        assert 0 < int(end["absent_keys"]) < _ROWS

        # All rows come, so that the comparison sees a wrong deletion.
        sent = CliRunner().invoke(commands, [*command[:5], "--id", "all"])
        assert sent.exit_code == 0, sent.output
        job.wait_until("the whole table", lambda: notices.completed("all"))
        play.drain(job)
    (proof,) = play.verdicts()
    assert proof.faults(snapshots=2) == []
    assert proof.replay.counts["tombstone"] >= int(end["absent_keys"])
