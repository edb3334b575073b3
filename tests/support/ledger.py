"""The ledger: what was asked and what lived when, held against what an independent consumer read at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from incsnap.tables import TableId, quote
from lab.captured_database import CapturedDatabase, TableProof
from lab.history import KeyHistory
from lab.listening import Notices

Key = tuple[object, ...]


@dataclass(slots=True)
class Asked:
    """One signal: its tables with the keys that lived when it was given, and the time until it was complete (ms)."""

    signal: str
    tables: dict[TableId, list[Key]]
    since_ms: int
    until_ms: int = 0


@dataclass(slots=True)
class Ledger:
    """Give signals through it, call ``settle`` now and then, and ``check`` at the end."""

    captured: CapturedDatabase
    asked: list[Asked] = field(default_factory=list)

    def ask(self, tables: Sequence[TableId], channel: str) -> Asked:
        """Signal execute-snapshot by ``source`` or ``kafka``."""
        entry = Asked(f"signal-{len(self.asked) + 1}", {}, time.time_ns() // 1_000_000)
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
        """Notes which signals are complete; True when all are."""
        for entry in self.asked:
            if not entry.until_ms and notices.completed(entry.signal):
                entry.until_ms = time.time_ns() // 1_000_000
        return all(entry.until_ms for entry in self.asked)

    def snapshots_of(self, table: TableId) -> int:
        return sum(1 for entry in self.asked if table in entry.tables)

    def check(self) -> list[TableProof]:
        """Replays and compares; an AssertionError lists everything that is wrong, or that was not put to the test."""
        verdicts, wrong = self.judged()
        assert not wrong, "\n".join(wrong)
        return verdicts

    def judged(self, *, by_time: bool = True) -> tuple[list[TableProof], list[str]]:
        """The same without the error. ``by_time``: not where a clock has jumped, for records bear its time."""
        verdicts = self.captured.verdicts(keep_times=True)
        wrong = [fault for verdict in verdicts for fault in verdict.faults(self.snapshots_of(verdict.table))]
        for verdict in verdicts:
            wrong += self._unread(verdict) if by_time else []
            counts = verdict.replay.counts
            if counts["d"] != counts["tombstone"]:
                wrong.append(f"{verdict.table}: {counts['d']} deletes, {counts['tombstone']} tombstones")
        # Of one table events may have overtaken each row, where the stream is minutes behind: not of all of them.
        if self.asked and not any(verdict.replay.counts["r"] for verdict in verdicts):
            wrong.append("no r record at all")
        return verdicts, wrong

    def _unread(self, verdict: TableProof) -> list[str]:
        """Every row that lived when a signal was given came as ``r`` or as a later event until it was complete."""
        faults = []
        for entry in self.asked:
            keys = entry.tables.get(verdict.table)
            if keys is None:
                continue
            histories = [verdict.replay.state.get(key, KeyHistory(0)) for key in keys]
            silent = silent_between(histories, entry.since_ms, entry.until_ms)
            if not keys:
                faults.append(f"{verdict.table}: no row lived at {entry.signal}")
            if silent:
                faults.append(f"{verdict.table}: {silent} of {len(keys)} rows did not come in {entry.signal}")
        return faults


def silent_between(histories: Sequence[KeyHistory], since_ms: int, until_ms: int) -> int:
    """How many of them have no record of that time, both ends included (needs a replay that keeps times)."""
    return sum(1 for history in histories if not any(since_ms <= time <= until_ms for time in history.times))
