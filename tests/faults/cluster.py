"""The rows on a standalone Spark cluster of two machines: executors and machines end, start and hang.

Some rows use Spark's own answers: speculation, exclusion of nodes, dynamic allocation.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

import psutil

from lab.running_job import kill_session
from lab.spark_cluster import SparkWorker
from tests.faults.kills import Fault
from tests.faults.trial import Trial


def executors_killed(trial: Trial, number: int) -> None:
    """Kill a machine's executors with SIGKILL while windows are in flight. Spark starts others."""
    trial.reads()
    worker = _machine(trial, number)
    trial.done["executors"] += worker.kill_executors()


def machine_lost(trial: Trial, number: int) -> None:
    """Kill a machine with all its processes, and start it again some seconds later."""
    trial.reads()
    worker = _machine(trial, number)
    worker.kill()
    trial.done["machine"] += 1
    time.sleep(trial.random.uniform(0.0, 5.0))
    worker.start()
    worker.wait_until_known()


def driver_elsewhere(trial: Trial, number: int) -> None:
    """Kill the driver and start it again in another folder, while executors of the old one still live."""
    trial.reads()
    folder = trial.play.folder / f"elsewhere-{number}"
    folder.mkdir()
    trial.met["executors alive"] += len(trial.servers.spark().executors())
    with suppress(ProcessLookupError):
        os.kill(trial.job.pid, signal.SIGKILL)
    kill_session(trial.job.pid)
    trial.done["driver"] += 1
    trial.program = ("-c", f"import os; os.chdir({str(folder)!r}); from incsnap.cli.main import main; main()")
    trial.start()


def python_killed(trial: Trial, number: int) -> None:
    """Kill the Python processes of an executor with SIGKILL, each time on the same machine.

    Other executors run its tasks.
    """
    del number
    trial.reads()
    for jvm in _machine(trial, 0).executors():
        with suppress(psutil.NoSuchProcess):
            for each in psutil.Process(jvm).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
                    trial.done["python"] += 1


def machine_frozen(trial: Trial, number: int) -> None:
    """Suspend a machine's executors for seconds. With speculation other executors run their tasks meanwhile."""
    trial.reads()
    worker = _machine(trial, number)
    pids = [each for jvm in worker.executors() for each in (jvm, *_below(jvm))]
    for signal_ in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal_)
        if signal_ == signal.SIGSTOP:
            time.sleep(trial.random.uniform(1.0, 4.0))
    trial.done["held"] += 1


def work_and_rest(trial: Trial, number: int) -> None:
    """Let executors start for a snapshot and end afterwards. Every second time kill one too."""
    trial.met[f"{len(trial.servers.spark().executors())} executors"] += 1
    trial.reads()
    if number % 2:
        trial.done["executors"] += _machine(trial, number).kill_executors()
    else:
        # The stream alone, for longer than Spark keeps an idle executor (2 s).
        time.sleep(4.0)
        trial.done["rest"] += 1


def _machine(trial: Trial, number: int) -> SparkWorker:
    machines = trial.servers.spark().workers
    return machines[number % len(machines)]


def _below(pid: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [each.pid for each in psutil.Process(pid).children(recursive=True)]
    return []


#: The fault of each row, and the settings with which Spark meets it.
ROWS: dict[str, tuple[Fault, Mapping[str, str]]] = {
    "cluster-executors": (executors_killed, {}),
    "cluster-machine": (machine_lost, {}),
    "cluster-driver": (driver_elsewhere, {}),
    # More partitions than cores, so there are more sink tasks than cores.
    "cluster-partitions": (executors_killed, {"topic.creation.default.partitions": "9"}),
    "cluster-speculation": (
        machine_frozen,
        {
            "spark.speculation": "true",
            "spark.speculation.interval": "50ms",
            "spark.speculation.quantile": "0.1",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.minTaskRuntime": "10ms",
            "spark.speculation.task.duration.threshold": "1s",
        },
    ),
    "cluster-exclusion": (
        python_killed,
        {
            "spark.excludeOnFailure.enabled": "true",
            "spark.excludeOnFailure.timeout": "10s",
            "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "1",
            "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "1",
            "spark.excludeOnFailure.application.maxFailedTasksPerExecutor": "1",
        },
    ),
    "cluster-allocation": (
        work_and_rest,
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
            "spark.dynamicAllocation.executorIdleTimeout": "2s",
            "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
            "spark.dynamicAllocation.minExecutors": "1",
            "spark.dynamicAllocation.maxExecutors": "4",
            "spark.executor.cores": "1",
            "spark.default.parallelism": "4",
        },
    ),
}


def may_listen() -> str:
    """Return why there can be no cluster here, or "". Only Linux has a loopback address for each machine by default."""
    return "" if sys.platform == "linux" else "needs the addresses 127.0.0.2 and 127.0.0.3"
