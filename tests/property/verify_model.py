"""A model of a server, a connector and a topic, in which `incsnap verify` compares while all of them go on.

A transaction changes one key or more. It is written to the log, then visible, then executed. Some transactions are
compressed: all of their events have one place. Some are XA ones: their events have the places of XA PREPARE, and come
at XA COMMIT. A change of a key gives two records of one place. The connector reads the log event by event, up to what
is written. Its records wait in a queue for each partition, and no queue waits for another one. The connector may die:
its queues are lost, and it begins again at an older transaction. At first it takes a snapshot.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from incsnap.gtid import GtidSet
from incsnap.verify import rounds
from incsnap.verify.proof import Events, LastRecord, Low, Reached, RowPlace, TopicKey, Verdict, reached_by

TOPIC = "t"
PARTITIONS = 2
KEYS: list[TopicKey] = [(TOPIC, b"%d" % number) for number in range(4)]
LIMITS = rounds.Limits(wait_seconds=8.0, again_seconds=4.0, changed_rounds=6)
#: Seconds after which the connector has sent what it has read. It is less than `again_seconds`.
_LATEST_SECONDS = 2.0
_UUID = "11111111-1111-1111-1111-111111111111"


class Violation(AssertionError):
    """A wrong answer of verify. `kind` is false alarm, wrong equal or missed."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def partition_of(key: TopicKey) -> int:
    """Return the partition of a key."""
    return int(key[1]) % PARTITIONS


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a key in the log."""

    number: int  #: number of the transaction, from 1
    key: TopicKey  #: changed key
    row: bytes | None  #: row behind the change; None: deleted
    place: RowPlace  #: place of the event
    kind: str  #: kind of the transaction: plain, compressed, XA
    begin: int  #: position at which the transaction begins, for an XA one that of XA COMMIT


def due_of(change: Change) -> RowPlace | None:
    """Return when a change is due, if this is not its place."""
    if change.kind == "XA":
        return RowPlace(1, change.begin, 1 << 62)
    return RowPlace(1, change.place.pos, 1 << 62) if change.kind == "compressed" else None


class World:
    """The server, the connector and the topic."""

    def __init__(self, rng: random.Random, *, faults: bool) -> None:
        self.rng, self.now, self._faults = rng, 0.0, faults
        #: all changes in the order in which they become visible
        self.log: list[Change] = []
        self.visible = self.executed = self.written = 0
        self.faulty: set[TopicKey] = set()
        self.topic: list[list[tuple[TopicKey, LastRecord]]] = [[] for _ in range(PARTITIONS)]
        self._queues: list[list[tuple[float, int, TopicKey, LastRecord]]] = [[] for _ in range(PARTITIONS)]
        self._pos = self._version = 0
        self._is_over = False
        self._lost: dict[int, str] = {}
        #: keys and place of an XA transaction that is prepared
        self._prepared: tuple[list[TopicKey], int] | None = None
        #: whether the connector's committed place can be read
        self._has_offsets = rng.random() < 0.4
        for key in KEYS:
            if rng.random() < 0.7:
                self._transact("plain", [key])
        self.visible = self.executed = self.written
        self._read = self._committed = len(self.log)
        self._snapshot = [key for key in KEYS if self.row_at(key, self.executed) is not None]
        self._snapshot_place = self.end_place()

    def end_place(self) -> RowPlace:
        """Return the end of the log."""
        return RowPlace(1, self._pos + 10)

    def executed_place(self) -> RowPlace:
        """Return the end of what is executed."""
        return next((RowPlace(1, each.begin) for each in self.log if each.number > self.executed), self.end_place())

    @property
    def delivered(self) -> RowPlace | None:
        """Return the place that the connector has committed; None if it cannot be read."""
        if not self._has_offsets or self._snapshot or -1 in self._waiting():
            return None
        begins = [each.begin for each in self.log[self._committed :]]
        return RowPlace(1, begins[0], -1) if begins else None

    def row_at(self, key: TopicKey, number: int) -> bytes | None:
        """Return the row of `key` behind the first `number` transactions."""
        return next((each.row for each in reversed(self.log) if each.key == key and each.number <= number), None)

    def step(self) -> None:
        """Let something happen."""
        rng = self.rng
        what = rng.randint(2 if self._is_over else 0, 8 if self._is_over else 9)
        if what <= 1:
            self._write()
        elif what <= 3:
            self.visible = min(self.written, self.visible + 1)
        elif what == 4:
            self.executed = min(self.visible, self.executed + 1)
        elif what <= 6:
            self._connect()
        elif what <= 8:
            self._send(rng.randrange(PARTITIONS))
        elif rng.random() < 0.3:
            self._die()
        self._send_late()

    def rest(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self.now += seconds
        for _ in range(self.rng.randint(0, 3)):
            self.step()
        self._connect()
        self._send_late()

    def end(self) -> None:
        """Let the writer stop and all others come to an end, with a last change in each partition."""
        self._is_over = True
        if self._prepared is not None:
            self._write()
        for number in range(PARTITIONS):
            self._transact("plain", [(TOPIC, b"%d" % (100 + number))])
        self.visible = self.executed = self.written
        while self._snapshot or self._read < len(self.log):
            self._connect()
        for number in range(PARTITIONS):
            while self._queues[number]:
                self._send(number)

    def _write(self) -> None:
        """Write a transaction, or the XA COMMIT of one that is prepared. A prepared transaction locks its keys."""
        rng, locked = self.rng, self._prepared[0] if self._prepared else []
        free = [key for key in KEYS if key not in locked]
        if self._prepared is not None and (self._is_over or rng.random() < 0.3):
            keys, place = self._prepared
            self._prepared = None
            self._transact("XA", keys, place)
            return
        kind = rng.choice(("plain", "plain", "compressed", "moved", "XA"))
        keys = rng.sample(free, min(len(free), rng.randint(1, 3) if kind != "moved" else 2))
        if kind == "compressed" and free:
            keys = rng.choices(free, k=rng.randint(2, 4))
        if kind == "XA" and self._prepared is None:
            self._pos += 10
            self._prepared = keys, self._pos
        elif kind == "moved":
            living = [key for key in keys if self.row_at(key, self.written) is not None]
            if len(living) == 1 and len(keys) == 2:
                self._transact("moved", [*living, *(key for key in keys if key not in living)])
        else:
            self._transact("plain" if kind == "XA" else kind, keys)

    def _transact(self, kind: str, keys: Sequence[TopicKey], prepared: int = 0) -> None:
        self.written += 1
        self._pos += 10
        begin = self._pos
        for nth, key in enumerate(keys):
            self._version += 1
            exists = self.row_at(key, self.written) is not None
            row = None if exists and self.rng.random() < 0.3 else b"%s/%d" % (key[1], self._version)
            if kind == "moved":
                row = b"%s/%d" % (key[1], self._version) if nth else None
            # Each event of a compressed transaction counts its rows anew.
            place = RowPlace(1, begin + 1, self.rng.randint(0, 2) if kind == "compressed" else 0)
            if kind == "plain":
                place = RowPlace(1, begin + 1 + nth)
            elif kind == "XA":
                place = RowPlace(1, prepared + nth)
            self.log.append(Change(self.written, key, row, place, kind, begin))

    def _connect(self) -> None:
        if self._snapshot:
            key = self._snapshot.pop(0)
            # The snapshot sees the first transactions, that is, those of `_committed`.
            row = next((each.row for each in reversed(self.log[: self._committed]) if each.key == key), None)
            self._queue(-1, key, LastRecord(row, 0, 0, place=None))
        elif self._read < len(self.log):
            self._read += 1
            change = self.log[self._read - 1]
            if self._faults and change.key in KEYS and self._read not in self._lost:
                self._lost[self._read] = self.rng.choice(["", "", "lost", "altered"])
            fault = self._lost.get(self._read, "")
            if fault:
                self.faulty.add(change.key)
            if fault != "lost":
                row = change.row + b"!" if fault and change.row is not None else change.row
                self._queue(self._read - 1, change.key, LastRecord(row, 0, 0, row is None, change.place))

    def _queue(self, at: int, key: TopicKey, record: LastRecord) -> None:
        self._queues[partition_of(key)].append((self.now, at, key, record))

    def _send(self, partition: int) -> None:
        if self._queues[partition]:
            _, _, key, record = self._queues[partition].pop(0)
            records = self.topic[partition]
            records.append((key, LastRecord(record.row, partition, len(records), record.tombstone, record.place)))

    def _send_late(self) -> None:
        for number, queue in enumerate(self._queues):
            while queue and queue[0][0] <= self.now - _LATEST_SECONDS:
                self._send(number)

    def _die(self) -> None:
        waiting = self._waiting()
        if not self._snapshot and -1 not in waiting:
            self._commit(min(waiting, default=self._read))
            self._queues = [[] for _ in range(PARTITIONS)]
            self._read = self._committed

    def _waiting(self) -> list[int]:
        """Return the changes whose records wait; -1 for a row of the snapshot."""
        return [at for queue in self._queues for _, at, _, _ in queue]

    def _commit(self, sent: int) -> None:
        """Commit a place before the change `sent`, at the begin of a transaction, and not before the last place."""
        begins = [at for at, each in enumerate(self.log) if at == 0 or each.number != self.log[at - 1].number]
        possible = [at for at in begins if self._committed <= at <= sent]
        self._committed = self.rng.choice(possible) if possible else self._committed

    @property
    def snapshot_place(self) -> RowPlace:
        """Return the place that the rows of the snapshot name."""
        return self._snapshot_place


class ModelTopic:
    """The topic up to its ends at one moment."""

    def __init__(self, world: World) -> None:
        self._records = [list(each) for each in world.topic]
        self._snapshot = world.snapshot_place
        self._delivered = world.delivered

    def record(self, key: TopicKey) -> LastRecord | None:
        return next((record for each, record in reversed(self._records[partition_of(key)]) if each == key), None)

    def reached(self, key: TopicKey) -> Reached:
        own, others = self._places(partition_of(key)), self._places(1 - partition_of(key))
        read = [self._snapshot] if any(self._records) else []
        strong = [place for place in (reached_by(own), self._delivered) if place is not None]
        return Reached(max(strong, default=None), max([*others, *read], default=None))

    def _places(self, partition: int) -> list[RowPlace]:
        return [record.place for _, record in self._records[partition] if record.place is not None]


class ModelSides:
    """The sides of `settle`, in the world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _goes_on(self) -> None:
        for _ in range(self.world.rng.randint(0, 6)):
            self.world.step()

    def low(self) -> Low:
        self._goes_on()
        executed = self.world.executed
        self._goes_on()
        gtids = GtidSet.parse(f"{_UUID}:1-{executed}") if executed else GtidSet()
        return Low(gtids, self.world.end_place())

    def select(self, keys: Collection[TopicKey]) -> Mapping[TopicKey, bytes]:
        rows = {}
        for key in keys:
            self._goes_on()
            if (row := self.world.row_at(key, self.world.visible)) is not None:
                rows[key] = row
        return rows

    def topic(self, keys: Collection[TopicKey]) -> ModelTopic:
        self._goes_on()
        return ModelTopic(self.world)

    def high(self) -> RowPlace:
        self._goes_on()
        return self.world.end_place()

    def executed_end(self) -> RowPlace:
        """Return the end of what is executed, which is no high watermark."""
        return self.world.executed_place()

    def events(self, low: Low, since: RowPlace, high: RowPlace, keys: Collection[TopicKey]) -> Events:
        executed = sum(last for _, spans in low.executed for _, last in spans)
        last: dict[TopicKey, RowPlace] = {}
        due: dict[TopicKey, RowPlace] = {}
        changed = set()
        statement = self._statement(executed)
        for each in self.world.log:
            # Whole transactions are read: those that are not executed, and those that begin at `since` or later.
            is_read = each.number > executed or (each.begin + 10 > since.pos and each.begin >= statement.pos)
            if each.key in keys and each.begin < high.pos and is_read:
                last[each.key] = each.place
                due.pop(each.key, None)
                if (later := due_of(each)) is not None:
                    due[each.key] = later
                changed |= {each.key} if each.number > executed else set()
        return Events(since, last, due, changed, begins={TOPIC: statement} if statement > since else {})

    def _statement(self, executed: int) -> RowPlace:
        """Return the place before which rows cannot be read: mostly the begin of the log, else some transaction.

        `executed`: number of the last transaction that the place may have.
        """
        begins = [each.begin for each in self.world.log if each.number <= executed and each.key in KEYS]
        return RowPlace(1, self.world.rng.choice(begins) if begins and self.world.rng.random() < 0.3 else 0)


