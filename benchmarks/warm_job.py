"""The rows of one job that keeps running: its start, and then latency, snapshots, and both at once while it is warm."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from benchmarks.arrivals import Arrivals
from benchmarks.benchmark_database import BenchmarkDatabase, topics
from benchmarks.chosen_rows import ChosenRows
from benchmarks.load import SourceLoad
from benchmarks.measured_jobs import Job, JobRun
from benchmarks.notes import Notes
from benchmarks.processes import MemoryPeak
from benchmarks.processor import Processor
from benchmarks.rows import Figures, Scale
from benchmarks.shapes import Shapes
from benchmarks.tables import ORDERS
from benchmarks.update_latency import NumberedUpdates, percentiles
from benchmarks.verification import verify_run

START_SECONDS = 180.0
_SETTLE_SECONDS = 2.0
_LOAD_SECONDS = 8.0


class WarmJob:
    """The tables and measurements of these rows.

    The tables are `orders`, the smaller `part`, `live`, which is updated, and those of `Shapes`. Tables that no
    measurement reads stay empty.
    """

    def __init__(self, bench: BenchmarkDatabase, scale: Scale, rows: Collection[str]) -> None:
        self._bench, self._scale, self._rows = bench, scale, set(rows)
        orders = scale.rows if self._rows & {"snapshot", "during", "verify"} else 0
        self.orders = bench.create(ORDERS, "orders", orders)
        self.part = bench.create(ORDERS, "part", scale.part(0.3) if "source" in self._rows else 0)
        self.live = bench.create(ORDERS, "live", scale.part(0.1))
        self._empty = bench.create(ORDERS, "empty", 0)
        self._shapes = Shapes(bench, scale, rows)
        steps = {
            "latency": self._latency,
            "snapshot": self._snapshot,
            "during": self._during,
            "source": self._source,
            "verify": self._verify,
        }
        self._steps = {name: step for name, step in steps.items() if name in rows} | self._shapes.steps()
        self._chosen = ChosenRows(bench, scale, rows, self.live)
        self._steps |= self._chosen.steps()

    @property
    def tables(self) -> list[str]:
        """Return the names of all tables, with the database."""
        return [self.orders, self.part, self.live, self._empty, *self._shapes.partitions, *self._chosen.partitions]

    def measure(self, new_job: Callable[[], Job], notes: Notes, left_out: Collection[str] = ()) -> None:
        """Take all measurements but `left_out` in one run of one job. After a failure a new job takes the remaining
        ones.
        """
        start = ["start"] if "start" in self._rows else []
        left = {name: step for name, step in self._steps.items() if name not in left_out}
        while start or left:
            risked = [*start, *left]
            try:
                with self._life(new_job()) as (life, names, updates):
                    began = updates.wait_for_first(life.check, START_SECONDS)
                    if start:
                        notes.measured(start.pop(), {"start": began - life.began})
                    if left:
                        risked = list(left)
                        warm_up(self._bench, life, self.live, names[self.live], self._scale, updates)
                    while left:
                        risked = [next(iter(left))]
                        step = left.pop(risked[0])
                        notes.measured(risked[0], step(life, names))
                    # The job is killed here: its state is of no further use.
            except Exception as error:  # noqa: BLE001 - whatever one row dies of, the others are measured
                notes.failed(risked, error)
                if len(risked) > 1:
                    # The job did not start or warm up. A new one would fail too.
                    return

    @contextlib.contextmanager
    def _life(self, job: Job) -> Iterator[tuple[JobRun, dict[str, str], NumberedUpdates]]:
        """Start the job, its topics, and updates that wait for it.

        Yield the run, the topics by table, and the updates.
        """
        bench, kafka = self._bench, self._bench.servers.kafka
        partitions = dict.fromkeys(self.tables, 1) | self._shapes.partitions
        with (
            topics(kafka, job.prefix, partitions) as names,
            NumberedUpdates(bench.connect, self.live, kafka, names[self.live]) as updates,
            job.life() as life,
        ):
            yield life, names, updates

    def _latency(self, life: JobRun, names: Mapping[str, str]) -> Figures:
        with self._numbered_updates(names) as updates:
            time.sleep(_SETTLE_SECONDS)
            since = time.monotonic()
            time.sleep(self._scale.latency_seconds)
            until = time.monotonic()
            updates.stop(life.check)
            return percentiles("latency", updates.lags(since, until))

    def _snapshot(self, life: JobRun, names: Mapping[str, str]) -> Figures:
        rows = self._scale.rows
        time.sleep(_SETTLE_SECONDS)
        with Arrivals(self._bench.servers.kafka, [names[self.orders]]) as arrivals, MemoryPeak(life.pid) as memory:
            processor = Processor(self._bench.servers, life.pid)
            self._bench.execute_snapshot([self.orders])
            signalled = time.monotonic()
            arrivals.wait_for(rows, life.check)
            used = processor.used(life.pid)
            arrival = arrivals.arrival(rows, life.check)
        return {
            "snapshot": arrival.rate_since(signalled),
            "snapshot.inside": arrival.rate,
            "signal": arrival.first - signalled,
            "memory.snapshot": memory.bytes / 1e6,
            **{f"processor.snapshot.{name}": seconds * 1e6 / rows for name, seconds in used.items()},
        }

    def _during(self, life: JobRun, names: Mapping[str, str]) -> Figures:
        rows = self._scale.rows
        with (
            self._numbered_updates(names) as updates,
            Arrivals(self._bench.servers.kafka, [names[self.orders]]) as arrivals,
        ):
            time.sleep(_SETTLE_SECONDS)
            self._bench.execute_snapshot([self.orders])
            signalled = time.monotonic()
            arrivals.wait_for(rows, life.check)
            updates.stop(life.check)
            arrival = arrivals.arrival(rows, life.check)
            lags = updates.lags(signalled, arrival.last)
            return percentiles("during", lags) | {"during": arrival.rate_since(signalled)}

    def _source(self, life: JobRun, names: Mapping[str, str]) -> Figures:
        rows = self._scale.part(0.3)
        with Arrivals(self._bench.servers.kafka, [names[self.part]]) as arrivals:
            with SourceLoad(self._bench.connect, self.live) as load:
                time.sleep(_SETTLE_SECONDS)
                began = time.monotonic()
                time.sleep(_LOAD_SECONDS)
                self._bench.execute_snapshot([self.part])
                signalled = time.monotonic()
                arrivals.wait_for(rows, life.check)
            arrival = arrivals.arrival(rows, life.check)
        before, during = load.rate(began, signalled), load.rate(signalled, arrival.last)
        return {
            "source.before": before,
            "source.during": during,
            "source.kept": 100 * during / before,
            "source": arrival.rate_since(signalled),
        }

    def _verify(self, life: JobRun, names: Mapping[str, str]) -> Figures:
        """Compare `orders` with its topic, behind a snapshot of its own. Only incsnap's file can be read."""
        if life.properties is None:
            return {}
        rows = self._scale.rows
        with Arrivals(self._bench.servers.kafka, [names[self.orders]]) as arrivals:
            processor = Processor(self._bench.servers, life.pid)
            self._bench.execute_snapshot([self.orders])
            arrivals.wait_for(rows, life.check)
            used = processor.used(life.pid)["job"]
        time.sleep(_SETTLE_SECONDS)
        figures = verify_run(life.properties, self.orders, names[self.orders], rows, self._empty)
        return {**figures, "verify.snapshot": used * 1e6 / rows}

    def _numbered_updates(self, names: Mapping[str, str]) -> NumberedUpdates:
        return NumberedUpdates(self._bench.connect, self.live, self._bench.servers.kafka, names[self.live])


def warm_up(
    bench: BenchmarkDatabase, life: JobRun, table: str, topic: str, scale: Scale, updates: NumberedUpdates
) -> None:
    """Make single changes for some seconds, then take a snapshot of a small table, so that all code is compiled."""
    time.sleep(scale.warm_up_seconds)
    # The consumer would read all later records of the table, beside the measurements.
    updates.end()
    with Arrivals(bench.servers.kafka, [topic]) as arrivals:
        bench.execute_snapshot([table])
        arrivals.arrival(scale.part(0.1), life.check)
