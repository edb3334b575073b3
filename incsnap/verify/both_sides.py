"""The sides of `settle` on real servers: rows by key, the topics' newer records, and the keys that change meanwhile."""

from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.events import server_of
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.mysql import watermarks
from incsnap.verify.allowance import Allowance
from incsnap.verify.changed_keys import ChangedKeys, TopicChanged, place_in_log
from incsnap.verify.evidence import Evidence
from incsnap.verify.histories import History, PartitionFacts, note_places, note_records
from incsnap.verify.proof import Events, LastRecord, Low, Reached, RowPlace, TopicKey
from incsnap.verify.sampling import ALL_KEYS, Sample
from incsnap.verify.table_side import LOCKED_SECONDS, VerifiedTable, read_by_keys, when_unlocked
from incsnap.verify.topic_side import PartitionPart, parts_between, read_parts, record_within
from signals import exact_json

#: Most digits that the spelling of a DOUBLE needs.
_DOUBLE_DIGITS = 17
#: Keys of one step of reading rows, some tenths of a second.
_KEYS_OF_STEP = 10_000
#: Seconds in which transactions get their markers, and between two looks.
_UNDECIDED_SECONDS, _LOOK_SECONDS = 5.0, 0.05
#: A place behind all others.
_EVERYTHING = RowPlace(1 << 62, 0)
#: Offsets in which the newest record of a partition is looked for.
_NEWEST_OFFSETS = 100
#: `source.snapshot` of rows of a first snapshot of Debezium, and of the last row of each table. `last`: of all tables.
_FIRST_SNAPSHOT, _LAST_ROWS = ("first", "first_in_data_collection", "true"), ("last_in_data_collection", "last")
#: The kind of a FLOAT that a SELECT of MySQL may have printed, with six digits.
_PRINTED_FLOAT = "printed float"


