"""The memory of the job under a hard limit of the operating system for all its processes together.

    python -m benchmarks.memory                                     all loads, 2,000 and 1,600 MB: an hour
    python -m benchmarks.memory --only blobs --limits 1600 --size 0.1
    python -m benchmarks.memory --limits 0                          without a limit

The job must deliver each load completely, which a consumer counts, and the kernel must not kill any process. MySQL and
Kafka are outside the limit. They are started, or named as for the tests. A named MySQL needs max_allowed_packet=1G for
rows of 16 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.arrivals import Arrivals, NotArrived
from benchmarks.benchmark_database import BenchmarkDatabase, benchmark_database, topics
from benchmarks.measured_jobs import INCSNAP, Job, JobRun
from benchmarks.memory_limit import MemoryLimit
from benchmarks.memory_loads import LOADS, MemoryLoad
from benchmarks.processes import memory_by_kind
from incsnap.errors import IncsnapError
from lab.run_folder import run_folder
from lab.running_job import session_pids
from lab.servers import servers

_LOOK_SECONDS = 0.25
_START_SECONDS = 400.0
#: Options of a MySQL server that is started here: they make gigabytes quick to write.
_MYSQL = (
    "--max-allowed-packet=1G",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=OFF",
    "--innodb-buffer-pool-size=1G",
    "--innodb-redo-log-capacity=4G",
    "--innodb-file-per-table=OFF",
)
#: Kafka must accept records of rows of 16 MB.
_TOPIC = {"max.message.bytes": "100000000"}
_SETTINGS = {"producer.max.request.size": "100000000"}


@dataclass
class Peak:
    """The highest memory that was seen, in bytes."""

    together: int = 0  #: of all processes
    unreclaimable: int = 0  #: of the control group, without pages that the kernel can reclaim
    kinds: dict[str, int] = field(default_factory=dict)  #: by kind of process

    def see(self, kinds: dict[str, int], unreclaimable: int) -> None:
        """Take one look's figures into account."""
        self.together = max(self.together, sum(kinds.values()))
        self.unreclaimable = max(self.unreclaimable, unreclaimable)
        for kind, size in kinds.items():
            self.kinds[kind] = max(self.kinds.get(kind, 0), size)

    def __str__(self) -> str:
        each = ", ".join(f"{kind} {size / 1e6:,.0f}" for kind, size in sorted(self.kinds.items()))
        return f"{self.together / 1e6:,.0f} MB together ({each}); not reclaimable {self.unreclaimable / 1e6:,.0f}"


@contextlib.contextmanager
def watched(leader: int, group: MemoryLimit | None) -> Iterator[Peak]:
    """Look at the memory of the session of `leader` every 0.25 s until the block ends."""
    peak, end = Peak(), threading.Event()

    def look() -> None:
        while not end.wait(_LOOK_SECONDS):
            peak.see(memory_by_kind(session_pids(leader)), group.unreclaimable() if group else 0)

    thread = threading.Thread(target=look, name="memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        end.set()
        thread.join()


@contextlib.contextmanager
def limited(job: Job, limit: int) -> Iterator[tuple[JobRun, MemoryLimit | None]]:
    """Run the job in its own control group of `limit` bytes, or without a group if `limit` is 0."""
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(MemoryLimit(limit)) if limit else None
        life = stack.enter_context(job.life())
        if group is not None:
            # The job is moved within milliseconds, before it starts a process. It is moved again in case that it has.
            for _ in range(3):
                group.take(session_pids(life.pid))
        yield life, group


def measure(bench: BenchmarkDatabase, load: MemoryLoad, limits: list[int], more: dict[str, str]) -> None:
    """Write the load once and let one job for each limit deliver it. Print the results."""
    jobs = {limit: _job(bench, load, limit, more) for limit in limits}
    with contextlib.ExitStack() as stack:
        for job in jobs.values():
            stack.enter_context(topics(bench.servers.kafka, job.prefix, dict.fromkeys(load.topics, 1), _TOPIC))
        if not load.by_signal:
            for job in jobs.values():
                _find_place(job)
        began = time.monotonic()
        load.write()
        _say(f"{load.name}: {load.records:,} records to come, written in {time.monotonic() - began:.0f} s")
        for limit, job in jobs.items():
            _one(bench, load, limit, job)


def _one(bench: BenchmarkDatabase, load: MemoryLoad, limit: int, job: Job) -> None:
    names = [f"{job.prefix}.{table}" for table in load.topics]
    outcome, seconds, killed = "delivered", float("nan"), 0
    with limited(job, limit) as (life, group), watched(life.pid, group) as peak:
        try:
            with Arrivals(bench.servers.kafka, names, load.kafka) as arrivals:
                if load.by_signal:
                    _wait_for_offset(job, life)
                    load.signal()
                began = time.monotonic()
                arrivals.wait_for(load.records, life.check, load.seconds)
                arrivals.arrival(load.records, life.check, load.seconds)
                seconds = time.monotonic() - began
            life.stop()
        except (IncsnapError, NotArrived) as error:
            outcome = f"FAILED: {error}"
        killed = group.killed() if group else 0
        lines = (job.folder / "job.log").read_text(errors="replace").splitlines()
    odd = [line for line in lines if any(word in line for word in ("WARN", "ERROR", "OutOfMemory", "MemoryError"))]
    _say(
        f"{load.name}, limit {limit / 1e6:,.0f} MB: {outcome} in {seconds:.0f} s, {killed} killed; peak {peak};"
        f" {len(odd)} warnings\n" + "\n".join(line[:300] for line in odd[:8])
    )


_numbers = itertools.count()


def _job(bench: BenchmarkDatabase, load: MemoryLoad, limit: int, more: dict[str, str]) -> Job:
    number = next(_numbers)
    prefix = f"memory-{os.getpid()}-{load.name}-{number}"
    return Job(INCSNAP, bench, prefix, load.tables, 200_000 + os.getpid() % 50_000 * 100 + number, _SETTINGS | more)


def _find_place(job: Job) -> None:
    """Run the job until it has found its position in the binlog."""
    with job.life() as life:
        _wait_for_offset(job, life)
        life.stop()


def _wait_for_offset(job: Job, life: JobRun) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not (job.folder / "checkpoint" / "spark" / "offsets" / "0").exists():
        life.check()
        if time.monotonic() > deadline:
            raise NotArrived(f"the job did not start in {_START_SECONDS:.0f} s")
        time.sleep(0.1)


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%X')} {text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(LOADS), metavar="LOAD,LOAD", help=f"of {', '.join(LOADS)}")
    parser.add_argument("--limits", default="2000,1600", metavar="MB,MB", help="0: none")
    parser.add_argument("--size", type=float, default=1.0, help="a part of each load")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the job")
    asked = parser.parse_args()
    more = dict(each.split("=", 1) for each in asked.set)
    limits = [int(float(limit) * 1e6) for limit in asked.limits.split(",")]
    given = "INCSNAP_MYSQL" in os.environ
    with servers(lasting=True, mysql_options=() if given else _MYSQL) as started, run_folder() as folder:
        for name in asked.only.split(","):
            with benchmark_database(started, Path(folder)) as bench:
                measure(bench, LOADS[name](bench, asked.size), limits, more)


if __name__ == "__main__":
    main()
