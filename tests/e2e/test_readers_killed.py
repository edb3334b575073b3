"""`kill -9` of the chunks' readers alone, again and again, beside writers: the stream goes on, and the ledger holds."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from incsnap.pipeline.chunk_task import NICENESS
from incsnap.pipeline.status import read_status
from incsnap.sandbox.designs import ORDER_LINES, ORDERS
from incsnap.sandbox.running_job import RunningJob
from incsnap.sandbox.scene import Scene
from incsnap.sandbox.workload import Writer
from tests.support.ledger import Ledger

KILLS = 12

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform != "linux", reason="readers are found by the nice value of their threads"),
]


def test_readers_that_are_killed_lose_nothing_and_repeat_nothing(play: Scene, say: Callable[[str], None]) -> None:
    tables = [play.create(ORDERS, 60_000), play.create(ORDER_LINES, 20_000)]
    ledger = Ledger(play)
    killed: list[int] = []
    with (
        play.job({"incremental.snapshot.chunk.size": "5000", "snapshot.max.threads": "2"}) as job,
        play.notices() as notices,
    ):
        job.wait_until_streaming()
        with Writer(play.connect, play.tables, seed=7, rate=150) as writer:
            looked: dict[int, int] = {}

            def killed_enough() -> bool:
                if ledger.settle(notices):
                    ledger.ask(tables, "source")
                for pid in reading(job, looked):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                return len(killed) >= KILLS

            job.wait_until(f"{KILLS} readers were killed", killed_enough, 180, every=0.2)
            job.wait_until("the snapshots were complete", lambda: ledger.settle(notices), 180)
        play.drain(job)
        assert job.exit_code() is None, job.log_tail()
        job.stop()

    verdicts = ledger.check()

    status = read_status(str(play.checkpoint))
    assert status is not None
    say(f"{len(killed)} readers killed, {len(ledger.asked)} signals, {writer.written.changes} changes")
    assert writer.written.changes > 500
    assert all(verdict.replay.counts[op] > 0 for verdict in verdicts for op in "rcud")


def reading(job: RunningJob, looked: dict[int, int]) -> Iterator[int]:
    """A process of the job whose reader has used the processor since it was looked at last; ``looked`` remembers."""
    for pid in job.remains():
        ticks = sum(_ticks_of_readers(pid))
        if ticks and looked.get(pid, 0) < ticks:
            looked[pid] = ticks
            yield pid
            return


def _ticks_of_readers(pid: int) -> Iterator[int]:
    """Processor time of each thread that gives way (proc(5): utime and stime are fields 14 and 15, nice is 19)."""
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[16]) == NICENESS:
                yield int(fields[11]) + int(fields[12])
