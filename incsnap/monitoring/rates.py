"""How fast it goes: differences of sums over the last seconds. Pure; the caller brings the clock."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from incsnap.monitoring.status import Rates, SnapshotStatus, Sums, TableStatus

#: Seconds over which rates are taken: some batches of any kind, and no longer than a person waits for a change.
_SECONDS = 10.0
#: The same for the rows of a table, which come in windows of up to 50,000.
_TABLE_SECONDS = 30.0
#: A rate over less says nothing.
_LEAST_SECONDS = 2.0


class Meter:
    """One number that grows, looked at now and then."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._samples: deque[tuple[float, int]] = deque()

    def see(self, now: float, value: int) -> float | None:
        """``now`` in seconds of any clock that does not jump. The rate a second, None until enough was seen.

        A value that has gone down (a table that is begun again) is a new beginning.
        """
        if self._samples and value < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((now, value))
        while len(self._samples) > 2 and self._samples[1][0] <= now - self._seconds:
            self._samples.popleft()
        since, before = self._samples[0]
        return (value - before) / (now - since) if now - since >= _LEAST_SECONDS else None


class JobRates:
    """The rates of one job, over restarts of its query."""

    def __init__(self) -> None:
        self._events, self._rows, self._bytes = Meter(_SECONDS), Meter(_SECONDS), Meter(_SECONDS)
        self._tables: dict[int, Meter] = {}

    def of_job(self, now: float, sums: Sums) -> Rates:
        return Rates(
            events=self._events.see(now, sums.events) or 0.0,
            rows=self._rows.see(now, sums.reads + sums.discarded) or 0.0,
            bytes=self._bytes.see(now, sums.bytes) or 0.0,
        )

    def of_tables(self, now: float, snapshot: SnapshotStatus) -> SnapshotStatus:
        """The tables with their rows a second, and the time that is left where that can be said."""
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
