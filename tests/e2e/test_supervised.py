"""A driver that runs on the cluster too (`spark-submit --deploy-mode cluster --supervise`), and dies there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pyspark
import pytest
from pyspark.find_spark_home import _find_spark_home

from incsnap.spark.cluster import packaging
from incsnap.spark.worker_python import interpreter
from lab.captured_database import CapturedDatabase
from lab.running_job import RunningJob, write_properties
from lab.spark_cluster import SparkCluster, SparkWorker
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer
from tests.support.ledger import Ledger

pytestmark = [pytest.mark.servers, pytest.mark.long]


@pytest.mark.parametrize("lost", ["its JVM", "its machine"])
def test_a_driver_that_dies_comes_back_by_itself_and_loses_and_repeats_nothing(
    play: CapturedDatabase, cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    # Only the archive's program is needed: the machines find incsnap in the driver's own path.
    monkeypatch.setattr(packaging, "required", lambda name: {})
    _, program = packaging.package(play.folder / "made")
    orders, lines = play.create(ORDERS, 2_500), play.create(ORDER_LINES, 1_200)
    ledger = Ledger(play)
    job = SupervisedJob(cluster, play.checkpoint)
    with play.notices() as notices:
        job.submit(program, play)
        job.wait_until_streaming()
        with Writer(play.connect, play.tables, seed=3, rate=60):
            ledger.ask([orders, lines], "source")
            job.wait_until("windows were in flight", play.has_windows_in_flight, every=0.02)
            machine, before = job.driver()
            if lost == "its JVM":
                os.kill(before, signal.SIGKILL)
            else:
                machine.kill()
            job.wait_until("the snapshot was complete", lambda: ledger.settle(notices))
            place, after = job.driver()
        play.drain(job)
        job.stop()
    if lost == "its machine":
        machine.start()
        machine.wait_until_known()

    ledger.check()
    assert after != before
    assert (place is machine) == (lost == "its JVM")


class SupervisedJob(RunningJob):
    """A job that the cluster starts again. It has no process for which the test could wait."""

    def __init__(self, cluster: SparkCluster, checkpoint: Path) -> None:
        self._cluster, self._checkpoint = cluster, checkpoint

    def submit(self, program: Path, play: CapturedDatabase) -> None:
        """Submit the job to the cluster."""
        more = {**self._cluster.settings, "incremental.snapshot.chunk.size": "300"}
        properties = write_properties(play.folder / "job.properties", play.properties(more))
        (jar,) = Path(pyspark.__file__).parent.glob("jars/spark-tags_*.jar")
        options = ["--master", self._cluster.master, "--deploy-mode", "cluster", "--supervise"]
        options += ["--driver-memory", "512m", "--conf", f"spark.pyspark.python={interpreter()}"]
        options += ["--class", "org.apache.spark.deploy.PythonRunner", f"file://{jar}"]
        command = [f"{_find_spark_home()}/bin/spark-submit", *options, str(program), "", "run", str(properties)]
        submitted = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
        assert submitted.returncode == 0, submitted.stderr

    def exit_code(self) -> int | None:
        return None

    def log_tail(self, lines: int = 40) -> str:
        logs = [file for worker in self._cluster.workers for file in worker.folder.glob("driver-*/std*")]
        return "\n".join("\n".join(file.read_text(errors="replace").splitlines()[-lines:]) for file in sorted(logs))

    def driver(self) -> tuple[SparkWorker, int]:
        """Return the driver's machine, and the process id of its JVM."""
        ((worker, jvm, _),) = self._drivers()
        return worker, jvm

    def stop(self, seconds: float = 240.0) -> None:
        """Stop the job as a user does: SIGTERM to its Python process.

        The supervisor considers its clean end the job's end.
        """
        for _, _, python in self._drivers():
            os.kill(python, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while list(self._drivers()):
            assert time.monotonic() < deadline, f"the driver did not end:\n{self.log_tail()}"
            time.sleep(0.05)

    def _drivers(self) -> Iterator[tuple[SparkWorker, int, int]]:
        for worker in self._cluster.workers:
            for jvm in worker.children("DriverWrapper"):
                with suppress(psutil.NoSuchProcess):
                    # Other children belong to Spark, such as the planner.
                    for child in psutil.Process(jvm).children():
                        if any(packaging.MAIN in word for word in child.cmdline()):
                            yield worker, jvm, child.pid
