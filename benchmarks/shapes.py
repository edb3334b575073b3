"""The rows for snapshots of other tables, which the warm job takes one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from benchmarks.arrivals import Arrivals
from benchmarks.benchmark_database import BenchmarkDatabase
from benchmarks.measured_jobs import JobRun
from benchmarks.rows import SHAPES, Figures, Scale
from benchmarks.tables import COMPOSITE, NARROW, ORDERS, WIDE, Design

#: By row: design of the tables, number of tables, share of the rows that all tables have together, partitions of a
#: topic.
_SHAPES: dict[str, tuple[Design, int, float, int]] = {
    "columns3": (NARROW, 1, 0.3, 1),
    "columns60": (WIDE, 1, 0.1, 1),
    "composite": (COMPOSITE, 1, 0.3, 1),
    "partitions8": (ORDERS, 1, 0.3, 8),
    "tables4": (ORDERS, 4, 0.4, 1),
    "tables400": (ORDERS, 400, 0.04, 1),
}
_SETTLE_SECONDS = 2.0


class Shapes:
    """The tables of the rows in `shapes`, which are created at once.

    `partitions` maps each table to the number of partitions of its topic.
    """

    def __init__(self, bench: BenchmarkDatabase, scale: Scale, shapes: Collection[str]) -> None:
        self._bench, self._scale = bench, scale
        self.partitions: dict[str, int] = {}
        self._tables: dict[str, list[str]] = {}
        for name in SHAPES:
            if name in shapes:
                design, count, share, partitions = _SHAPES[name]
                rows = scale.part(share / count)
                tables = [bench.create(design, f"{name}_{number}", rows) for number in range(count)]
                self._tables[name] = tables
                self.partitions |= dict.fromkeys(tables, partitions)

    def steps(self) -> dict[str, Callable[[JobRun, Mapping[str, str]], Figures]]:
        """Return the measurement of each row, a function of the job's run and the topics by table."""
        return {name: self._step(name, tables) for name, tables in self._tables.items()}

    def _step(self, name: str, tables: list[str]) -> Callable[[JobRun, Mapping[str, str]], Figures]:
        _, count, share, _ = _SHAPES[name]
        rows = self._scale.part(share / count) * count

        def measure(life: JobRun, names: Mapping[str, str]) -> Figures:
            time.sleep(_SETTLE_SECONDS)
            with Arrivals(self._bench.servers.kafka, [names[table] for table in tables]) as arrivals:
                self._bench.execute_snapshot(tables)
                signalled = time.monotonic()
                return {name: arrivals.arrival(rows, life.check).rate_since(signalled)}

        return measure