class LiveSides:
    """The sides of `tables`, by topic. `ends`, `histories` and `facts` are those of the whole tables' topics.

    A table may be locked for `locked_seconds`. After that `select` raises TableLocked.
    """

    def __init__(
        self,
        connection: Connection[Any],
        settings: Settings,
        client: ClientSettings,
        tables: Mapping[str, Sequence[VerifiedTable]],
        evidence: Evidence,
        allowance: Allowance,
        locked_seconds: float = LOCKED_SECONDS,
    ) -> None:
        self._connection, self._settings, self._client, self._tables = connection, settings, client, tables
        self._allowance, self._locked_seconds = allowance, locked_seconds
        by_id = {table.shape.id: table for of_topic in tables.values() for table in of_topic}
        self._changed = ChangedKeys(connection, settings, by_id, allowance)
        self._admin = admin_client(client)
        self._counts = {table.topic: table.partitions for table in by_id.values()}
        self._forms = {table.topic: table.form for table in by_id.values()}
        self._server = watermarks.server_uuid(connection)
        self._executed: Low | None = None
        self._end = ("", 0)
        self._evidence = evidence
        self._rows: dict[TopicKey, bytes] = {}
        self._homes: dict[TopicKey, int | None] = {}
        self._owners: dict[TopicKey, list[VerifiedTable]] = {}
        #: Offset of a record of each partition, the last one that is known.
        self._newest: dict[tuple[str, int], int] = {}
        #: End of each partition, and `source.snapshot` of the newest record before that end; "" without one.
        self._markers: dict[tuple[str, int], tuple[int, str]] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.histories: dict[TopicKey, History] = {}
        self.facts: dict[tuple[str, int], PartitionFacts] = {}

    def low(self) -> Low:
        self._allowance.go_on()
        executed = watermarks.executed(self._connection)
        self._executed = Low(executed, place_in_log(*watermarks.high_watermark(self._connection)))
        return self._executed

    def select(self, keys: Collection[TopicKey]) -> Mapping[TopicKey, bytes]:
        self._rows = {}
        for key in keys:
            self._owners.pop(key, None)
        for topic, tables in self._tables.items():
            own = [key for key in keys if key[0] == topic]
            for table in tables:
                for begin in range(0, len(own), _KEYS_OF_STEP):
                    # No SELECT is open during the rest: the server would end it after a minute.
                    with self._allowance.work():
                        part = own[begin : begin + _KEYS_OF_STEP]
                        read = partial(read_by_keys, self._connection, self._settings, table, part)
                        rows = when_unlocked(table.shape.id, self._locked_seconds, self._allowance, read)
                        for key, row, home in rows:
                            self._rows[key], self._homes[key] = row, home
                            self._owners.setdefault(key, []).append(table)
        return self._rows

    def owners(self, key: TopicKey) -> Sequence[VerifiedTable]:
        """Return the tables in which the newest SELECT has found rows of `key`, each as often as it has such rows."""
        return self._owners.get(key, ())

    def topic(self, keys: Collection[TopicKey]) -> TopicNow:
        delivered = self._delivered()
        self._require_partitions()
        ends, undecided = self._ends(decided=delivered is not None)
        for key in keys:
            self.histories.setdefault(key, History())
        parts = read_parts(self._client, parts_between(self.ends, ends), self._forms)
        for records in self._allowance.steps(parts):
            self._allowance.go_on()
            with self._allowance.work():
                note_records(records, self.histories, only=True)
                note_places(records, self.facts)
        self.ends = ends
        # Asked behind the records: what they show lies before.
        end = place_in_log(*watermarks.high_watermark(self._connection))
        places = (place for each in self.facts.values() for place in (each.last, each.snapshot) if place)
        weak = max((place for place in places if place <= end), default=None)
        needs_weak = delivered != _EVERYTHING or bool(undecided)
        unsent = self._unsent(weak) if needs_weak and weak is not None else ()
        return TopicNow(self, self._rows, self._homes, delivered, undecided, weak, end, unsent)

    def _unsent(self, weak: RowPlace) -> Collection[str]:
        """Return the topics whose rows a first snapshot of Debezium has not all sent. `weak`: highest place of all.

        Debezium streams once the snapshot is over, and all rows of the snapshot have the place of its beginning. So the
        snapshot may be under way if they have the highest place. A topic has all of its rows if the last one of its
        table, or of all tables, is a newest record. A topic without rows of the snapshot has its turn before the last
        row of all tables.
        """
        self._note_markers([each for each, facts in self.facts.items() if facts.snapshot == weak])
        newest: dict[str, set[str]] = {topic: set() for topic in self._tables}
        for partition, (_, marker) in self._markers.items():
            if self.facts[partition].snapshot == weak:
                newest[partition[0]].add(marker)
        markers = {marker for each in newest.values() for marker in each}
        if markers.isdisjoint((*_FIRST_SNAPSHOT, *_LAST_ROWS)):
            return ()
        return [
            topic
            for topic, own in newest.items()
            # Where several tables share a topic, the last row of one says nothing about the others.
            if own.isdisjoint(_LAST_ROWS if len(self._tables[topic]) == 1 else ("last",))
            and ("last" not in markers or not own.isdisjoint(_FIRST_SNAPSHOT))
        ]

    def _note_markers(self, partitions: Collection[tuple[str, int]]) -> None:
        """Note `source.snapshot` of the newest record of each of `partitions`."""
        changed = [each for each in partitions if self._markers.get(each, (-1, ""))[0] != self.ends[each]]
        if not changed:
            return
        firsts = topic_ends(self._client, self._counts, first=True)
        begins = {each: max(firsts[each], self.ends[each] - _NEWEST_OFFSETS) for each in changed}
        self._markers.update({each: (self.ends[each], "") for each in changed})
        parts = parts_between(begins, {each: self.ends[each] for each in changed})
        for records in self._allowance.steps(read_parts(self._client, parts, self._forms)):
            self._allowance.go_on()
            with self._allowance.work():
                for newest in records.slice(max(0, len(records) - 1)).to_pylist():
                    partition = newest["topic"], newest["partition"]
                    self._markers[partition] = (self.ends[partition], newest["snapshot"] or "")

    def _ends(self, *, decided: bool) -> tuple[dict[tuple[str, int], int], Collection[tuple[str, int]]]:
        """Return the ends of the partitions, and the partitions that may lack what was delivered.

        Kafka says that a transaction is committed before all partitions have its marker. Until then its records cannot
        be read. So with `decided` wait until all that is written now is committed or aborted.
        """
        written = topic_ends(self._client, self._counts, committed=False) if decided else {}
        deadline = time.monotonic() + _UNDECIDED_SECONDS
        while True:
            ends = topic_ends(self._client, self._counts)
            undecided = [each for each, end in written.items() if ends[each] < end]
            if not undecided or time.monotonic() >= deadline:
                return ends, undecided
            self._allowance.sleep(_LOOK_SECONDS)

    def _require_partitions(self) -> None:
        """Raise TopicChanged if a topic has got more partitions: nothing has read their records."""
        for topic, count in partition_counts(self._admin, self._counts).items():
            if count > self._counts[topic]:
                raise TopicChanged(f"{topic} has {count} partitions now, {self._counts[topic]} when it was read")

    def high(self) -> RowPlace:
        self._end = watermarks.high_watermark(self._connection)
        return place_in_log(*self._end)

    def events(
        self,
        low: Low,
        since: RowPlace,
        high: RowPlace,
        keys: Collection[TopicKey] | None,
        sample: Sample = ALL_KEYS,
    ) -> Events:
        """Return the changes as `ChangedKeys.events` does."""
        return self._changed.events(low, since, self._end, keys, sample)

    def has_tombstones(self, topic: str) -> bool:
        """Return True if a tombstone follows each deletion in the topic."""
        return self._forms[topic].tombstones

    def is_followed(self, topic: str, record: LastRecord) -> bool:
        """Return True if a record of its partition lies behind `record`.

        The whole topic was read without the offsets of other keys, so the partition is read again behind `record`.
        """
        partition = topic, record.partition
        behind = record.offset + 1
        if self._newest.get(partition, -1) < behind < self.ends[partition]:
            part = PartitionPart(*partition, behind, self.ends[partition])
            with self._allowance.work():
                newest = record_within(self._client, part)
            self._newest[partition] = max(self._newest.get(partition, -1), newest)
        return self._newest.get(partition, -1) >= behind

    def partitions(self, topic: str) -> int:
        """Return how many partitions the topic has."""
        return self._counts[topic]

    def same_values(self, key: TopicKey, row: bytes, record: LastRecord) -> bool:
        """Return True if `row` and the row of a record of `key` have the same values, whatever their spelling."""
        return not any(differing_columns(table, row, record) for table in self.owners(key))

    def _delivered(self) -> RowPlace | None:
        """Return how far a job or connector says that it has delivered, in all partitions; None if neither says so."""
        assert self._executed is not None
        places = []
        for shown in self._evidence.shown():
            if server_of(shown.server_uuid) in ("", self._server):
                if self._executed.executed <= shown.delivered:
                    return _EVERYTHING
                # Of an XA transaction some rows may be sent, at a place before this one.
                if shown.file and not shown.open_gtid:
                    places.append(place_in_log(shown.file, shown.pos, -1))
        return max(places, default=None)


