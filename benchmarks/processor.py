"""The processor seconds that a job and both servers take for some work."""

from __future__ import annotations

import contextlib

from benchmarks.processes import job_seconds, listener, process_seconds
from lab.servers import Servers


class Processor:
    """A measurement of processor seconds, which begins when the object is created.

    Servers whose process is invisible from here are left out. `leader` is the job's process if it already runs. Without
    `leader` the job starts later, and `used` counts all its processor time.
    """

    def __init__(self, servers: Servers, leader: int | None = None) -> None:
        self._servers = {
            name: pid
            for name, port in (("MySQL", servers.mysql.port), ("Kafka", int(servers.kafka.rpartition(":")[2])))
            if (pid := listener(port)) is not None
        }
        self._before = self._all(leader)

    def used(self, leader: int) -> dict[str, float]:
        """Return processor seconds by name: `job`, its kinds of processes as `job: JVM` and so on, `MySQL`, `Kafka`."""
        return {name: seconds - self._before.get(name, 0.0) for name, seconds in self._all(leader).items()}

    def _all(self, leader: int | None) -> dict[str, float]:
        kinds = job_seconds(leader) if leader is not None else {}
        seconds_by_name = {f"job: {kind}": seconds for kind, seconds in kinds.items()} | {"job": sum(kinds.values())}
        for name, pid in self._servers.items():
            with contextlib.suppress(OSError):
                seconds_by_name[name] = process_seconds(pid)
        return seconds_by_name
