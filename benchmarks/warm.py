"""Measurements of one job that goes on: its start, then, warm, latency, snapshots, and both at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from benchmarks.arrivals import Arrivals
from benchmarks.beat import Beat, percentile
from benchmarks.load import Load
from benchmarks.place import Place, topics
from benchmarks.processes import MemoryPeak
from benchmarks.processor import Processor
from benchmarks.rows import Figures, Scale
from benchmarks.sides import Job, Life
from benchmarks.tables import ORDERS

START_SECONDS = 180.0
_SETTLE_SECONDS = 2.0
_LOAD_SECONDS = 8.0
Note = Callable[[Figures], None]


class WarmJob:
    """The tables: ``orders``, a smaller one (``part``), and ``live``, which is updated. Rows that nobody reads are
    not made.
    """

    def __init__(self, place: Place, scale: Scale, wanted: Collection[str]) -> None:
        self._place, self._scale, self._wanted = place, scale, set(wanted)
        self.orders = place.create(
            ORDERS, "orders", scale.rows if self._wanted & {"snapshot", "signal", "during"} else 0
        )
        self.part = place.create(ORDERS, "part", scale.part(0.3) if "source" in self._wanted else 0)
        self.live = place.create(ORDERS, "live", scale.part(0.1))

    @property
    def tables(self) -> list[str]:
        return [self.orders, self.part, self.live]

    def measure(self, job: Job, note: Note) -> None:
        """One life of the job, new; ``note`` is given the figures as they come."""
        place, kafka = self._place, self._place.servers.kafka
        with (
            topics(kafka, job.prefix, dict.fromkeys(self.tables, 1)) as names,
            Beat(place.connect, self.live, kafka, names[self.live]) as beat,
            job.life() as life,
        ):
            note({"start": beat.wait_for_first(life.check, START_SECONDS) - life.began})
            self._rest(life, beat, names, note)
            life.stop()

    def _rest(self, life: Life, beat: Beat, names: dict[str, str], note: Note) -> None:
        wanted = self._wanted
        if wanted == {"start"}:
            return
        warm_up(self._place, life, self.live, names[self.live], self._scale, beat)
        if "latency" in wanted:
            note(self._latency(life, names))
        if wanted & {"snapshot", "signal"}:
            note(self._snapshot(life, names))
        if "during" in wanted:
            note(self._during(life, names))
        if "source" in wanted:
            note(self._source(life, names))

    def _latency(self, life: Life, names: dict[str, str]) -> Figures:
        with self._beat(names) as beat:
            time.sleep(_SETTLE_SECONDS)
            since = time.monotonic()
            time.sleep(self._scale.latency_seconds)
            until = time.monotonic()
            beat.stop(life.check)
            return _percentiles("latency", beat.lags(since, until))

    def _snapshot(self, life: Life, names: dict[str, str]) -> Figures:
        rows = self._scale.rows
        time.sleep(_SETTLE_SECONDS)
        with Arrivals(self._place.servers.kafka, [names[self.orders]]) as arrivals, MemoryPeak(life.pid) as memory:
            processor = Processor(self._place.servers, life.pid)
            self._place.execute_snapshot([self.orders])
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

    def _during(self, life: Life, names: dict[str, str]) -> Figures:
        rows = self._scale.rows
        with self._beat(names) as beat, Arrivals(self._place.servers.kafka, [names[self.orders]]) as arrivals:
            time.sleep(_SETTLE_SECONDS)
            self._place.execute_snapshot([self.orders])
            signalled = time.monotonic()
            arrivals.wait_for(rows, life.check)
            beat.stop(life.check)
            arrival = arrivals.arrival(rows, life.check)
            lags = beat.lags(signalled, arrival.last)
            return _percentiles("during", lags) | {"during": arrival.rate_since(signalled)}

    def _source(self, life: Life, names: dict[str, str]) -> Figures:
        rows = self._scale.part(0.3)
        with Arrivals(self._place.servers.kafka, [names[self.part]]) as arrivals:
            with Load(self._place.connect, self.live) as load:
                time.sleep(_SETTLE_SECONDS)
                began = time.monotonic()
                time.sleep(_LOAD_SECONDS)
                self._place.execute_snapshot([self.part])
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

    def _beat(self, names: dict[str, str]) -> Beat:
        return Beat(self._place.connect, self.live, self._place.servers.kafka, names[self.live])


def warm_up(place: Place, life: Life, table: str, topic: str, scale: Scale, beat: Beat) -> None:
    """Single changes for some seconds, then a snapshot of a small table: what compilers of all kinds have to see."""
    time.sleep(scale.warm_up_seconds)
    beat.quiet()
    with Arrivals(place.servers.kafka, [topic]) as arrivals:
        place.execute_snapshot([table])
        arrivals.arrival(scale.part(0.1), life.check)


def _percentiles(name: str, lags: list[float]) -> Figures:
    return {f"{name}.p{share}": percentile(lags, share) * 1000 for share in (50, 95, 99)}
