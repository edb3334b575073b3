"""The faults that the ledger seeds into the records of a topic, each at another key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from incsnap.verify.kinds import EXTRA, MISSING, NO_TOMBSTONE, STALE, WRONG
from tests.support.kafka import Read
from tests.verify_faults.record_forms import RecordForm, Shown
from tests.verify_faults.wide_tables import LAST_VERSION

LOST_INSERT = "last insert lost"
LOST_UPDATE = "last update lost"
LOST_DELETION = "last deletion lost"
OLDER_ROW = "stale row"
WRONG_BYTE = "one wrong byte"
EXTRA_KEY = "extra key"
LOST_TOMBSTONE = "tombstone lost"
DOUBLED = "doubled record"
BACK_IN_TIME = "back in time"
KINDS = (
    LOST_INSERT,
    LOST_UPDATE,
    LOST_DELETION,
    OLDER_ROW,
    WRONG_BYTE,
    EXTRA_KEY,
    LOST_TOMBSTONE,
    DOUBLED,
    BACK_IN_TIME,
)
#: Kinds that leave the last record of the key as it was.
OF_HISTORY = (DOUBLED, BACK_IN_TIME)


@dataclass(frozen=True, slots=True)
class Fault:
    """A seeded fault, and what verify should say of it."""

    kind: str  #: one of KINDS
    table: str  #: name, as db.table
    key: str  #: the record's key, as `Shown` has it
    named: str = ""  #: the kind of difference; "": none, as the last record of the key is right
    column: str = ""  #: the column that differs; "": any
    has_older: bool = False  #: whether an older record has the row, which the note must name
    sent_twice: int = 0  #: records that repeat earlier ones
    back_in_time: int = 0  #: records that are older than earlier ones


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of a key."""

    at: int  #: index in the topic's records
    record: Read  #: the record
    shown: Shown  #: its content

    @property
    def value(self) -> bytes:
        """Return the value's bytes, which are there."""
        assert self.record.value is not None
        return self.record.value

    @property
    def is_event(self) -> bool:
        """Whether the record is a change with a place in the binlog."""
        return self.shown.op in ("c", "u", "d")


