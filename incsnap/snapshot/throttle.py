"""Limits on reading for snapshots: those of the settings, and those that signals have set.

A limit protects the server, so it holds back reading and not sending. A chunk is planned when the rows of earlier
chunks have had their time, and when no load of the servers is above its limit (`load`). A limit belongs to the job, not
to one snapshot. The limits that signals have set are part of the offset, so they outlive a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

#: Names of the limits, as signals use them.
ROWS = "rows-per-second"
REPLICA_LAG, COMMIT_LATENCY, STREAM_LAG = "replica-lag-ms", "commit-latency-ms", "stream-lag-ms"
THREADS_RUNNING = "threads-running"
CHUNK_ROWS = "chunk-rows"
LIMITS = (ROWS, REPLICA_LAG, COMMIT_LATENCY, THREADS_RUNNING, STREAM_LAG, CHUNK_ROWS)

#: Most time to make up for, in ms, if it was not used because a batch came late.
_SLACK_MS = 1_000


def setting_of(name: str) -> str:
    """Return the name of a limit's setting, for example `incsnap.snapshot.throttle.replica.lag.ms`."""
    return f"incsnap.snapshot.throttle.{name.replace('-', '.')}"


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit in force."""

    name: str  #: name of the limit (`LIMITS`)
    most: int  #: largest allowed value, in the unit of the limit; 0: no limit
    signal: str = ""  #: id of the signal that has set the limit; "": the settings have

    @property
    def whose(self) -> str:
        """The origin of the limit, for people: a signal or a setting."""
        return f"signal {self.signal}" if self.signal else setting_of(self.name)


@dataclass(frozen=True, slots=True)
class Throttle:
    """The limits that signals have set, as the offset has them."""

    asked: tuple[Bound, ...] = ()  #: limits that signals have set; 0 lifts that of the settings
    next_ms: int = 0  #: when the next chunk may be planned, in ms since 1970, if rows per second are limited

    def bounds(self, configured: Mapping[str, int]) -> dict[str, Bound]:
        """Return the limits in force, by name.

        `configured` are those of the settings, which hold if no signal has set another.
        """
        by_name = {name: Bound(name, most) for name, most in configured.items()}
        by_name |= {bound.name: bound for bound in self.asked}
        return {name: by_name[name] for name in LIMITS if name in by_name and by_name[name].most}

    def asks(self, name: str, most: int | None, signal: str) -> Throttle:
        """Return the throttle after a signal has set a limit.

        With `most` None the limit of the settings applies again.
        """
        others = tuple(bound for bound in self.asked if bound.name != name)
        return replace(self, asked=others if most is None else (*others, Bound(name, most, signal)))


#: The throttle of a new job.
NOT_THROTTLED = Throttle()


class ThrottleLimits:
    """The limits on reading that are in force during one call of the engine.

    The object changes during the call. Afterwards its property `throttle` is saved in the next context.

    `bounds` has the limit of each name: the one that a signal has set, otherwise the one of the settings.

    The limit of rows per second holds for all tables together. A planned chunk uses up the time of as many rows as it
    was planned for. If the chunk then has fewer rows, the time of the missing rows is given back. No time is given back
    if the snapshot has a condition, because the server has also read the rows that the condition hides.
    """

    def __init__(self, throttle: Throttle, configured: Mapping[str, int]) -> None:
        self._configured = configured
        self._throttle = throttle
        self.bounds = throttle.bounds(configured)
        #: When the next chunk may be planned, in ms since 1970; 0 if rows per second are not limited.
        self._next_ms = throttle.next_ms if ROWS in self.bounds else 0

    @property
    def throttle(self) -> Throttle:
        """The throttle for the next context."""
        return replace(self._throttle, next_ms=self._next_ms)

    def set(self, signal: str, limits: Iterable[tuple[str, int | None]]) -> None:
        """Set limits of a signal from this batch on.

        `limits` are pairs of name and largest value, as in `SetThrottle`.
        """
        named = set()
        for name, most in limits:
            self._throttle = self._throttle.asks(name, most, signal)
            named.add(name)
        self.bounds = self._throttle.bounds(self._configured)
        # Rows that were planned under another limit do not count against a new one.
        if ROWS in named:
            self._next_ms = 0

    def may_plan(self, now_ms: int) -> bool:
        """Return True if rows per second are not limited, or if it is time for another chunk."""
        return now_ms >= self._next_ms

    def chunk_rows(self, rows: int) -> int:
        """Return the size of a chunk that should have `rows` rows.

        It has at most the rows of the limit for chunks, and at most those of one second. So the limit of rows per
        second holds from second to second.
        """
        return min([rows, *(self.bounds[name].most for name in (ROWS, CHUNK_ROWS) if name in self.bounds)])

    def planned(self, rows: int, now_ms: int) -> None:
        """Note that a chunk of `rows` rows was planned."""
        if ROWS in self.bounds:
            self._next_ms = max(self._next_ms, now_ms - _SLACK_MS) + self._time_of(rows)

    def given_back(self, rows: int) -> None:
        """Note that a chunk turned out to have `rows` rows fewer than it was planned for."""
        if ROWS in self.bounds:
            self._next_ms -= self._time_of(rows)

    def _time_of(self, rows: int) -> int:
        """Return the time that the limit of rows per second gives `rows` rows, in ms."""
        return rows * 1000 // self.bounds[ROWS].most
