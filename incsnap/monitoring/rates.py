"""Rates: how fast sums grew over the last seconds. Pure; the caller passes the time."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from incsnap.monitoring.status import Rates, SnapshotStatus, Sums, TableStatus

#: Seconds over which a rate is taken. They cover several batches, and a change shows soon enough for a person.
_SECONDS = 10.0
#: Seconds for a table's rows, which come in windows of up to 50,000.
_TABLE_SECONDS = 30.0
#: Seconds that a rate needs at least; over less time it would be noise.
_LEAST_SECONDS = 2.0


class Meter:
    """A meter of one growing number. Its rate covers the last `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._samples: deque[tuple[float, int]] = deque()

    def see(self, now: float, value: int) -> float | None:
        """Add a sample and return the rate a second, or None if the samples cover less than `_LEAST_SECONDS`.

        `now` is in seconds of a monotonic clock. A smaller `value` than before starts the meter anew; a table's rows
        fall when the table is begun again.
        """
        if self._samples and value < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((now, value))
        while len(self._samples) > 2 and self._samples[1][0] <= now - self._seconds:
            self._samples.popleft()
        since, before = self._samples[0]
        return (value - before) / (now - since) if now - since >= _LEAST_SECONDS else None


class JobRates:
    """The rates of one job. They continue when its query is restarted."""

    def __init__(self) -> None:
        self._events, self._rows, self._bytes = Meter(_SECONDS), Meter(_SECONDS), Meter(_SECONDS)
        self._tables: dict[int, Meter] = {}

    def of_job(self, now: float, sums: Sums) -> Rates:
        """Return the job's rates after a sample of its counters. A rate that is not known yet is 0."""
        return Rates(
            events=self._events.see(now, sums.events) or 0.0,
            rows=self._rows.see(now, sums.reads + sums.discarded) or 0.0,
            bytes=self._bytes.see(now, sums.bytes) or 0.0,
        )

    def of_tables(self, now: float, snapshot: SnapshotStatus) -> SnapshotStatus:
        """Return `snapshot` with rows a second for each table, and the remaining time if it can be estimated."""
        tables = snapshot.tables
        self._tables = {each.number: self._tables.get(each.number) or Meter(_TABLE_SECONDS) for each in tables}
        timed = (
            _timed(each, self._tables[each.number].see(now, each.rows_done), paused=snapshot.paused) for each in tables
        )
        return replace(snapshot, tables=tuple(timed))


def _timed(table: TableStatus, rate: float | None, *, paused: bool) -> TableStatus:
    table = replace(table, rows_per_second=rate)
    if not rate or paused or table.rows_expected is None or table.rows_low is None or table.rows_high is None:
        return table
    return replace(
        table,
        seconds_left=(table.rows_expected - table.rows_done) / rate,
        seconds_low=(table.rows_low - table.rows_done) / rate,
        seconds_high=(table.rows_high - table.rows_done) / rate,
    )
