"""The progress of a comparison: what was read, of how much, and the time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

#: Seconds that must have passed before a rate tells the time left.
_LEAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A moment of a comparison."""

    rows: int = 0  #: rows of the tables that were read
    all_rows: int = 0  #: rows that the tables have, by the server's statistics
    records: int = 0  #: records of the topics that were read
    all_records: int = 0  #: records that the topics have, at most
    step: str = ""  #: what is done now, for people
    seconds_left: float | None = None  #: until both sides are read; None: unknown

    @property
    def share(self) -> float:
        """The share of the rows and records that were read, from 0 to 1."""
        done = self.rows + self.records
        return done / (done + self.left) if done else 0.0

    @property
    def left(self) -> int:
        """The rows and records that were not read yet."""
        return max(self.all_rows - self.rows, 0) + max(self.all_records - self.records, 0)

    def __str__(self) -> str:
        read = f"{self.rows:,} of {max(self.all_rows, self.rows):,} rows"
        return f"{read} and {self.records:,} of {max(self.all_records, self.records):,} records"


class Progress:
    """The counts of one comparison. It is thread-safe. `clock`: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._rows = self._all_rows = self._records = self._all_records = self._earlier = 0
        self._step = "looking at the tables"
        self._since = clock()

    def expect(self, rows: int, records: int) -> None:
        """Note how much there is to be read, from now on. Counts of an earlier attempt are forgotten."""
        with self._lock:
            self._all_rows, self._all_records = rows, records
            self._rows = self._records = self._earlier = 0
            self._since = self._clock()

    def read(self, rows: int = 0, records: int = 0, *, earlier: bool = False) -> None:
        """Note what was read. `earlier`: another process has read it, so it tells nothing about the time left."""
        with self._lock:
            self._rows += rows
            self._records += records
            if earlier:
                self._earlier += rows + records

    def know_rows(self) -> None:
        """Note that all rows of the tables were read: the server's statistics may have said another number."""
        with self._lock:
            self._all_rows = self._rows

    def begin(self, step: str) -> None:
        """Note what is done from now on."""
        with self._lock:
            self._step = step

    def seen(self) -> Seen:
        """Return this moment."""
        with self._lock:
            seen = Seen(self._rows, self._all_rows, self._records, self._all_records, self._step)
            seconds, done = self._clock() - self._since, self._rows + self._records - self._earlier
        if seconds < _LEAST_SECONDS or not done:
            return seen
        return replace(seen, seconds_left=seconds / done * seen.left)
