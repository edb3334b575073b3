"""Snapshots of other tables, one after the other by one warm job."""

from __future__ import annotations

import time
from collections.abc import Collection

from benchmarks.arrivals import Arrivals
from benchmarks.beat import Beat
from benchmarks.place import Place, topics
from benchmarks.rows import SHAPES, Scale
from benchmarks.sides import Job
from benchmarks.tables import COMPOSITE, NARROW, ORDERS, WIDE, Design
from benchmarks.warm import START_SECONDS, Note, warm_up

#: The design, how many tables of it at once, the part of the rows that all of them have, the partitions.
_SHAPES: dict[str, tuple[Design, int, float, int]] = {
    "columns3": (NARROW, 1, 0.3, 1),
    "columns60": (WIDE, 1, 0.1, 1),
    "composite": (COMPOSITE, 1, 0.3, 1),
    "partitions8": (ORDERS, 1, 0.3, 8),
    "tables4": (ORDERS, 4, 0.4, 1),
}
_SETTLE_SECONDS = 2.0


class Shapes:
    """Makes the tables of those that are wanted."""

    def __init__(self, place: Place, scale: Scale, wanted: Collection[str]) -> None:
        self._place, self._scale = place, scale
        self._live = place.create(ORDERS, "live", scale.part(0.1))
        self._partitions = {self._live: 1}
        self._tables: dict[str, list[str]] = {}
        for name in SHAPES:
            if name in wanted:
                design, count, share, partitions = _SHAPES[name]
                rows = scale.part(share / count)
                tables = [place.create(design, f"{name}_{number}", rows) for number in range(count)]
                self._tables[name] = tables
                self._partitions |= dict.fromkeys(tables, partitions)

    @property
    def tables(self) -> list[str]:
        return list(self._partitions)

    def measure(self, job: Job, note: Note) -> None:
        """One life of the job, new; ``note`` is given the figures as they come."""
        place, kafka = self._place, self._place.servers.kafka
        with (
            topics(kafka, job.prefix, self._partitions) as names,
            Beat(place.connect, self._live, kafka, names[self._live]) as beat,
            job.life() as life,
        ):
            beat.wait_for_first(life.check, START_SECONDS)
            warm_up(place, life, self._live, names[self._live], self._scale, beat)
            for name, tables in self._tables.items():
                _, count, share, _ = _SHAPES[name]
                rows = self._scale.part(share / count) * count
                time.sleep(_SETTLE_SECONDS)
                with Arrivals(kafka, [names[table] for table in tables]) as arrivals:
                    place.execute_snapshot(tables)
                    signalled = time.monotonic()
                    note({name: arrivals.arrival(rows, life.check).rate_since(signalled)})
            life.stop()
