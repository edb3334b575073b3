"""A whole job whose checkpoint is in a bucket: snapshots under writers, a second job, SIGKILL, and the ledger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from incsnap.checkpoint.status import read_status
from lab.captured_database import CapturedDatabase
from lab.object_store import ObjectStore
from lab.owned_keys import Share
from lab.running_job import INCSNAP, write_properties
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from tests.support.ledger import Ledger
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


def incsnap(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *INCSNAP, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def test_a_job_that_is_killed_goes_on_from_a_bucket(
    play: CapturedDatabase, in_bucket: dict[str, str], object_store: ObjectStore, tmp_path: Path
) -> None:
    location = in_bucket["checkpoint.location"]
    settings = {**in_bucket, "incremental.snapshot.chunk.size": "700"}
    orders, lines = play.create(ORDERS, 8_000), play.create(ORDER_LINES, 4_000)
    file = write_properties(tmp_path / "again.properties", play.properties(settings))
    ledger = Ledger(play)
    shares = [Share(0, 2), Share(1, 2)]
    with play.notices() as notices:
        first, second = (
            Writer(play.connect, play.tables, seed=seed, rate=100, share=share) for seed, share in enumerate(shares)
        )
        with play.job(settings) as job:
            job.wait_until("its first batch", lambda: read_status(location) is not None)
            with first, second:
                ledger.ask([orders, lines], "source")
                job.wait_until("rows were sent", lambda: (s := read_status(location)) is not None and s.sent.reads > 0)
                command_lines = "".join(" ".join(line) for _, line in job.commands())
                other = incsnap("run", "--skip-check", str(file))
                alive = incsnap("status", "--json", str(file))
                job.kill()
                with play.job(settings) as again:
                    again.wait_until("the snapshot was complete", lambda: ledger.settle(notices))
                    ledger.ask([lines], "kafka")
                    again.wait_until("the second one was", lambda: ledger.settle(notices))
                    first.stop()
                    second.stop()
                    play.drain(again)
                    again.stop()
        ended = incsnap("status", "--json", str(file))

    ledger.check()
    assert other.returncode != 0
    assert f"Another incsnap runs on the checkpoint {location}/incsnap: the process {job.pid} on" in output_of(other)
    assert '"alive": true' in alive.stdout, output_of(alive)
    assert '"state": "stopped"' in ended.stdout, output_of(ended)
    everything = "".join([play.log.read_text(), command_lines, *map(output_of, (other, alive, ended))])
    assert object_store.secret_key not in everything
    assert object_store.access_key not in command_lines
    assert not any(method == "COPY" for method in object_store.request_counts()), "something was renamed"


def output_of(program: subprocess.CompletedProcess[str]) -> str:
    return " ".join((program.stdout + program.stderr).split())
