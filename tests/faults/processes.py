"""Who is who among the processes of a job, and how one of them is stopped, looked at and killed.

No process bears its part's name: all of Python's are forked from one (``spark.zygote``). The tree tells them apart::

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
#: Those whose death ends the life of the job: it has to be started again by somebody.
ENDS_THE_JOB = frozenset({ALL, DRIVER, JVM})


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    name: str
    threads: int


def parts(job: RunningJob) -> dict[str, list[int]]:
    """The pids of each part that lives."""
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
    """They stand still, from one moment to the next."""
    _send(pids, signal.SIGSTOP)


def go_on(pids: Iterable[int]) -> None:
    _send(pids, signal.SIGCONT)


def killed(job: RunningJob, victim: str, random: Random) -> str:
    """``kill -9`` of that part, or of all where it has no process yet; returns what was killed."""
    pids = [job.pid] if victim in (ALL, DRIVER) else parts(job).get(victim, [])
    if victim == ALL or not pids:
        # Workers outlive their driver for a moment now and then: zombies, to be fenced.
        _send([job.pid], signal.SIGKILL)
        kill_session(job.pid)
        return ALL
    _send([random.choice(pids)], signal.SIGKILL)
    return victim


def reading(job: RunningJob, looked: dict[int, float]) -> Iterator[int]:
    """A process of the job whose reader has used the processor since it was looked at last; ``looked`` remembers."""
    for pid in job.remains():
        seconds = _reader_seconds(pid)
        if seconds > looked.get(pid, 0.0):
            looked[pid] = seconds
            yield pid
            return


def _reader_seconds(pid: int) -> float:
    """Processor time of the process's threads that give way: on Linux each thread has a nice value of its own."""
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
