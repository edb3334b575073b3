"""The processes of a job: which part each is, and how to suspend, observe and kill it.

All Python processes are forked from one (`spark.launch.zygote`), so the tree tells the parts apart:

    job ─┬─ JVM ─── launchers
         └─ zygote ─┬─ planner               a child with threads
                    └─ daemon ─── workers    its children: tasks of the stream and readers of chunks
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

import psutil

from incsnap.tasks.chunk import NICENESS
from lab.running_job import RunningJob, kill_session

ALL, DRIVER, JVM, PLANNER, WORKER, DAEMON, ZYGOTE, READER = (
    "all", "job", "JVM", "planner", "worker", "daemon", "zygote", "reader",
)  # fmt: skip
#: Parts whose death ends the job, which must then be started again.
ENDS_THE_JOB = frozenset({ALL, DRIVER, JVM})


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    name: str
    threads: int


def parts(job: RunningJob) -> dict[str, list[int]]:
    """Return the process ids of each part that lives."""
    living = {each.pid: each for each in map(_process, job.remains()) if each is not None}
    children: dict[int, list[_Process]] = {}
    for each in living.values():
        children.setdefault(each.parent, []).append(each)
    ours = children.get(job.pid, [])
    jvms = [each.pid for each in ours if each.name == "java"]
    zygotes = [each.pid for each in ours if each.name != "java"]
    forked = [each for zygote in zygotes for each in children.get(zygote, [])]
    busy = {each.pid: [child.pid for child in children.get(each.pid, []) if child.threads > 1] for each in forked}
    return {
        DRIVER: [job.pid],
        JVM: jvms,
        ZYGOTE: zygotes,
        PLANNER: [each.pid for each in forked if each.threads > 1],
        DAEMON: [pid for pid, workers in busy.items() if workers],
        WORKER: [pid for workers in busy.values() for pid in workers],
    }


def _process(pid: int) -> _Process | None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return _Process(pid, process.ppid(), process.name(), process.num_threads())
    return None


def freeze(pids: Iterable[int]) -> None:
    """Suspend the processes (SIGSTOP)."""
    _send(pids, signal.SIGSTOP)


def go_on(pids: Iterable[int]) -> None:
    """Let suspended processes continue (SIGCONT)."""
    _send(pids, signal.SIGCONT)


def killed(job: RunningJob, victim: str, random: Random) -> str:
    """Kill a process of that part with SIGKILL, or the whole job if the part has no process yet.

    Return what was killed.
    """
    pids = [job.pid] if victim in (ALL, DRIVER) else parts(job).get(victim, [])
    if victim == ALL or not pids:
        # Workers may outlive their driver for a moment, as zombies that must be fenced.
        _send([job.pid], signal.SIGKILL)
        kill_session(job.pid)
        return ALL
    _send([random.choice(pids)], signal.SIGKILL)
    return victim


def reading(job: RunningJob, looked: dict[int, float]) -> Iterator[int]:
    """Yield a process of the job whose chunk reader has used the processor since the last look, if there is one.

    `looked` keeps the processor seconds of each process's reader.
    """
    for pid in job.remains():
        seconds = _reader_seconds(pid)
        if seconds > looked.get(pid, 0.0):
            looked[pid] = seconds
            yield pid
            return


def _reader_seconds(pid: int) -> float:
    """Return the processor seconds of the process's chunk readers: threads with a nice value of their own, on Linux."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        for thread in psutil.Process(pid).threads():
            with contextlib.suppress(ProcessLookupError):
                if os.getpriority(os.PRIO_PROCESS, thread.id) == NICENESS:
                    total += thread.user_time + thread.system_time
    return total


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
