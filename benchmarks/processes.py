"""The memory and processor time of processes, on Linux. Memory is the proportional set size."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable

import psutil

from incsnap.tasks import process_name
from lab.running_job import session_pids

#: Seconds between two looks. A look takes some milliseconds for each gigabyte.
_MEMORY_SECONDS = 1.0
#: Kinds of processes, by the names that incsnap gives to its processes.
_KINDS = {
    process_name.ZYGOTE: "zygote",
    process_name.PLAN: "plans of the query",
    process_name.PLANNER: "planner",
    process_name.TASKS: "stream's workers",
    process_name.COMMITS: "commit runner",
}


def memory_bytes(pids: Iterable[int]) -> int:
    """Return the proportional set size of all processes. The sum counts a shared page once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_full_info().pss
    return total


def memory_by_kind(pids: Iterable[int]) -> dict[str, int]:
    """Return the proportional set size by kind of process (`JVM`, `planner`, ...)."""
    memory: dict[str, int] = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            kind = _kind(pid)
            memory[kind] = memory.get(kind, 0) + memory_bytes([pid])
    return memory


class MemoryPeak:
    """A thread that looks once a second at all processes of the session of `leader`, until the `with` block ends.

    `bytes` is the highest sum so far.
    """

    def __init__(self, leader: int) -> None:
        self.bytes = 0
        self._leader = leader
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="memory", daemon=True)

    def __enter__(self) -> MemoryPeak:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            self.bytes = max(self.bytes, memory_bytes(session_pids(self._leader)))
            if self._end.wait(_MEMORY_SECONDS):
                return


def job_seconds(leader: int) -> dict[str, float]:
    """Return the processor seconds of the session's processes so far, by kind (`JVM`, `stream's workers`, ...)."""
    seconds: dict[str, float] = {}
    for pid in session_pids(leader):
        with contextlib.suppress(psutil.Error):
            kind = _kind(pid)
            used = {kind: process_seconds(pid)}
            if kind == _KINDS[process_name.TASKS]:
                # A worker does both in turn. Chunks are read by a thread of their own.
                reading = _thread_seconds(pid, process_name.CHUNK)
                used = {kind: used[kind] - reading, "chunk readers": reading}
            for each, more in used.items():
                seconds[each] = seconds.get(each, 0.0) + more
    return seconds


def process_seconds(pid: int) -> float:
    """Return user and system seconds of the process and of its ended children."""
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system + used.children_user + used.children_system


def listener(port: int) -> int | None:
    """Return the id of the process that listens on the port.

    Return None if the process is on another machine or belongs to another user.
    """
    for each in psutil.net_connections("tcp"):
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port:
            return each.pid
    return None


def _kind(pid: int) -> str:
    process = psutil.Process(pid)
    words = process.cmdline()
    if words and words[0].endswith("java"):
        return "JVM"
    # A launcher has become a shell.
    if words[:1] == ["sh"] or any(word.endswith("launcher.py") for word in words):
        return "launchers"
    # Forked processes have the driver's command line, but names of their own.
    return _KINDS.get(process.name(), "driver")


def _thread_seconds(pid: int, name: str) -> float:
    total = 0.0
    for thread in psutil.Process(pid).threads():
        # On Linux a thread has an entry in /proc, and so a name, like a process.
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(thread.id).name() == name:
                total += thread.user_time + thread.system_time
    return total
