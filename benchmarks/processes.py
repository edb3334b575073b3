"""What processes take, by proc(5): memory as the proportional set size, processor time with that of ended children."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from incsnap.pipeline import process_name
from incsnap.sandbox.running_job import session_pids

_TICKS = os.sysconf("SC_CLK_TCK")
_LISTENING = "0A"
#: A look costs some milliseconds for each gigabyte, so it is not taken more often.
_MEMORY_SECONDS = 1.0
#: By the names that incsnap gives to its processes.
_KINDS = {
    process_name.ZYGOTE: "zygote",
    process_name.PLAN: "plans of the query",
    process_name.PLANNER: "planner",
    process_name.TASKS: "stream's workers",
    process_name.COMMITS: "commit runner",
}


def memory_bytes(pids: Iterable[int]) -> int:
    """Proportional set size of all: a page that processes share counts once in the sum."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def memory_by_kind(pids: Iterable[int]) -> dict[str, int]:
    """The same by kind (``java``, ``planner`` ...)."""
    found: dict[str, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            kind = _kind(pid)
            found[kind] = found.get(kind, 0) + memory_bytes([pid])
    return found


class MemoryPeak:
    """``with MemoryPeak(leader) as peak:`` looks once a second at all processes of the session; then ``peak.bytes``."""

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
    """Processor seconds so far of the session's processes, by kind (``JVM``, ``stream's workers`` ...)."""
    seconds: dict[str, float] = {}
    for pid in session_pids(leader):
        with contextlib.suppress(OSError):
            kind = _kind(pid)
            used = {kind: process_seconds(pid)}
            if kind == _KINDS[process_name.TASKS]:
                # A worker does both, by turns: chunks are read by a thread of their own.
                reading = _thread_seconds(pid, process_name.CHUNK)
                used = {kind: used[kind] - reading, "chunk readers": reading}
            for each, more in used.items():
                seconds[each] = seconds.get(each, 0.0) + more
    return seconds


def process_seconds(pid: int) -> float:
    """User and system time of the process and of its children that have ended."""
    return _seconds(Path(f"/proc/{pid}/stat"), 4)


def listener(port: int) -> int | None:
    """The process that listens at the port; none when it is on another machine or somebody else's."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(descriptor) in sockets:
                return int(descriptor.parts[2])
    return None


def _kind(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    if words[0].endswith(b"java"):
        return "JVM"
    if any(word.endswith(b"launcher.py") for word in words):
        return "launchers"
    # What is forked has the driver's command line, and a name of its own.
    return _KINDS.get(Path(f"/proc/{pid}/comm").read_text().strip(), "driver")


def _thread_seconds(pid: int, name: str) -> float:
    total = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (thread / "comm").read_text().strip() == name:
                total += _seconds(thread / "stat", 2)
    return total


def _seconds(stat: Path, fields: int) -> float:
    """The first two are user and system time; the next two those of children that have ended."""
    # After the command in parentheses: field 3 of proc(5) is the first here, so 14 is 11.
    return sum(map(int, stat.read_text().rpartition(")")[2].split()[11 : 11 + fields])) / _TICKS
