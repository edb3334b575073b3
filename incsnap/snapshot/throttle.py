"""How fast snapshots may read, by request: rows a second, all tables together.

Whoever asks for it wants the server spared, so it is reading that is held back, not sending: a chunk is planned when
the rows of those before it have had their time. What counts are the rows that a chunk is cut for; where fewer came, and
no condition has hidden them, the time is given back. The state is part of the offset, so the limit outlives a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

#: Time that was not used, because a batch came late, may be made up for by so much.
_SLACK_MS = 1_000


@dataclass(frozen=True, slots=True)
class Throttle:
    """``signal``: the id of the signal that asked. ``next_ms``: when the next chunk may be planned."""

    rows_per_second: int
    signal: str
    next_ms: int = 0

    def allows(self, now_ms: int) -> bool:
        """May a chunk be planned now?"""
        return now_ms >= self.next_ms

    def after(self, rows: int, now_ms: int) -> Throttle:
        """A chunk of so many rows is planned."""
        begin = max(self.next_ms, now_ms - _SLACK_MS)
        return replace(self, next_ms=begin + self._time_of(rows))

    def given_back(self, rows: int) -> Throttle:
        """So many rows of a chunk that was cut for them did not come."""
        return replace(self, next_ms=self.next_ms - self._time_of(rows))

    def chunk_rows(self, rows: int) -> int:
        """At most a second's rows in one chunk, so that the limit holds from second to second."""
        return min(rows, self.rows_per_second)

    def _time_of(self, rows: int) -> int:
        return rows * 1000 // self.rows_per_second
