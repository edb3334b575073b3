"""A standalone Spark cluster on loopback: a master, and workers that look like separate machines.

Each worker has its own address (127.0.0.2, 127.0.0.3, ...), so Spark takes the workers for different hosts. Each has
its own folder, in which its executors run.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
from pyspark.find_spark_home import _find_spark_home

from incsnap.errors import ServerUnreachable
from lab.child_programs import Child, child
from lab.run_folder import run_folder
from lab.running_job import kill_session

_READY_SECONDS = 120
#: The log line with the master's address. Spark chose the port (0 was given), so no other process can have it.
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile("Successfully registered with master")
#: Variables that the daemons must not inherit: Spark's own scripts set them, or they belong to the calling program.
_NOT_THEIRS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "VIRTUAL_ENV", "PYTHONPATH")


class SparkWorker:
    """A worker of the cluster. Its executors have their working directories below `folder`."""

    def __init__(self, master: str, number: int, cores: int, memory: str, folder: Path) -> None:
        self.host = f"127.0.0.{number + 2}"
        self.folder = folder
        self._command = [
            *_spark("org.apache.spark.deploy.worker.Worker"),
            *("--host", self.host, "--port", "0", "--webui-port", "0"),
            *("--cores", str(cores), "--memory", memory, "--work-dir", str(folder), master),
        ]
        self._life = ExitStack()
        self._child: Child | None = None

    def start(self) -> None:
        """Start the worker, also again after `kill`. `wait_until_known` waits until the master has registered it."""
        self.folder.mkdir(exist_ok=True)
        log = self.folder.with_suffix(".log")
        log.unlink(missing_ok=True)
        self._child = self._life.enter_context(child(f"worker {self.host}", self._command, log, env=_environment()))
        self._life.callback(kill_session, self._child.pid)

    def wait_until_known(self) -> None:
        """Wait until the worker is registered at the master."""
        assert self._child is not None
        _wait_for(self._child, _REGISTERED)

    def kill(self) -> None:
        """Kill the worker, its executors and their Python processes with SIGKILL."""
        self._life.close()
        self._child = None

    def executors(self) -> list[int]:
        """Return the process ids of the executors' living JVMs."""
        return self.children("CoarseGrainedExecutorBackend")

    def children(self, main: str) -> list[int]:
        """Return the ids of the worker's living children whose command line contains `main`: executors, or drivers."""
        pids = []
        if self._child is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                for each in psutil.Process(self._child.pid).children():
                    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                        if any(main in word for word in each.cmdline()):
                            pids.append(each.pid)
        return pids

    def kill_executors(self) -> int:
        """Kill the executors' JVMs with SIGKILL. Return how many there were. Spark starts others in their place."""
        pids = self.executors()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)

    def stderr(self) -> str:
        """Return all that the worker's executors have written to stderr."""
        return "\n".join(file.read_text(errors="replace") for file in sorted(self.folder.glob("*/*/stderr")))


class SparkCluster:
    """A running cluster. `master` is its URL."""

    def __init__(self, master: str, workers: list[SparkWorker]) -> None:
        self.master = master
        self.workers = workers

    @property
    def settings(self) -> dict[str, str]:
        """Return a job's settings for small executors on all workers."""
        return {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
        }

    def executors(self) -> list[int]:
        """Return the process ids of all executors' living JVMs."""
        return [pid for worker in self.workers for pid in worker.executors()]


@contextlib.contextmanager
def spark_cluster(workers: int = 2, cores: int = 2, memory: str = "2g") -> Iterator[SparkCluster]:
    """Run a cluster until the block ends.

    `cores` and `memory` are what each worker offers to executors. The machine need not have as much.
    """
    with run_folder() as folder, ExitStack() as stack:
        command = [
            *_spark("org.apache.spark.deploy.master.Master"),
            *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
        ]
        started = stack.enter_context(child("Spark's master", command, folder / "master.log", env=_environment()))
        master = _wait_for(started, _MASTER).group(1)
        machines = [
            SparkWorker(master, number, cores, memory, folder / f"worker-{number}") for number in range(workers)
        ]
        for machine in machines:
            stack.callback(machine.kill)
            machine.start()
        # Wait for all of them only now: their JVMs start in parallel.
        for machine in machines:
            machine.wait_until_known()
        yield SparkCluster(master, machines)


def _spark(main: str) -> list[str]:
    # Spark's own script makes the environment in which executors are started.
    return [f"{_find_spark_home()}/bin/spark-class", main]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_THEIRS}
    quick = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    return {**kept, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": quick}


def _wait_for(started: Child, words: re.Pattern[str]) -> re.Match[str]:
    deadline = time.monotonic() + _READY_SECONDS
    while (match := words.search(started.log.read_text(errors="replace"))) is None:
        if started.exit_code() is not None or time.monotonic() > deadline:
            raise ServerUnreachable(f"{started.name} did not start:\n{started.last_words()}")
        time.sleep(0.05)
    return match
