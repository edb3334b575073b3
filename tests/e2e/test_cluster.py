"""A job on a standalone cluster of two machines: executors and machines die, and the ledger finds no fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from incsnap.checkpoint.status import read_status
from lab.captured_database import CapturedDatabase
from lab.object_store import ObjectStore
from lab.owned_keys import Share
from lab.running_job import write_properties
from lab.spark_cluster import SparkCluster
from lab.table_designs import ORDER_LINES, ORDERS, PEOPLE
from lab.workload import Writer
from tests.support.ledger import Ledger

pytestmark = pytest.mark.servers


def test_executors_that_are_killed_in_snapshots_lose_and_repeat_nothing(
    play: CapturedDatabase, cluster: SparkCluster
) -> None:
    orders, lines, people = (play.create(ORDERS, 5_000), play.create(ORDER_LINES, 3_000), play.create(PEOPLE, 1_500))
    ledger = Ledger(play)
    # More partitions than the cluster has cores.
    more = {"incremental.snapshot.chunk.size": "300", "topic.creation.default.partitions": "7"}
    with (
        play.job({**cluster.settings, **more}) as job,
        play.notices() as notices,
    ):
        job.wait_until_streaming()
        killed = 0
        with Writer(play.connect, play.tables, seed=3, rate=150, share=Share(0, 1)):
            for tables, worker in zip(([orders, lines], [people, orders]), cluster.workers, strict=True):
                ledger.ask(tables, "source")
                job.wait_until("windows were in flight", play.has_windows_in_flight, every=0.02)
                killed += worker.kill_executors()
                job.wait_until("the snapshots were complete", lambda: ledger.settle(notices))
        play.drain(job)
        job.stop()

    verdicts = ledger.check()

    assert killed == len(cluster.workers)
    worker_logs = "".join(worker.stderr() for worker in cluster.workers)
    assert "Spark Executor Command" in worker_logs
    assert "INFO Executor" not in worker_logs, "executors tell of each task"
    assert all(verdict.replay.counts[op] > 0 for verdict in verdicts for op in "rcud")


@pytest.mark.long
def test_a_killed_executor_loses_and_repeats_nothing_with_a_checkpoint_in_s3(
    play: CapturedDatabase, cluster: SparkCluster, in_bucket: dict[str, str], object_store: ObjectStore
) -> None:
    location = in_bucket["checkpoint.location"]
    orders, lines = play.create(ORDERS, 4_000), play.create(ORDER_LINES, 2_000)
    ledger = Ledger(play)
    more = {**cluster.settings, **in_bucket, "incremental.snapshot.chunk.size": "300"}
    requests: list[tuple[str, str]] = []
    object_store.requests()

    def a_window_is_written() -> bool:
        # In a bucket the status may be ten seconds old.
        requests.extend(object_store.requests())
        return any(method == "PUT" and "/windows/" in key for method, key in requests)

    with (
        play.job(more) as job,
        play.notices() as notices,
    ):
        job.wait_until("its first batch", lambda: read_status(location) is not None)
        with Writer(play.connect, play.tables, seed=3, rate=150, share=Share(0, 1)):
            ledger.ask([orders, lines], "source")
            job.wait_until("a window was written", a_window_is_written, every=0.02)
            killed = cluster.workers[0].kill_executors()
            job.wait_until("the snapshot was complete", lambda: ledger.settle(notices))
        play.drain(job)
        job.stop()

    verdicts = ledger.check()

    assert killed == 1
    assert all(verdict.replay.counts[op] > 0 for verdict in verdicts for op in "rcud")
    assert not any(method == "COPY" for method, _ in [*requests, *object_store.requests()]), "something was renamed"


def test_a_machine_that_lacks_what_the_settings_name_is_told_before_the_first_batch(
    play: CapturedDatabase, cluster: SparkCluster
) -> None:
    """The settings name a file in /proc/self/cwd. It exists in the driver's folder, and not in those of executors."""
    own = Path("/proc/self/cwd")
    (play.folder / "ca.pem").write_text("")
    more = {
        **cluster.settings,
        "checkpoint.location": str(own / "checkpoint"),
        "producer.ssl.ca.location": str(own / "ca.pem"),
    }
    path = write_properties(play.folder / "incsnap.properties", play.properties(more))
    command = [sys.executable, "-m", "incsnap", "run", str(path)]
    ended = subprocess.run(command, cwd=play.folder, capture_output=True, text=True, check=False, timeout=300)

    assert ended.returncode == 2, ended.stderr
    for worker in cluster.workers:
        assert f"(executor in {worker.folder}" in ended.stderr
    assert "/proc/self/cwd/ca.pem: No such file or directory" in ended.stderr
    assert "does not share /proc/self/cwd/checkpoint with the driver" in ended.stderr
    assert list((play.folder / "checkpoint" / "incsnap").glob("machines/*")) == []
