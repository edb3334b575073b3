"""A limit of the operating system for all processes of a job together, by a control group.

Only version 1 of control groups (`/sys/fs/cgroup/memory`) allows a group beside running processes without a service
manager. See https://docs.kernel.org/admin-guide/cgroup-v1/memory.html.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup/memory")
_LEAVE_SECONDS = 10.0


class NoLimit(Exception):
    """The error of a machine on which processes cannot be limited. It tells why."""


class MemoryLimit:
    """A control group below this process's own, from the beginning to the end of the `with` block.

    `take` moves processes into the group; processes that they start belong to it too. If the group needs more than
    `limit` bytes that cannot be reclaimed, the kernel kills one of its processes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._group = _own() / f"incsnap-{os.getpid()}-{time.monotonic_ns()}"

    def __enter__(self) -> MemoryLimit:
        try:
            self._group.mkdir()
        except OSError as error:
            raise NoLimit(f"no control group can be made: {error}") from None
        self._write("memory.limit_in_bytes", self._limit)
        with contextlib.suppress(OSError):
            # The file is missing if the kernel does not count swapped memory.
            self._write("memory.memsw.limit_in_bytes", self._limit)
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the group. Its processes must have ended."""
        deadline = time.monotonic() + _LEAVE_SECONDS
        while True:
            try:
                return self._group.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def take(self, pids: list[int]) -> None:
        """Move the processes into the group."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                self._write("cgroup.procs", pid)

    def killed(self) -> int:
        """Return how many processes the kernel has killed for lack of memory."""
        return self._counters("memory.oom_control")["oom_kill"]

    def unreclaimable(self) -> int:
        """Return the bytes of the processes' own pages and of shared memory, without the page cache of files."""
        counted = self._counters("memory.stat")
        return counted["total_rss"] + counted["total_shmem"] if "total_shmem" in counted else counted["total_rss"]

    def _counters(self, name: str) -> dict[str, int]:
        return {key: int(value) for key, value in map(str.split, (self._group / name).read_text().splitlines())}

    def _write(self, name: str, value: int) -> None:
        (self._group / name).write_text(str(value))


def _own() -> Path:
    if not (_ROOT / "memory.limit_in_bytes").exists():
        raise NoLimit(f"there are no control groups of version 1 in {_ROOT}")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _ROOT / path.lstrip("/")
    raise NoLimit("this process is in no control group for memory")
