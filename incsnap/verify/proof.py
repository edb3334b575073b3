"""The proof of `incsnap verify`: the rules that decide what a round of reading proves about a key.

All these rules are in this file, as small functions. They know rows and records as bytes, and places in the binlog.
They know no SQL, no Kafka and no clock.

**A round** has five steps, in this order (`observe`):

1. **Low watermark.** Note the GTID set *L* that the server has executed, then the end of the binlog (`Low`). A
   transaction of *L* lies before this end, because a transaction is written before it is executed.
2. **SELECT.** Read the rows of the keys. Every SELECT begins after step 1, so it sees all of *L*.
3. **Topic.** Note the end of each partition, and read the topic up to these ends. Take the last record of each key.
4. **High watermark.** Note the end of the binlog. A change is in the binlog before a SELECT or a connector sees it. So
   all that steps 2 and 3 saw lies before this place.
   Steps 2 and 3 may change places: read later, the topic has come further, and more is proved.
5. **Events.** Read the binlog from *L* to the high watermark. It gives the keys that changed meanwhile.

**Rules** for a key *k* (`judge`).

* **Changed.** An event of *k* in step 5 may be visible on one side only. Then the round proves nothing about *k*. The
  next round reads *k* again.
* **Equal.** Otherwise the SELECT's row is the row of *k* at *L*, and at the high watermark too. The last record of *k*
  comes from an event of *L*, or from a SELECT. If it has the same row, the topic holds what the table holds.
* **Different.** If the two differ, the missing record may be on its way. So the difference counts only if the topic's
  partition of *k* has reached the last event of *k*. Such a difference is proved: nothing that comes later belongs to
  an event of *L*.
* **Behind.** Otherwise the topic may still catch up. The next round reads *k* again.

**How far a partition came** (`Reached`). A connector writes the events of one partition in the order of the binlog. So
a record of an event at place *p* shows that the partition has every event before *p*. The last place counts, not the
highest one (`reached_by`): a connector that was killed repeats events, and while it does so a key may be back at an
older row. The places of other partitions show only that the connector has read so far. Their records may arrive
earlier. The record of a row that a snapshot has read shows no more: the snapshot may not have come to other rows. Both
are **weak** evidence. Rows of a first snapshot that is under way are none for the keys that it has not read yet: it
has still to send their rows (`LiveSides._unsent`). A difference that rests on weak evidence is looked at again after a
stated time (`incsnap.verify.rounds`), and the report says so.

A record at place *p* shows nothing about the other event at *p*: a change of a key is two records, one for each key.
Only the record of *k* itself shows that the partition has the event of *k* at its place (`has_reached`).

Some events are **due** later than at their place (`Events.due`). All events of a compressed transaction have the place
of the transaction, so a record there shows only what lies before the transaction. The rows of an XA transaction lie
before its XA PREPARE, and incsnap sends them at XA COMMIT. A partition has such an event for certain once it has come
to a later transaction.

If a partition came only to a place before *L*, step 5 begins there. So events of *L* behind this place are known, and
their keys are behind, not different. A key without an event there has its last event before the place.

Rows that do not name their columns (`binlog_row_metadata=MINIMAL`) can be read only behind the last statement about
these columns. The events of *L* before it are not known, so a place before it proves no difference (`Events.begins`).

`tests/property/test_verify.py` has a model of server, connector and topic. Its mutants show that each rule is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from incsnap.gtid import GtidSet

#: The bytes of a record's key, with the topic of the record.
TopicKey = tuple[str, bytes]
Rows = TypeVar("Rows")
Topic = TypeVar("Topic")
_Keys = TypeVar("_Keys", contravariant=True)
_Rows = TypeVar("_Rows", covariant=True)
_Topic = TypeVar("_Topic", covariant=True)


class RowPlace(NamedTuple):
    """The place of a row's change in the binlog. Places of one server are ordered."""

    file: int  #: number of the binlog file
    pos: int  #: first byte of the rows event
    row: int = 0  #: number of the row in the event


@dataclass(frozen=True, slots=True)
class Low:
    """A low watermark: the transactions `executed`, which lie before `end` in the binlog."""

    executed: GtidSet  #: transactions that the server has executed
    end: RowPlace  #: end of the binlog, noted after them


