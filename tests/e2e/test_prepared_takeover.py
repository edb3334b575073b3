"""A prepared take-over: Spark is ready when the connector stops, so changes are away for seconds only."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.captured_database import CapturedDatabase
from lab.debezium import connect_worker
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from lab.workload import Writer
from tests.e2e.test_hand_back import ask
from tests.e2e.test_takeover import connector, sent_by_connector
from tests.support.kafka import read_all
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.long]

#: Most seconds without a change. It is far more than a quiet machine takes: Spark starts a query in 2 to 12 s.
_MOST_SECONDS = 30.0


@contextmanager
def takeover_that_runs(file: Path, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a take-over that waits and starts the job, until the block ends."""
    command = [sys.executable, "-m", "incsnap", "takeover", str(file), "--wait", "--run", *options]
    with log.open("wb") as lines, subprocess.Popen(command, stdout=lines, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.parametrize("way", ["stopped", "killed"])
def test_changes_go_on_within_seconds_of_the_connectors_end(play: CapturedDatabase, way: str) -> None:
    orders = play.create(ORDERS, 200)
    settings = connector(play)
    file = write_properties(play.folder / "connector.properties", settings)
    offsets, log = play.folder / "offsets", play.folder / "takeover.log"

    def count() -> int:
        return len(read_all(play.kafka, play.topic(orders), range(2)))

    with connect_worker(play.kafka, play.folder / "connect.log", offsets=offsets, connectors=[file]) as worker:
        wait_until(lambda: worker.streams(6124), seconds=90)
        sent_by_connector(play, 1)
        with Writer(play.connect, play.tables, seed=11, rate=200) as writer:
            wait_until(lambda: b"gtids" in offsets.read_bytes() if offsets.exists() else False, seconds=60)
            with takeover_that_runs(file, log, "--offsets", str(offsets), "--rest", worker.url):
                wait_until(lambda: "Ready. Stop the connector now" in log.read_text(), seconds=90)
                ended = time.monotonic()
                if way == "stopped":
                    ask(f"{worker.url}/connectors/{play.prefix}/stop", "PUT")
                else:
                    os.kill(worker.program.pid, signal.SIGKILL)
                # The same sentences before this line are of the check while the connector ran.
                wait_until(
                    lambda: any(
                        sentence in log.read_text().partition("Ready. Stop the connector now")[2]
                        for sentence in ("What they have is not sent", "have no change")
                    )
                )
                joined, before = time.monotonic() - ended, count()
                wait_until(lambda: count() > before, seconds=90)
                seconds = time.monotonic() - ended
                time.sleep(1)
                writer.stop()
                sent_by_connector(play, 2)
    values = [json.loads(read.value) for read in read_all(play.kafka, play.topic(orders), range(2)) if read.value]
    times = sorted(value["ts_ms"] for value in values)
    longest = max(later - earlier for earlier, later in itertools.pairwise(times)) / 1000
    sys.stdout.write(f"{way}: joined after {joined:.1f} s, first change after {seconds:.1f} s, gap {longest:.1f} s\n")
    (proof,) = play.verdicts()
    assert proof.faults(snapshots=0) == []
    assert longest < _MOST_SECONDS, log.read_text()
