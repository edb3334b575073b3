"""The ledger: it notes signals and the rows that existed then, and checks whether a consumer got them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from incsnap.tables import TableId, quote
from lab.captured_database import CapturedDatabase, TableProof
from lab.history import KeyHistory
from lab.listening import Notices

Key = tuple[object, ...]


@dataclass(slots=True)
class Asked:
    """A signal that was given."""

    signal: str  #: id of the signal
    tables: dict[TableId, list[Key]]  #: keys that existed when the signal was given, by table
    since_ms: int  #: when it was given, in ms since 1970
    channel: str = "source"  #: `source` or `kafka`
    until_ms: int = 0  #: when it was complete; 0: not yet
    #: Whether another job took over afterwards, which does not continue its snapshots.
    abandoned: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether no job will complete the signal."""
        return self.abandoned and not self.until_ms


@dataclass(slots=True)
class Ledger:
    """A ledger of one database. Give signals by `ask`, call `settle` now and then, and `check` at the end."""

    captured: CapturedDatabase
    asked: list[Asked] = field(default_factory=list)
    #: reads of each row beside the signals: jobs that began again read its table too
    read_anew: Counter[TableId] = field(default_factory=Counter)

    def ask(self, tables: Sequence[TableId], channel: str) -> Asked:
        """Request snapshots of `tables` by the channel `source` or `kafka`."""
        entry = Asked(f"signal-{len(self.asked) + 1}", {}, time.time_ns() // 1_000_000, channel)
        by = {"source": self.captured.execute_by_row, "kafka": self.captured.execute_by_message}[channel]
        by(entry.signal, tables)
        with self.captured.connect() as connection, connection.cursor() as cursor:
            for design, table in self.captured.tables:
                if table in tables:
                    cursor.execute(f"SELECT {', '.join(quote(name) for name in design.key)} FROM {table.sql}")
                    entry.tables[table] = list(cursor.fetchall())
        self.asked.append(entry)
        return entry

    def settle(self, notices: Notices) -> bool:
        """Note which signals are complete. Return True if all are complete or abandoned."""
        for entry in self.asked:
            if not entry.until_ms and notices.completed(entry.signal):
                entry.until_ms = time.time_ns() // 1_000_000
        return all(entry.until_ms or entry.abandoned for entry in self.asked)

    def abandon(self) -> None:
        """Expect no end of running snapshots: the job that has taken over does not continue them."""
        for entry in self.asked:
            entry.abandoned = entry.abandoned or not entry.until_ms

    def begins_anew(self) -> None:
        """Expect the reads of a new job: its first snapshot, and all signals of the signal topic again.

        A new job reads the signal topic from its beginning, as Debezium does.
        """
        self.abandon()
        for _, table in self.captured.tables:
            again = sum(1 for entry in self.asked if entry.channel == "kafka" and table in entry.tables)
            self.read_anew[table] += 1 + again

    def is_read(self, table: TableId) -> bool:
        """Whether a snapshot of the table is complete or will be."""
        return any(table in entry.tables and not entry.is_lost for entry in self.asked)

    def snapshots_of(self, table: TableId) -> int:
        """Return how often each row of the table may come as `r`."""
        return self.read_anew[table] + sum(1 for entry in self.asked if table in entry.tables)

    def check(self) -> list[TableProof]:
        """Replay the topics, compare, and return the results. Raise AssertionError with a list of all that is wrong.

        It is also wrong if a snapshot had no row, or if no `r` record came at all.
        """
        verdicts, wrong = self.judged()
        assert not wrong, "\n".join(wrong)
        return verdicts

    def judged(self, *, by_time: bool = True) -> tuple[list[TableProof], list[str]]:
        """Replay the topics, compare, and return the results and a list of all that is wrong.

        `by_time` is False if the job's clock has jumped: then the times of records say nothing.
        """
        verdicts = self.captured.verdicts(keep_times=True)
        wrong = [fault for verdict in verdicts for fault in verdict.faults(self.snapshots_of(verdict.table))]
        for verdict in verdicts:
            wrong += self._unread(verdict) if by_time else []
            counts = verdict.replay.counts
            if counts["d"] != counts["tombstone"]:
                wrong.append(f"{verdict.table}: {counts['d']} deletes, {counts['tombstone']} tombstones")
        # While the stream lags by minutes, events may overtake all rows of one table, but not of all tables.
        if self.asked and not any(verdict.replay.counts["r"] for verdict in verdicts):
            wrong.append("no r record at all")
        return verdicts, wrong

    def _unread(self, verdict: TableProof) -> list[str]:
        """Return a line for each signal of which rows were not sent.

        Every row that existed when the signal was given must be sent before the signal's completion: as `r`, or as a
        change that overtook the chunk.
        """
        faults = []
        for entry in self.asked:
            keys = entry.tables.get(verdict.table)
            if keys is None or entry.is_lost:
                continue
            histories = [verdict.replay.state.get(key, KeyHistory(0)) for key in keys]
            silent = silent_between(histories, entry.since_ms, entry.until_ms)
            if not keys:
                faults.append(f"{verdict.table}: no row lived at {entry.signal}")
            if silent:
                faults.append(f"{verdict.table}: {silent} of {len(keys)} rows did not come in {entry.signal}")
        return faults


def silent_between(histories: Sequence[KeyHistory], since_ms: int, until_ms: int) -> int:
    """Return how many of `histories` have no record that was sent between two times, both included.

    The histories come from a replay that keeps times.
    """
    return sum(1 for history in histories if not any(since_ms <= time <= until_ms for time in history.times))