@dataclass(frozen=True, slots=True)
class Reached:
    """The places up to which a partition has all events of its keys; None without evidence."""

    strong: RowPlace | None = None  #: shown by a record of this partition, or by what the connector has committed
    weak: RowPlace | None = None  #: shown by records of other partitions, or by rows of a snapshot


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The last record of a key in its partition."""

    row: bytes | None  #: the row that it shows; None: the key is deleted
    partition: int  #: partition that holds the record
    offset: int  #: place in the partition
    #: whether the deletion is complete: a tombstone, or a deletion of a topic without tombstones
    tombstone: bool = False
    place: RowPlace | None = None  #: place of its event; None: it has none
    read_at: RowPlace | None = None  #: for a row of a snapshot: place of which the row is, or older; None: unknown
    table: str = ""  #: table of its event, as db.table; "": unknown
    followed: bool = False  #: for a deletion without its tombstone: whether another record of the partition follows it


@dataclass(frozen=True, slots=True)
class Events:
    """The changes of keys in the binlog that step 5 has read."""

    since: RowPlace  #: every event of a transaction of the low watermark from here on was read
    last: Mapping[TopicKey, RowPlace] = field(default_factory=dict)  #: place of the last event of each key
    #: Place behind which a partition has the last event of a key, if this is not the place of the event.
    due: Mapping[TopicKey, RowPlace] = field(default_factory=dict)
    changed: Collection[TopicKey] = frozenset()  #: keys with an event that is not of the low watermark
    #: Place of the last statement that changed the columns of the table of a topic.
    altered: Mapping[str, RowPlace] = field(default_factory=dict)
    #: Place from which on the events of a topic are known, if this is later than `since`.
    begins: Mapping[str, RowPlace] = field(default_factory=dict)


class Verdict(Enum):
    """The answer that a round gives about a key."""

    EQUAL = "equal"
    DIFFERENT = "different"
    CHANGED = "changed"  #: nothing, because the key changed meanwhile
    BEHIND = "behind"  #: nothing, because the topic may still catch up


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and whether it rests on weak evidence."""

    verdict: Verdict  #: answer about the key
    weak: bool = False  #: whether only weak evidence shows how far the partition came


class Sides(Protocol[_Keys, _Rows, _Topic]):
    """The two sides of a comparison, as `observe` asks them."""

    def low(self) -> Low:
        """Return the executed transactions, and the end of the binlog noted after them."""

    def select(self, keys: _Keys) -> _Rows:
        """Read rows of the table. Every SELECT begins after this call."""

    def topic(self, keys: _Keys) -> _Topic:
        """Note the ends of the topic's partitions, and read the topic up to them."""

    def high(self) -> RowPlace:
        """Return the end of the binlog."""


@dataclass(frozen=True, slots=True)
class Observation(Generic[Rows, Topic]):
    """The findings of the first four steps of a round."""

    low: Low  #: low watermark
    rows: Rows  #: rows that the SELECTs have read
    topic: Topic  #: records of the topic up to its ends
    high: RowPlace  #: high watermark


def observe(sides: Sides[_Keys, Rows, Topic], keys: _Keys) -> Observation[Rows, Topic]:
    """Return what the first four steps of a round see, in the order that the proof needs."""
    low = sides.low()
    rows = sides.select(keys)
    topic = sides.topic(keys)
    return Observation(low, rows, topic, sides.high())


def reached_by(places: Sequence[RowPlace]) -> RowPlace | None:
    """Return how far a partition came that has events of these places, in the order of its records."""
    return places[-1] if places else None


def is_same(row: bytes | None, record: LastRecord | None) -> bool:
    """Return True if the record shows what the table has. A deletion that lacks its tombstone does not."""
    if record is None or record.row is None:
        return row is None and (record is None or record.tombstone)
    return row == record.row


def judge(
    key: TopicKey, row: bytes | None, record: LastRecord | None, low: Low, events: Events, reached: Reached
) -> Judgement:
    """Return what a round proves about `key`: the SELECT has read `row`, and `record` is the last one in the topic.

    `reached`: how far the key's partition came.
    """
    if key in events.changed:
        return Judgement(Verdict.CHANGED)
    if is_same(row, record):
        return Judgement(Verdict.EQUAL)
    if row is None and record is not None and record.row is None:
        # A deletion is there, and its tombstone is the record behind it.
        if record.followed:
            return Judgement(Verdict.DIFFERENT)
        reached = Reached(None, max((each for each in (reached.strong, reached.weak) if each), default=None))
    own = None if record is None else record.place
    if has_reached(key, low, events, reached.strong, own):
        return Judgement(Verdict.DIFFERENT)
    if has_reached(key, low, events, reached.weak, own):
        return Judgement(Verdict.DIFFERENT, weak=True)
    return Judgement(Verdict.BEHIND)


def has_reached(key: TopicKey, low: Low, events: Events, place: RowPlace | None, own: RowPlace | None = None) -> bool:
    """Return True if a partition that came to `place` has the last event of the low watermark of `key`.

    `own`: place of the last record of `key`.
    """
    if place is None:
        return False
    if place >= low.end:
        return True
    if max(events.since, events.begins.get(key[0], events.since)) > place:
        return False
    if key not in events.last:
        return True
    due = events.due.get(key, events.last[key])
    return due < place or (own is not None and due <= own)