@dataclass(slots=True)
class Seeding:
    """The faults of one topic. `columns` are those whose bytes may be changed."""

    table: str  #: name, as db.table
    form: RecordForm  #: form of the records
    columns: set[str]  #: names of columns without the key
    random: Random  #: source of chance
    envelope: bool  #: False: the records have no places
    compacted: bool = False  #: Kafka removes older records of each key
    keys: dict[str, list[Entry]] = field(default_factory=dict)  #: records by key, in their order
    faults: list[Fault] = field(default_factory=list)  #: the faults
    records: list[Read] = field(default_factory=list)  #: the records with the faults
    _free: list[str] = field(default_factory=list)  #: keys without a fault
    _lost: set[int] = field(default_factory=set)
    _new: dict[int, Read] = field(default_factory=dict)
    _behind: dict[int, list[Read]] = field(default_factory=dict)

    def seed(self, records: Sequence[Read], kinds: Sequence[str]) -> None:
        """Seed a fault of each of `kinds` into the records of the topic. A kind that finds no key is left out."""
        for at, record in enumerate(records):
            shown = self.form.shown(record.key or b"", record.value)
            self.keys.setdefault(shown.key, []).append(Entry(at, record, shown))
        self._free = [key for key, entries in sorted(self.keys.items()) if not _is_last(entries)]
        self.random.shuffle(self._free)
        for kind in kinds:
            self._one(kind)
        self.records = [
            each
            for at, record in enumerate(records)
            for each in (*([] if at in self._lost else [self._new.get(at, record)]), *self._behind.get(at, ()))
        ]

    def _one(self, kind: str) -> None:
        for key in self._free:
            fault = _SEEDERS[kind](self, key, self.keys[key])
            if fault is not None:
                self._free.remove(key)
                self.faults.append(replace(fault, kind=kind))
                return

    def lost_insert(self, key: str, entries: list[Entry]) -> Fault | None:
        if len(entries) != 1 or entries[0].shown.row is None:
            return None
        self._lost.add(entries[0].at)
        return Fault("", self.table, key, MISSING)

    def lost_update(self, key: str, entries: list[Entry]) -> Fault | None:
        if len(entries) < 2 or None in (entries[-1].shown.row, entries[-2].shown.row):
            return None
        self._lost.add(entries[-1].at)
        # Without places only an earlier record with this row shows that it is older.
        return Fault("", self.table, key, STALE if self.envelope else WRONG)

    def lost_deletion(self, key: str, entries: list[Entry]) -> Fault | None:
        gone = 2 if self.envelope else 1
        if len(entries) <= gone or any(each.shown.row for each in entries[-gone:]) or not entries[-gone - 1].shown.row:
            return None
        self._lost |= {each.at for each in entries[-gone:]}
        return Fault("", self.table, key, EXTRA)

    def older_row(self, key: str, entries: list[Entry]) -> Fault | None:
        older = [each for each in entries[:-1] if each.shown.row is not None]
        last = entries[-1]
        if not older or last.shown.row is None:
            return None
        chosen = self.random.choice(older)
        if self.compacted or self.random.random() < 0.5:
            # The older record comes once more.
            self._behind.setdefault(last.at, []).append(chosen.record)
            again = int(chosen.is_event)
            has_older = not self.compacted
            return Fault("", self.table, key, STALE, has_older=has_older, sent_twice=again, back_in_time=again)
        self._new[last.at] = replace(last.record, value=self.form.with_row(last.value, chosen.value))
        return Fault("", self.table, key, STALE, has_older=True)

    def wrong_byte(self, key: str, entries: list[Entry]) -> Fault | None:
        last = entries[-1]
        altered = None if last.shown.row is None else self.form.altered(last.value, self.columns, self.random)
        if altered is None:
            return None
        self._new[last.at] = replace(last.record, value=altered[0])
        return Fault("", self.table, key, WRONG, column=altered[1])

    def extra_key(self, key: str, entries: list[Entry]) -> Fault | None:
        last = entries[-1]
        if last.shown.row is None:
            return None
        other = self.form.other_key(last.record.key or b"", self.random)
        named = self.form.shown(other, None).key
        if named in self.keys:
            return None
        self.keys[named] = []
        self._behind.setdefault(last.at, []).append(replace(last.record, key=other))
        return Fault("", self.table, named, EXTRA)

    def lost_tombstone(self, key: str, entries: list[Entry]) -> Fault | None:
        if not self.envelope or len(entries) < 2 or entries[-1].record.value is not None:
            return None
        self._lost.add(entries[-1].at)
        return Fault("", self.table, key, NO_TOMBSTONE)

    def doubled(self, key: str, entries: list[Entry]) -> Fault | None:
        chosen = self.random.choice(entries)
        if self.envelope and not chosen.is_event:
            return None
        self._behind.setdefault(chosen.at, []).append(chosen.record)
        return Fault("", self.table, key, sent_twice=1)

    def back(self, key: str, entries: list[Entry]) -> Fault | None:
        begin = next((at for at, each in enumerate(entries) if each.is_event), None) if self.envelope else 0
        again = [] if begin is None else entries[begin:]
        events = sum(each.is_event for each in again)
        if len(again) < 2 or (self.envelope and events < 2):
            return None
        # As behind the end of a connector that begins again at an older place
        self._behind.setdefault(entries[-1].at, []).extend(each.record for each in again)
        return Fault("", self.table, key, sent_twice=events, back_in_time=events - 1)


def _is_last(entries: list[Entry]) -> bool:
    row = entries[-1].shown.row
    return row is not None and row["version"] == LAST_VERSION


_SEEDERS: dict[str, Callable[[Seeding, str, list[Entry]], Fault | None]] = {
    LOST_INSERT: Seeding.lost_insert,
    LOST_UPDATE: Seeding.lost_update,
    LOST_DELETION: Seeding.lost_deletion,
    OLDER_ROW: Seeding.older_row,
    WRONG_BYTE: Seeding.wrong_byte,
    EXTRA_KEY: Seeding.extra_key,
    LOST_TOMBSTONE: Seeding.lost_tombstone,
    DOUBLED: Seeding.doubled,
    BACK_IN_TIME: Seeding.back,
}
