"""A job takes over from a real Debezium: what the topics have is not sent again, and nothing is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.captured_database import CapturedDatabase
from lab.debezium import connect_worker
from lab.running_job import write_properties
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from tests.support.kafka import read_all
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


def connector(play: CapturedDatabase) -> dict[str, str]:
    """Return the settings of a connector that captures the tables of `play`, and of the job that takes over."""
    return {
        **play.properties(),
        "name": play.prefix,
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "tasks.max": "1",
        "database.server.id": "6124",
        "database.ssl.mode": "disabled",
        "driver.allowPublicKeyRetrieval": "true",
        "snapshot.mode": "no_data",
        "signal.enabled.channels": "source",
        "schema.history.internal.kafka.bootstrap.servers": play.kafka,
        "schema.history.internal.kafka.topic": f"{play.prefix}.history",
        "poll.interval.ms": "50",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }


def takeover(file: Path, offsets: Path, *more: str) -> str:
    """Run `incsnap takeover` and return what it prints. Raise CalledProcessError if it fails."""
    command = [sys.executable, "-m", "incsnap", "takeover", str(file), "--offsets", str(offsets), *more]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    sys.stdout.write(done.stdout + done.stderr)
    done.check_returncode()
    return done.stdout


def test_a_killed_connector_is_continued_without_a_gap_and_without_repetitions(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 200)
    play.create(ORDER_LINES, 100)
    settings = connector(play)
    file = write_properties(play.folder / "connector.properties", settings)
    offsets, log = play.folder / "offsets", play.folder / "connect.log"
    with connect_worker(play.kafka, log, offsets=offsets, connectors=[file]) as worker:
        wait_until(lambda: worker.streams(6124), seconds=90)
        with Writer(play.connect, play.tables, seed=11, rate=400, largest_transaction=400, xa_share=0.1) as writer:
            wait_until(lambda: offsets.exists() and b"gtids" in offsets.read_bytes(), seconds=60)
            time.sleep(1)
            flushed = offsets.read_bytes()
            time.sleep(3)
            os.kill(worker.program.pid, signal.SIGKILL)
            # The worker may have written its offset meanwhile. An older one makes the seam longer.
            offsets.write_bytes(flushed)
            sent = len(read_all(play.kafka, play.topic(orders), range(2)))
            printed = takeover(file, offsets)
            assert "What they have is not sent again" in printed
            with play.job(settings) as job:
                job.wait_until_streaming()
                time.sleep(3)
                writer.stop()
                play.drain(job)
                job.stop()
    proofs = play.verdicts()
    assert sent
    assert [fault for proof in proofs for fault in proof.faults(snapshots=1)] == []
