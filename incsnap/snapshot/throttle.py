"""What holds the reading of snapshots back, by request: limits of the settings, and those that signals have set.

Whoever asks for a limit wants the server spared, so it is reading that is held back, not sending: a chunk is planned
when the rows of those before it have had their time, and when no load of the servers is above its limit (``load``). A
limit is of the job, not of one snapshot; what signals have asked for is part of the offset, so it outlives a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

#: Names of the limits, as signals have them.
ROWS = "rows-per-second"
REPLICA_LAG, COMMIT_LATENCY, STREAM_LAG = "replica-lag-ms", "commit-latency-ms", "stream-lag-ms"
THREADS_RUNNING = "threads-running"
LIMITS = (ROWS, REPLICA_LAG, COMMIT_LATENCY, THREADS_RUNNING, STREAM_LAG)

#: Time that was not used, because a batch came late, may be made up for by so much.
_SLACK_MS = 1_000


def setting_of(name: str) -> str:
    """The setting of a limit: ``incsnap.snapshot.throttle.replica.lag.ms``."""
    return f"incsnap.snapshot.throttle.{name.replace('-', '.')}"


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit in force: of what, the most that it may be, and the signal that has set it, "" for the settings."""

    name: str
    most: int
    signal: str = ""

    @property
    def whose(self) -> str:
        return f"signal {self.signal}" if self.signal else setting_of(self.name)


@dataclass(frozen=True, slots=True)
class Throttle:
    """``asked``: limits that signals have set; one of 0 lifts what the settings have. ``next_ms``: when the next chunk
    may be planned, where rows a second are limited."""

    asked: tuple[Bound, ...] = ()
    next_ms: int = 0

    def bounds(self, configured: Mapping[str, int]) -> dict[str, Bound]:
        """The limits in force by name. ``configured``: those of the settings, which hold where no signal has spoken."""
        by_name = {name: Bound(name, most) for name, most in configured.items()}
        by_name |= {bound.name: bound for bound in self.asked}
        return {name: by_name[name] for name in LIMITS if name in by_name and by_name[name].most}

    def asks(self, name: str, most: int | None, signal: str) -> Throttle:
        """A signal sets a limit; None is for what the settings have."""
        others = tuple(bound for bound in self.asked if bound.name != name)
        return replace(self, asked=others if most is None else (*others, Bound(name, most, signal)))


#: As a job begins.
NOT_THROTTLED = Throttle()


@dataclass(frozen=True, slots=True)
class RowPace:
    """Rows a second, all tables together. ``next_ms``: when the next chunk may be planned.

    What counts are the rows that a chunk is cut for; where fewer came, and no condition has hidden them, the time is
    given back.
    """

    rows_per_second: int
    next_ms: int = 0

    def allows(self, now_ms: int) -> bool:
        """May a chunk be planned now?"""
        return now_ms >= self.next_ms

    def after(self, rows: int, now_ms: int) -> RowPace:
        """A chunk of so many rows is planned."""
        begin = max(self.next_ms, now_ms - _SLACK_MS)
        return replace(self, next_ms=begin + self._time_of(rows))

    def given_back(self, rows: int) -> RowPace:
        """So many rows of a chunk that was cut for them did not come."""
        return replace(self, next_ms=self.next_ms - self._time_of(rows))

    def chunk_rows(self, rows: int) -> int:
        """At most a second's rows in one chunk, so that the limit holds from second to second."""
        return min(rows, self.rows_per_second)

    def _time_of(self, rows: int) -> int:
        return rows * 1000 // self.rows_per_second


class ThrottleLimits:
    """``bounds``: the limits by name, of signals and, where none has spoken, of the settings. Mutable: it lives for one
    call of the engine, and leaves ``throttle``."""

    def __init__(self, throttle: Throttle, configured: Mapping[str, int]) -> None:
        self._configured = configured
        self._throttle = throttle
        self.bounds = throttle.bounds(configured)
        self._pace = self._row_pace(throttle.next_ms)

    @property
    def throttle(self) -> Throttle:
        return replace(self._throttle, next_ms=self._pace.next_ms if self._pace is not None else 0)

    def set(self, signal: str, limits: Iterable[tuple[str, int | None]]) -> None:
        """Has (name, the most) pairs of a signal hold from this batch on."""
        named = set()
        for name, most in limits:
            self._throttle = self._throttle.asks(name, most, signal)
            named.add(name)
        self.bounds = self._throttle.bounds(self._configured)
        # What was planned under another limit of rows is not held against the new one.
        self._pace = self._row_pace(0 if ROWS in named or self._pace is None else self._pace.next_ms)

    def may_plan(self, now_ms: int) -> bool:
        """Is there no limit of rows a second, or time for another chunk?"""
        return self._pace is None or self._pace.allows(now_ms)

    def chunk_rows(self, rows: int) -> int:
        """A chunk of so many rows, or what the limit leaves of it."""
        return rows if self._pace is None else self._pace.chunk_rows(rows)

    def planned(self, rows: int, now_ms: int) -> None:
        """A chunk of so many rows is planned."""
        if self._pace is not None:
            self._pace = self._pace.after(rows, now_ms)

    def given_back(self, rows: int) -> None:
        """So many rows of a chunk that was cut for them did not come."""
        if self._pace is not None:
            self._pace = self._pace.given_back(rows)

    def _row_pace(self, next_ms: int) -> RowPace | None:
        return RowPace(self.bounds[ROWS].most, next_ms) if ROWS in self.bounds else None
