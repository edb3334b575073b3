"""The backlog rows: how fast a restarted job reads changes that were written while it was stopped.

All sides read the same backlog, one after the other. In its first run each job only finds its position in the binlog.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.arrivals import Arrivals
from benchmarks.benchmark_database import BenchmarkDatabase, topics
from benchmarks.changes import Write, deletes_and_inserts, mix, mix_changes, mix_records, updates
from benchmarks.measured_jobs import Job
from benchmarks.notes import Notes, failing
from benchmarks.processes import MemoryPeak
from benchmarks.processor import Processor
from benchmarks.rows import BACKLOGS, Figures, Scale
from benchmarks.tables import ORDERS
from benchmarks.update_latency import NumberedUpdates
from benchmarks.warm_job import START_SECONDS

_MIX_TABLES = 20


@dataclass(frozen=True, slots=True)
class _Backlog:
    """Changes to write while no job runs."""

    tables: Sequence[str]  #: names with the database
    write: Write  #: writes the changes
    changes: int  #: changes of rows
    records: int  #: records that these changes become


class Backlogs:
    """The backlogs among `rows`, with their tables. The tables are created at once."""

    def __init__(self, bench: BenchmarkDatabase, scale: Scale, rows: Collection[str]) -> None:
        self._bench = bench
        self._live = bench.create(ORDERS, "live", 100)
        self._backlogs: dict[str, _Backlog] = {}
        orders = bench.create(ORDERS, "orders", scale.rows) if set(rows) - {"mix"} else ""
        for name in BACKLOGS:
            if name in rows:
                self._backlogs[name] = self._mix(scale) if name == "mix" else _of_orders(name, orders, scale)

    @property
    def tables(self) -> list[str]:
        """Return the names of all tables, with the database."""
        return list(dict.fromkeys([self._live, *(table for each in self._backlogs.values() for table in each.tables)]))

    def measure(self, new_jobs: Mapping[str, Callable[[], Job]], notes: Mapping[str, Notes]) -> None:
        """Write each backlog and let each side read it.

        `new_jobs` and `notes` are by side, in the order of their turns. A side that fails continues with the next
        backlog and a new job, because its old job has not read the earlier changes.
        """
        with ExitStack() as stack:
            jobs: dict[str, tuple[Job, dict[str, str]]] = {}
            for name, backlog in self._backlogs.items():
                for side in [side for side in new_jobs if side not in jobs]:
                    with failing(name, notes[side]):
                        jobs[side] = self._begun(stack, new_jobs[side]())
                # A job is reused only if it has read everything.
                ready, jobs = jobs, {}
                with failing(name, *(notes[side] for side in ready)):
                    backlog.write(self._bench.connection)
                    for side in [side for side in new_jobs if side in ready]:
                        with failing(name, notes[side]):
                            notes[side].measured(name, self._catch_up(ready[side][0], name, backlog, ready[side][1]))
                            jobs[side] = ready[side]

    def _begun(self, stack: ExitStack, job: Job) -> tuple[Job, dict[str, str]]:
        """Run the job until it has found its position in the binlog, and stop it.

        Return the job, and the topic of each table.
        """
        kafka = self._bench.servers.kafka
        names = stack.enter_context(topics(kafka, job.prefix, dict.fromkeys(self.tables, 1)))
        with NumberedUpdates(self._bench.connect, self._live, kafka, names[self._live]) as updates, job.life() as life:
            updates.wait_for_first(life.check, START_SECONDS)
            updates.quiet()
            life.stop()
        return job, names

    def _catch_up(self, job: Job, name: str, backlog: _Backlog, names: Mapping[str, str]) -> Figures:
        processor = Processor(job.bench.servers)
        into = [names[table] for table in backlog.tables]
        with (
            Arrivals(job.bench.servers.kafka, into) as arrivals,
            job.life() as life,
            MemoryPeak(life.pid) as memory,
        ):
            arrivals.wait_for(backlog.records, life.check)
            used = processor.used(life.pid)
            arrival = arrivals.arrival(backlog.records, life.check)
            life.stop()
        changes_of_a_record = backlog.changes / backlog.records
        return {
            name: arrival.rate * changes_of_a_record,
            f"{name}.start": arrival.rate_since(life.began) * changes_of_a_record,
            f"memory.{name}": memory.bytes / 1e6,
            **{f"processor.{name}.{kind}": seconds * 1e6 / backlog.changes for kind, seconds in used.items()},
        }

    def _mix(self, scale: Scale) -> _Backlog:
        rows, transactions = scale.part(0.02), scale.part(0.012)
        tables = [self._bench.create(ORDERS, f"mix{number:02}", rows) for number in range(_MIX_TABLES)]
        return _Backlog(tables, mix(tables, rows, transactions), mix_changes(transactions), mix_records(transactions))


def _of_orders(name: str, orders: str, scale: Scale) -> _Backlog:
    if name == "backlog":
        return _Backlog([orders], updates(orders, scale.rows, 1_000), scale.rows, scale.rows)
    if name == "single":
        rows = scale.part(0.15)
        return _Backlog([orders], updates(orders, rows, 1), rows, rows)
    rows = scale.part(0.15)
    return _Backlog([orders], deletes_and_inserts(orders, rows), 2 * rows, 3 * rows)
