"""The rows for chosen rows of a table: random keys from a file, and a slice by an indexed column. Debezium has neither:
it ignores the choice and reads the whole table."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from random import Random

from benchmarks.arrivals import Arrivals
from benchmarks.benchmark_database import BenchmarkDatabase
from benchmarks.measured_jobs import JobRun
from benchmarks.rows import CHOSEN, Figures, Scale
from benchmarks.tables import ORDERS
from benchmarks.update_latency import NumberedUpdates, percentiles

#: Shares of the rows: keys in the list, and rows of the slice.
_KEYS, _SLICE = 0.1, 0.001
#: Most keys in the list. Of ten million rows they are one in a hundred.
_MOST_KEYS = 100_000
_SETTLE_SECONDS = 2.0

Step = Callable[[JobRun, Mapping[str, str]], Figures]


class ChosenRows:
    """The table of these rows, with an index on `created_at`. `partitions`: its topic's.

    `live` is the table that single updates change meanwhile.
    """

    def __init__(self, bench: BenchmarkDatabase, scale: Scale, rows: Collection[str], live: str) -> None:
        self._bench, self._scale, self._live = bench, scale, live
        self._rows = [row for row in CHOSEN if row in rows]
        self.partitions: dict[str, int] = {}
        if not self._rows:
            return
        self._table = bench.create(ORDERS, "chosen", scale.rows)
        self.partitions[self._table] = 1
        with bench.connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {self._table} ADD INDEX by_time (created_at)")

    def steps(self) -> dict[str, Step]:
        """Return the measurement of each row, a function of the job's run and the topics by table."""
        steps: dict[str, Step] = {"keys": self._keys, "slice": self._slice}
        return {name: steps[name] for name in self._rows}

    def _keys(self, life: JobRun, names: Mapping[str, str]) -> Figures:
        count = min(self._scale.part(_KEYS), _MOST_KEYS)
        drawn = Random(7).sample(range(1, self._scale.rows + 1), count)
        file = Path(self._bench.folder, "keys.jsonl").resolve()
        file.write_text("".join(f'{{"id":{number}}}\n' for number in drawn))
        with self._arrivals(names) as arrivals, self._updates(names) as updates:
            time.sleep(_SETTLE_SECONDS)
            signalled = time.monotonic()
            self._bench.execute_snapshot([self._table], {"incsnap-keys-file": str(file)})
            arrivals.wait_for(count, life.check)
            updates.stop(life.check)
            arrival = arrivals.arrival(count, life.check)
            lags = updates.lags(signalled, arrival.last)
            return {"keys": arrival.rate_since(signalled), "keys.seconds": arrival.last - signalled} | percentiles(
                "keys", lags
            )

    def _slice(self, life: JobRun, names: Mapping[str, str]) -> Figures:
        count = self._scale.part(_SLICE)
        with self._bench.connection.cursor() as cursor:
            first = f"SELECT MIN(t) FROM (SELECT created_at t FROM {self._table} ORDER BY 1 DESC LIMIT {count}) newest"
            cursor.execute(first)
            ((since,),) = cursor.fetchall()
        some = self._read(life, names, count, {"incsnap-from": {"created_at": f"{since:%Y-%m-%d %H:%M:%S}"}})
        everything = self._read(life, names, self._scale.rows, None)
        return {"slice": some, "slice.whole": everything, "slice.share": 100 * some / everything}

    def _read(self, life: JobRun, names: Mapping[str, str], rows: int, chosen: Mapping[str, object] | None) -> float:
        """Return the seconds from the signal to the last of `rows` rows."""
        with self._arrivals(names) as arrivals:
            time.sleep(_SETTLE_SECONDS)
            signalled = time.monotonic()
            self._bench.execute_snapshot([self._table], chosen)
            return arrivals.arrival(rows, life.check).last - signalled

    def _arrivals(self, names: Mapping[str, str]) -> Arrivals:
        return Arrivals(self._bench.servers.kafka, [names[self._table]])

    def _updates(self, names: Mapping[str, str]) -> NumberedUpdates:
        return NumberedUpdates(self._bench.connect, self._live, self._bench.servers.kafka, names[self._live])
