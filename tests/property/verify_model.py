"""A model of a server, a connector and a topic, in which `incsnap verify` compares while all of them go on.

A transaction changes one key. It is written to the log, then visible, then executed. The connector reads the log up to
what is written. Its records wait in a queue for each partition, and no queue waits for another one. The connector may
die: its queues are lost, and it begins again at an older place. At first it takes a snapshot.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

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


def place_of(number: int) -> RowPlace:
    """Return the place of transaction `number`, counted from 1."""
    return RowPlace(1, number * 10)


class World:
    """The server, the connector and the topic."""

    def __init__(self, rng: random.Random, *, faults: bool) -> None:
        self.rng, self.now, self._faults = rng, 0.0, faults
        #: (key, row) of each transaction; its number is its place in the list plus 1
        self.log: list[tuple[TopicKey, bytes | None]] = []
        self.visible = self.executed = 0
        self.faulty: set[TopicKey] = set()
        self.topic: list[list[tuple[TopicKey, LastRecord]]] = [[] for _ in range(PARTITIONS)]
        self._queues: list[list[tuple[float, TopicKey, LastRecord]]] = [[] for _ in range(PARTITIONS)]
        self._version = 0
        self._is_over = False
        self._lost: dict[int, str] = {}
        for key in KEYS:
            if rng.random() < 0.7:
                self._write(key)
        self.visible = self.executed = self._read = self._committed = len(self.log)
        self._snapshot = [key for key in KEYS if self.row_at(key, self.executed) is not None]
        self._snapshot_place = place_of(self.executed)

    def row_at(self, key: TopicKey, number: int) -> bytes | None:
        """Return the row of `key` behind the first `number` transactions."""
        return next((row for changed, row in reversed(self.log[:number]) if changed == key), None)

    def step(self) -> None:
        """Let something happen."""
        rng = self.rng
        what = rng.randint(2 if self._is_over else 0, 8 if self._is_over else 9)
        if what <= 1:
            self._write(rng.choice(KEYS))
        elif what <= 3:
            self.visible = min(len(self.log), self.visible + 1)
        elif what == 4:
            self.executed = min(self.visible, self.executed + 1)
        elif what <= 6:
            self._connect()
        elif what <= 8:
            self._send(rng.randrange(PARTITIONS))
        elif rng.random() < 0.1:
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
        for number in range(PARTITIONS):
            self._write((TOPIC, b"%d" % (100 + number)))
        self.visible = self.executed = len(self.log)
        while self._snapshot or self._read < len(self.log):
            self._connect()
        for number in range(PARTITIONS):
            while self._queues[number]:
                self._send(number)

    def _write(self, key: TopicKey) -> None:
        self._version += 1
        exists = self.row_at(key, len(self.log)) is not None
        row = None if exists and self.rng.random() < 0.3 else b"%s/%d" % (key[1], self._version)
        self.log.append((key, row))

    def _connect(self) -> None:
        if self._snapshot:
            key = self._snapshot.pop(0)
            row = self.row_at(key, self._committed)
            self._queue(key, LastRecord(row, 0, 0, place=None))
        elif self._read < len(self.log):
            self._read += 1
            key, row = self.log[self._read - 1]
            if self._faults and key in KEYS and self._read not in self._lost:
                self._lost[self._read] = self.rng.choice(["", "", "lost", "altered"])
            fault = self._lost.get(self._read, "")
            if fault:
                self.faulty.add(key)
            if fault != "lost":
                row = row + b"!" if fault and row is not None else row
                self._queue(key, LastRecord(row, 0, 0, row is None, place_of(self._read)))

    def _queue(self, key: TopicKey, record: LastRecord) -> None:
        self._queues[partition_of(key)].append((self.now, key, record))

    def _send(self, partition: int) -> None:
        if self._queues[partition]:
            _, key, record = self._queues[partition].pop(0)
            records = self.topic[partition]
            records.append((key, LastRecord(record.row, partition, len(records), record.tombstone, record.place)))

    def _send_late(self) -> None:
        for number, queue in enumerate(self._queues):
            while queue and queue[0][0] <= self.now - _LATEST_SECONDS:
                self._send(number)

    def _die(self) -> None:
        if not self._snapshot and not any(record.place is None for each in self._queues for _, _, record in each):
            sent = [record.place for each in self.topic for _, record in each if record.place is not None]
            waiting = [record.place for each in self._queues for _, _, record in each if record.place is not None]
            # It has committed no more than what was sent in all partitions.
            least = min(waiting, default=max(sent, default=place_of(self._committed + 1))).pos // 10 - 1
            self._committed = max(self._committed, self.rng.randint(self._committed, max(self._committed, least)))
            self._queues = [[] for _ in range(PARTITIONS)]
            self._read = min(self._read, self._committed)

    @property
    def snapshot_place(self) -> RowPlace:
        """Return the place that the rows of the snapshot name."""
        return self._snapshot_place


class ModelTopic:
    """The topic up to its ends at one moment."""

    def __init__(self, world: World) -> None:
        self._records = [list(each) for each in world.topic]
        self._snapshot = world.snapshot_place

    def record(self, key: TopicKey) -> LastRecord | None:
        return next((record for each, record in reversed(self._records[partition_of(key)]) if each == key), None)

    def reached(self, key: TopicKey) -> Reached:
        own, others = self._places(partition_of(key)), self._places(1 - partition_of(key))
        read = [self._snapshot] if any(self._records) else []
        return Reached(reached_by(own), max([*others, *read], default=None))

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
        numbers = {(_UUID, ""): [(1, executed)]} if executed else {}
        return Low(GtidSet.parse(f"{_UUID}:1-{executed}") if numbers else GtidSet(), place_of(len(self.world.log) + 1))

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
        return place_of(len(self.world.log) + 1)

    def executed_end(self) -> RowPlace:
        """Return the end of what is executed, which is no high watermark."""
        return place_of(self.world.executed + 1)

    def events(self, low: Low, since: RowPlace, high: RowPlace, keys: Collection[TopicKey]) -> Events:
        executed = sum(last for _, spans in low.executed for _, last in spans)
        last: dict[TopicKey, RowPlace] = {}
        changed = set()
        for number, (key, _) in enumerate(self.world.log, 1):
            place = place_of(number)
            if key in keys and place < high and (number > executed or place >= since):
                last[key] = place
                changed |= {key} if number > executed else set()
        return Events(since, last, changed)


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
        is_equal = (record.row if record else None) == world.row_at(key, len(world.log))
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
