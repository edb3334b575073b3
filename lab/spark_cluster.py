"""Spark's standalone cluster on loopback: a master, and workers that seem to be machines of their own.

Each worker has an address of its own (127.0.0.2, 127.0.0.3, ...), so Spark takes them for different hosts, and a folder
of its own, in which its executors run.
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
from incsnap.spark.child_programs import Child, child
from lab.run_folder import run_folder
from lab.running_job import kill_session

_READY_SECONDS = 60
#: Where the log tells an address; port 0 was asked for, so nobody can have taken it.
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile("Successfully registered with master")
#: What Spark's own scripts leave to a standalone daemon, or to an executor, and what belongs to the program that asks.
_NOT_THEIRS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "VIRTUAL_ENV", "PYTHONPATH")


class SparkWorker:
    """One machine of the cluster. ``folder``: below it its executors have their working directories."""

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
        """Starts it, also again after ``kill``; ``wait_until_known`` returns when it is there."""
        self.folder.mkdir(exist_ok=True)
        log = self.folder.with_suffix(".log")
        log.unlink(missing_ok=True)
        self._child = self._life.enter_context(child(f"worker {self.host}", self._command, log, env=_environment()))
        self._life.callback(kill_session, self._child.pid)

    def wait_until_known(self) -> None:
        """Waits until the master has it."""
        assert self._child is not None
        _wait_for(self._child, _REGISTERED)

    def kill(self) -> None:
        """``kill -9`` of all of the machine: worker, executors, and their Python processes."""
        self._life.close()
        self._child = None

    def executors(self) -> list[int]:
        """Pids of the executors' JVMs that live."""
        return self.children("CoarseGrainedExecutorBackend")

    def children(self, main: str) -> list[int]:
        """Pids of what it has started and that lives, with ``main`` in its command line: executors, or drivers."""
        pids = []
        if self._child is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                for each in psutil.Process(self._child.pid).children():
                    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                        if any(main in word for word in each.cmdline()):
                            pids.append(each.pid)
        return pids

    def kill_executors(self) -> int:
        """``kill -9`` of their JVMs; how many there were. Spark asks for others in their place."""
        pids = self.executors()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)

    def stderr(self) -> str:
        """What its executors have written to stderr, all of them."""
        return "\n".join(file.read_text(errors="replace") for file in sorted(self.folder.glob("*/*/stderr")))


class SparkCluster:
    """``master``: its URL."""

    def __init__(self, master: str, workers: list[SparkWorker]) -> None:
        self.master = master
        self.workers = workers

    @property
    def settings(self) -> dict[str, str]:
        """A job's: executors as small as a test needs them, on all workers."""
        return {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
        }

    def executors(self) -> list[int]:
        return [pid for worker in self.workers for pid in worker.executors()]


@contextlib.contextmanager
def spark_cluster(workers: int = 2, cores: int = 2, memory: str = "2g") -> Iterator[SparkCluster]:
    """``cores`` and ``memory``: of each worker, to give to executors; the machine need not have as many."""
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
        # Side by side: each is a JVM that boots.
        for machine in machines:
            machine.wait_until_known()
        yield SparkCluster(master, machines)


def _spark(main: str) -> list[str]:
    # Spark's own script: executors are started in the environment that it makes.
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
