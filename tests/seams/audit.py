"""The audit of topics that two engines have written by turns: what came twice, what was lost, what is left.

A phase is the time of one engine between two seams. Debezium repeats records after a crash, within its own phase. If
it was killed while it did so, the engine after it sends again what follows, so that the last record of each key is
right. Every other repetition is a fault.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from incsnap.events import file_number
from lab.history import Findings, Judgement, KeyHistory, judge
from tests.seams.shapes import Record

RowPlace = tuple[int, int, int]
#: End of each partition of each topic.
Ends = Mapping[tuple[str, int], int]
_CHANGES = ("c", "u", "d")

#: A time with a zone, as records have TIMESTAMP(3).
_TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z$")


@dataclass(slots=True)
class _Partition:
    last: RowPlace | None = None  #: place of the last change in the phase before
    phase: int = 0
    newest: RowPlace | None = None  #: place of the newest change


@dataclass(slots=True)
class Audit:
    """The audit of a round. `seams` has the ends of the topics at each seam; the first phase is Debezium's."""

    seams: Sequence[Ends]
    judgement: Judgement = field(default_factory=Judgement)
    others: Findings = field(default_factory=Findings)  #: changes that the wrong engine has written; missing tombstones
    rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)  #: last rows, by table
    records: Counter[str] = field(default_factory=Counter)  #: by engine
    repeated: int = 0  #: records that Debezium has repeated within its own phase
    stale: int = 0  #: rows that Debezium has read again as they were before a prepared XA transaction
    again: int = 0  #: records that incsnap has sent again behind a repetition that was cut short
    #: tables with a transaction of which both engines have sent rows, by the number of the seam between them
    cut: dict[int, set[str]] = field(default_factory=dict)
    split: set[int] = field(default_factory=set)  #: seams between a deletion and its tombstone or its creation
    _histories: dict[tuple[str, tuple[Any, ...]], KeyHistory] = field(default_factory=dict)
    _seen: dict[int, int] = field(default_factory=dict)
    _open: set[tuple[str, tuple[Any, ...]]] = field(default_factory=set)
    _partitions: dict[tuple[str, int], _Partition] = field(default_factory=dict)
    _phases: dict[tuple[str, int], int] = field(default_factory=dict)
    _gtids: dict[str, int] = field(default_factory=dict)

    def observe(self, record: Record, topic: str, partition: int, offset: int) -> None:
        """Take the next record of a partition."""
        phase = bisect_right([ends.get((topic, partition), 0) for ends in self.seams], offset)
        is_ours = phase % 2 == 1
        key = (record.table, record.key)
        partition_of = (topic, partition)
        is_first = self._phases.get(partition_of, 0) != phase
        self._phases[partition_of] = phase
        if is_first and self._is_rest(record, key, partition_of):
            self.split.add(phase - 1)
        if not record.op:
            if key not in self._open:
                self.judgement.strays.add(f"{key}: a tombstone without a deletion, offset {offset} of {topic}")
            self._open.discard(key)
            return
        self.records["incsnap" if record.is_ours else "Debezium"] += 1
        where = f"{key}: {record.op}, offset {offset} of partition {partition} of {topic}, phase {phase}"
        if record.is_ours != is_ours:
            self.others.add(f"{where}: the wrong engine")
        history = self._histories.setdefault(key, KeyHistory(partition))
        if record.op in _CHANGES and self._is_repetition(record, topic, partition, phase, where):
            self._keep(record, key)
            return
        if record.op == "r" and not record.is_ours and _is_stale(history, record):
            # Debezium sends rows at XA PREPARE. Its next chunk reads them as they were before, up to XA COMMIT.
            self.stale += 1
            return
        if key in self._open and record.op != "d":
            self.others.add(f"{where}: the deletion before it has no tombstone")
            self._open.discard(key)
        before = None if record.before is None else record.before["version"]
        if not record.shows_before and record.op == "u":
            before = history.version
        judged = self.judgement if is_ours or record.op != "r" else Judgement()
        judge(history, key, record.op, before, None if record.after is None else record.after["version"], judged)
        history.row = None if record.after is None else ()
        self._keep(record, key)

    def _is_rest(self, record: Record, key: tuple[str, tuple[Any, ...]], partition: tuple[str, int]) -> bool:
        """Return True if the record ends what the partition's last record has begun: the change of one row."""
        if not record.op:
            return key in self._open
        state = self._partitions.get(partition)
        if record.op != "c" or state is None or state.newest != _place(record):
            return False
        # A repetition of the insertion that was last has the same place too.
        return _mark(record) not in self._seen

    def _is_repetition(self, record: Record, topic: str, partition: int, phase: int, where: str) -> bool:
        place = _place(record)
        state = self._partitions.setdefault((topic, partition), _Partition(phase=phase))
        if state.phase != phase:
            state.last, state.phase = state.newest, phase
        state.newest = place
        mark = _mark(record)
        first = self._seen.get(mark)
        self._seen[mark] = phase
        if first is None:
            gtid = str(record.source.get("gtid") or "")
            if self._gtids.setdefault(gtid, phase) == phase - 1:
                self.cut.setdefault(phase - 1, set()).add(record.table)
            return False
        if first == phase and phase % 2 == 0:
            self.repeated += 1
        elif first == phase - 1 and phase % 2 == 1 and state.last is not None and place > state.last:
            self.again += 1
        else:
            self.judgement.duplicates.add(where)
        return True

    def _keep(self, record: Record, key: tuple[str, tuple[Any, ...]]) -> None:
        rows = self.rows.setdefault(record.table, {})
        if record.after is None:
            rows.pop(record.key, None)
            self._open.add(key)
        elif record.op == "r" and not record.is_ours:
            rows[record.key] = {name: _padded(value) for name, value in record.after.items()}
        else:
            rows[record.key] = record.after

    def faults(self) -> list[str]:
        """Return a line for each kind of fault. Call it behind the last record."""
        for key in self._open:
            self.others.add(f"{key}: a deletion without a tombstone at the end")
        faults = self.judgement.faults()
        if self.others.count:
            faults.append(f"{self.others.count} records of a wrong kind, such as {'; '.join(self.others.examples)}")
        return faults


def _place(record: Record) -> RowPlace:
    file, pos, row = record.place
    return file_number(file), pos, row


def _mark(record: Record) -> int:
    """Return a number that a change and its repetition share."""
    return hash((record.table, record.key, _place(record), record.op))


def _padded(value: Any) -> Any:
    """Return a time with three digits behind the second. Debezium's snapshots drop zeros at the end."""
    if not isinstance(value, str):
        return value
    return _TIME.sub(lambda time: f"{time[1]}.{time[2] or '':0<3}Z", value)


def _is_stale(history: KeyHistory, record: Record) -> bool:
    """Return True if the row that was read is older than the key's newest record."""
    version = -1 if record.after is None else int(record.after["version"])
    return version < history.version or (version == history.version >= 0 and history.row is None)