@dataclass(frozen=True, slots=True)
class TopicNow:
    """The topics as a round has read them."""

    sides: LiveSides  #: the sides that have read them
    rows: Mapping[TopicKey, bytes]  #: the tables' rows
    homes: Mapping[TopicKey, int | None]  #: partition of each key of a row; None: unknown
    delivered: RowPlace | None  #: place up to which a job or connector says that all is delivered; None: unknown
    undecided: Collection[tuple[str, int]]  #: partitions that may lack it: their transactions have no markers yet
    weak: RowPlace | None  #: highest place that any record shows; None: no record shows one
    #: Where the server's binlog ended behind the reading. A record of a later place is of another server, before a
    #: failover.
    end: RowPlace
    unsent: Collection[str] = ()  #: topics whose rows a first snapshot of Debezium has not all sent

    def record(self, key: TopicKey) -> LastRecord | None:
        """Return the last record of the key. Its row is the table's if only the spelling of values differs."""
        history = self.sides.histories.get(key)
        record = None if history is None else history.record
        if record is None:
            return None
        complete = record.tombstone or (record.row is None and not self.sides.has_tombstones(key[0]))
        # Only behind a deletion that lacks its tombstone the next record matters.
        followed = record.row is None and not complete and self.sides.is_followed(key[0], record)
        record = replace(record, tombstone=complete, followed=followed)
        row = self.rows.get(key)
        if row is not None and record.row is not None and row != record.row:
            record = replace(record, row=row if self.sides.same_values(key, row, record) else record.row)
        return record

    def reached(self, key: TopicKey) -> Reached:
        """Return how far the partitions of the key came: those of its last record and of a record that is to come."""
        history = self.sides.histories.get(key)
        record = None if history is None else history.record
        home = self.homes.get(key)
        partitions = {each for each in (home, None if record is None else record.partition) if each is not None}
        # If the partition of a missing key is unknown, all partitions must have come so far.
        numbers = partitions or range(self.sides.partitions(key[0]))
        lasts = [self.sides.facts.get((key[0], number), PartitionFacts()).last for number in numbers]
        own = None if None in lasts else min(place for place in lasts if place is not None)
        is_decided = not any((key[0], number) in self.undecided for number in numbers)
        shown = (own, self.delivered if is_decided else None)
        strong = [place for place in shown if place is not None and self._is_here(place)]
        # A first snapshot under way shows nothing about keys whose rows it has not read yet.
        is_read = record is not None and record.read_at == self.weak
        weak = self.weak if is_read or key[0] not in self.unsent else None
        return Reached(max(strong, default=None), weak)

    def _is_here(self, place: RowPlace) -> bool:
        """Whether the place is in the binlog of the server that is asked, as far as its end tells."""
        return place <= self.end or place == _EVERYTHING