def live(rng: random.Random, *, faults: bool) -> None:
    """Compare some times while the world goes on, and once at its end. Raise Violation for a wrong answer."""
    world = World(rng, faults=faults)
    sides = ModelSides(world)
    for _ in range(3):
        for _ in range(rng.randint(0, 10)):
            world.step()
        _compare(world, sides)
    world.end()
    outcomes = _compare(world, sides)
    for key, outcome in outcomes.items():
        record = ModelTopic(world).record(key)
        is_equal = (record.row if record else None) == world.row_at(key, world.written)
        proved = outcome.judgement.verdict is (Verdict.EQUAL if is_equal else Verdict.DIFFERENT)
        if not proved or outcome.unproved:
            raise Violation("missed", f"{key} {outcome}")


def _compare(world: World, sides: ModelSides) -> dict[TopicKey, rounds.Outcome]:
    outcomes = rounds.settle(sides, KEYS, LIMITS, clock=lambda: world.now, sleep=world.rest)
    for key, outcome in outcomes.items():
        if outcome.unproved:
            continue
        executed = sum(last for _, spans in outcome.low.executed for _, last in spans)
        record = outcome.record
        if outcome.judgement.verdict is Verdict.DIFFERENT and key not in world.faulty:
            raise Violation("false alarm", f"{key} {outcome}")
        shown = record.row if record else None
        if outcome.judgement.verdict is Verdict.EQUAL and shown != world.row_at(key, executed):
            raise Violation("wrong equal", f"{key} {outcome}")
    return outcomes
