"""The short matrix: twenty faults of one job, one after the other.

No record may be lost, come twice or go back in time.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from incsnap.checkpoint.status import read_status
from tests.faults.fault_servers import fault_servers
from tests.faults.matrix import rows
from tests.faults.trial import trial

SEED = 20_261
#: Rows, and which of their turns: before and after each durable step, and the death of each part. Few of them restart
#: the JVM, which takes longest.
FAULTS = (
    ("plan", 0),  # all
    ("mysql-sessions", 0),
    ("plan", 3),  # planner
    ("reader", 0),
    ("counters", 0),  # all: sent, but not in Spark's commit log
    ("offset-log", 2),  # planner
    ("mysql-sessions", 1),
    ("commit-log", 5),  # worker
    ("window", 4),  # worker
    ("kafka-slow", 0),
    ("transaction", 4),  # worker, before
    ("transaction", 1),  # all, after
    ("manifest", 5),  # worker
    ("reader", 0),
    ("discards", 4),  # worker
    ("mysql-sessions", 3),
    ("mysql-killed", 0),
    ("worker", 0),
    ("counters", 1),  # all
    ("kafka-killed", 0),
)

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("apt-get") is None,
        reason="needs inotify, /proc and servers of its own to kill, which are fetched on Debian only",
    ),
]


def test_twenty_faults_lose_nothing_and_repeat_nothing(tmp_path: Path, say: Callable[[str], None]) -> None:
    random = Random(SEED)
    known = rows(longest_hold=2.0)
    with fault_servers() as servers, trial(servers, "short", random, tmp_path, 6_000, {}) as running:
        for row, turn in FAULTS:
            running.keep_reading()
            known[row].fault(running, turn)
            if random.random() < 0.5:
                running.goes_on()
            else:
                running.writers.keep()
                running.alive()
        wrong = running.finish()
        say(f"{len(FAULTS)} faults: {running.account()}; {dict(running.done)}")
        status = read_status(str(running.play.checkpoint))

        assert wrong == []
        assert status is not None
        # The number of kills between Kafka's commit and Spark's is printed and not asserted: it is one or two, by
        # chance. tests/integration/test_kafka_transactions.py holds what a bucket does then.
        assert status.sent.discarded > 0, "no event ever met a window: nothing was put to the test"
        assert running.writers.changes > 1_000
        assert all(count > 0 for count in running.writers.prepared.values()), running.writers.prepared


def test_a_job_goes_on_where_its_gtids_say_when_a_replica_takes_over(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """Fail over and back. File positions mean nothing on the other server, and windows are in flight."""
    failover = rows(longest_hold=2.0)["failover"].fault
    with fault_servers() as servers:
        servers.replicate()
        with trial(servers, "failover", Random(SEED), tmp_path, 3_000, {}) as running:
            for number in range(2):
                running.keep_reading()
                failover(running, number)
                running.goes_on()
            wrong = running.finish()
            say(f"2 failovers: {running.account()}")

            assert wrong == []
            assert running.done["failover"] == 2
            assert running.starts == 1, "the job itself must not end"