def differing_columns(table: VerifiedTable, row: bytes, record: LastRecord) -> list[str]:
    """Return the names of the fields in which the table's row differs from the row of a record.

    Debezium's SELECT spells some values otherwise than its binlog reader. So JSON documents are compared by their
    content. A FLOAT may have the six digits that MySQL prints, unless the record is of an event of the binlog:
    Debezium's snapshot has no more. A DOUBLE may have more digits than it needs. DECIMALs are compared with all their
    digits. From a row that is no JSON all fields differ.
    """
    one = exact_json.parsed(row)
    try:
        other = exact_json.parsed(record.row or b"")
    except ValueError:
        return list(one)
    types = {column.name: column.type for column in table.shape.columns} | dict.fromkeys(table.form.doubles, "double")
    if record.place is None:
        types = {name: _PRINTED_FLOAT if kind == "float" else kind for name, kind in types.items()}
    return [
        name
        for name in {**one, **other}
        if name not in one or name not in other or not _is_same(types.get(name, ""), one[name], other[name])
    ]


def _is_same(kind: str, left: Any, right: Any) -> bool:
    if left == right and type(left) is type(right):
        return True
    if kind == "json" and isinstance(left, str) and isinstance(right, str):
        try:
            return _is_same_json(*(json.loads(text, parse_float=Decimal) for text in (left, right)))
        except (ValueError, ArithmeticError):
            return False
    if kind == "vector" and isinstance(left, list) and isinstance(right, list):
        # Java before 19 prints some of the numbers with more digits than they need.
        return len(left) == len(right) and all(map(_is_same, ["float"] * len(left), left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        # The coordinates of a POINT are DOUBLEs.
        return left.keys() == right.keys() and all(_is_same("double", left[name], right[name]) for name in left)
    if kind not in ("float", _PRINTED_FLOAT, "double") or not all(
        isinstance(each, int | float | Decimal) for each in (left, right)
    ):
        return False
    # By way of Decimal no integer is too large: 10**400 becomes infinity.
    one, other = (float(Decimal(each)) for each in (left, right))
    if kind in ("float", _PRINTED_FLOAT):
        return _single(one) == _single(other) or (kind == _PRINTED_FLOAT and other == float(f"{one:.6g}"))
    # Java before 19 prints some DOUBLEs with more digits than they need.
    return left == right or (one == other and math.isfinite(one))


def _is_same_json(left: Any, right: Any) -> bool:
    """Return True if two JSON documents have the same content. `true` is no number. Numbers are compared exactly."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_same_json(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same_json, left, right))
    if all(isinstance(each, int | Decimal) and not isinstance(each, bool) for each in (left, right)):
        return _is_same_number(left, right)
    return type(left) is type(right) and bool(left == right)


def _is_same_number(left: int | Decimal, right: int | Decimal) -> bool:
    """Return True if two JSON numbers have the same value, or are two spellings of one DOUBLE.

    MySQL prints the fewest digits of a DOUBLE. Debezium's binlog reader prints up to 17 digits, or all of them.
    """
    if left == right:
        return True
    if isinstance(left, int) and isinstance(right, int):
        return False
    numbers = [float(Decimal(each)) for each in (left, right)]
    return numbers[0] == numbers[1] and math.isfinite(numbers[0]) and _is_double(left) and _is_double(right)


def _is_double(number: int | Decimal) -> bool:
    """Return True if the number may be the spelling of a DOUBLE: one of at most 17 digits, or one of all digits."""
    if isinstance(number, Decimal) and len(number.as_tuple().digits) <= _DOUBLE_DIGITS:
        return True
    return Decimal(float(number)) == number


def _single(number: float) -> float:
    """Return the number in single precision, infinity if it is too large."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
        return rounded
    except OverflowError:
        return math.inf
