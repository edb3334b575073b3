"""What processes take, by proc(5): memory as the proportional set size, processor time with that of ended children."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from incsnap.sandbox.running_job import session_pids

_TICKS = os.sysconf("SC_CLK_TCK")
_LISTENING = "0A"
#: A look costs some milliseconds for each gigabyte, so it is not taken more often.
_MEMORY_SECONDS = 1.0


def memory_bytes(pids: Iterable[int]) -> int:
    """Proportional set size of all: a page that processes share counts once in the sum."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


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
    """Processor seconds so far of the session's processes, by kind (``java``, ``python worker`` ...)."""
    seconds: dict[str, float] = {}
    for pid in session_pids(leader):
        with contextlib.suppress(OSError):
            kind = _kind(Path(f"/proc/{pid}/cmdline").read_bytes())
            seconds[kind] = seconds.get(kind, 0.0) + process_seconds(pid)
    return seconds


def process_seconds(pid: int) -> float:
    """User and system time of the process and of its children that have ended."""
    # After the command in parentheses: field 3 of proc(5) is the first here, so 14 to 17 are 11 to 14.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


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


def _kind(command_line: bytes) -> str:
    words = command_line.split(b"\0")
    if words[0].endswith(b"java"):
        return "java"
    # Spark has a daemon for each kind of worker, and names the kind behind it.
    if any(b"streaming_source_runner" in word for word in words):
        return "planner"
    return "python workers" if b"pyspark.daemon" in words else "driver"
