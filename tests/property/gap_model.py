"""A model of a server, a job and a topic, in which a job begins again behind a gap and closes it.

An old job has left a topic. Then its binlog is purged, or an older backup of the server is restored, whose GTIDs are
used again. A new job begins, streams, compares and repairs, while the server goes on. A second server reads late. The
driver may die at any moment, and its successor goes on with what is beside the checkpoint and in the offset.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from incsnap.verify import gap_rules
from incsnap.verify.proof import LastRecord, RowPlace, TopicKey

TOPIC = "t"
PARTITIONS = 2
KEYS: list[TopicKey] = [(TOPIC, b"%d" % number) for number in range(4)]
#: Rules of the job that a mutant leaves out.
RULES = ("fence first", "begin first", "wait", "keep lists", "compare anew", "discard")


class Violation(AssertionError):
    """A wrong end: lost, back in time or needless."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def partition_of(key: TopicKey) -> int:
    """Return the partition of a key."""
    return int(key[1]) % PARTITIONS


@dataclass
class Window:
    """A window over a list of keys."""

    low: int  #: transactions that its SELECT sees at least
    keys: list[TopicKey]
    rows: dict[TopicKey, bytes | None] | None = None  #: None: not read yet
    high: int = 0  #: transactions of the log behind the SELECT


@dataclass
class Offset:
    """The offset of the job, and what lies beside it."""

    start: int  #: transactions that the job has begun behind
    delivered: int
    taken: int = 0  #: how many lists have become windows
    windows: list[Window] = field(default_factory=list)
    lists: list[set[TopicKey]] = field(default_factory=list)  #: files, written before they are taken
    is_compared: bool = False  #: file that says that the comparison is complete


class World:
    """The server, the job and the topic. `without`: the rules that the job lacks."""

    def __init__(self, rng: random.Random, without: Sequence[str] = (), *, calm: bool = False) -> None:
        self.rng, self._without, self._calm = rng, set(without), calm
        self._version = 0
        self.log: list[tuple[TopicKey, bytes | None]] = []
        #: rows below the first transaction of the log, for a server that was restored
        self.base: dict[TopicKey, bytes] = {}
        self.visible = self.executed = self.late = 0
        self.topic: list[list[tuple[TopicKey, LastRecord]]] = [[] for _ in range(PARTITIONS)]
        #: a record in the open transaction of an old producer, which can still be committed
        self._zombie: tuple[TopicKey, bytes | None] | None = None
        #: the old job's, which has delivered nothing
        self.offset = Offset(0, 0)
        self._gap()
        self._begin_again()
        if rng.random() < 0.3 and not calm:
            for _ in range(rng.randint(0, 40)):
                self.step()
            self._gap()
            self._begin_again()

    # -- the server

    def row_at(self, key: TopicKey, number: int) -> bytes | None:
        """Return the row of `key` behind the first `number` transactions."""
        changes = (row for changed, row in reversed(self.log[:number]) if changed == key)
        return next(changes, self.base.get(key))

    def _write(self) -> None:
        key = self.rng.choice(KEYS)
        self._version += 1
        exists = self.row_at(key, len(self.log)) is not None
        row = None if exists and self.rng.random() < 0.4 else b"%s/%d" % (key[1], self._version)
        self.log.append((key, row))

    def _gap(self) -> None:
        """Let the old job end, and let changes happen that no binlog has any more."""
        begin = self.offset.delivered
        for _ in range(self.rng.randint(0, 6)):
            self._write()
        sent = self.rng.randint(begin, len(self.log))
        for number in range(begin, sent):
            self._send(*self.log[number], number)
        if sent < len(self.log) and self.rng.random() < 0.5:
            self._zombie = self.log[sent]
        if self.rng.random() < 0.4:
            kept = self.rng.randint(0, len(self.log))
            rows = {key: self.row_at(key, kept) for key in KEYS}
            self.base, self.log = {key: row for key, row in rows.items() if row is not None}, []
            # The restored server uses the numbers of the lost transactions again.
            for _ in range(kept):
                self.log.append(((TOPIC, b"-1"), None))
        for _ in range(self.rng.randint(0, 5)):
            self._write()
        self.visible = self.executed = len(self.log)
        self.late = self.rng.randint(0, self.executed)

    def _go_on(self) -> None:
        what = self.rng.randint(0, 4)
        if what <= 1 and not self._calm:
            self._write()
        elif what == 2:
            self.visible = min(len(self.log), self.visible + 1)
        elif what == 3:
            self.executed = min(self.visible, self.executed + 1)
        self.late = self.rng.randint(self.late, self.executed)

    # -- the job

    def _begin_again(self) -> None:
        start = len(self.log) if "begin first" in self._without else self.executed
        is_compared = "compare anew" in self._without and self.offset.is_compared
        self.offset = Offset(start, start, is_compared=is_compared)
        self.ends = [len(each) for each in self.topic]
        self._fenced = False
        self._compares = self._compare()

    def _fence(self) -> None:
        self._zombie = None

    def _compare(self) -> Generator[None]:
        """Compare, and write the list of keys. Each step may be the last one."""
        if self.offset.is_compared:
            return
        sides = ModelSides(self)
        if "fence first" not in self._without:
            self._fence()
        seam = sides.seam()
        yield
        if "fence first" in self._without:
            if self._zombie is not None:
                self._send(*self._zombie, 0)
            self._fence()
        rows: dict[TopicKey, bytes] = {}
        for key in KEYS:
            yield
            if (row := sides.row(key)) is not None:
                rows[key] = row
        yield
        records = sides.records()
        keys = gap_rules.differing(Seen(seam, rows, records))
        yield
        if "begin first" in self._without:
            # The stream begins behind the comparison: what lies between is not sent.
            self.offset.delivered = max(self.offset.delivered, self.executed)
        self.offset.lists.append(keys)
        yield
        self.offset.is_compared = True

    def step(self) -> None:
        """Let something happen."""
        what = self.rng.randint(0, 9)
        if what <= 3:
            self._go_on()
        elif what <= 5:
            self._batch()
        elif what <= 8:
            next(self._compares, None)
        elif self.rng.random() < 0.3 and not self._calm:
            self._die()

    def _die(self) -> None:
        if "keep lists" in self._without and len(self.offset.lists) > self.offset.taken:
            self.offset.lists = self.offset.lists[: self.offset.taken]
            self.offset.is_compared = True
        if not self.offset.is_compared:
            # A list that was written without the word that all is compared is compared again.
            self._compares = self._compare()

    def _batch(self) -> None:
        """Send what the log has, release windows, and take a list."""
        offset, before = self.offset, self.offset.delivered
        offset.delivered = self.rng.randint(before, len(self.log))
        for number in range(before, offset.delivered):
            self._send(*self.log[number], number)
        for window in list(offset.windows):
            if window.rows is None:
                if self.visible >= window.low and self.rng.random() < 0.6:
                    seen = self.rng.randint(window.low, self.visible)
                    window.rows = {key: self.row_at(key, seen) for key in window.keys}
                    window.high = len(self.log)
            elif offset.delivered >= window.high:
                overtaken = {key for key, _ in self.log[window.low : offset.delivered]}
                for key, row in window.rows.items():
                    if key not in overtaken or "discard" in self._without:
                        self._send(key, row, None)
                offset.windows.remove(window)
        if offset.taken < len(offset.lists):
            offset.windows.append(Window(offset.delivered, sorted(offset.lists[offset.taken])))
            offset.taken += 1

    def _send(self, key: TopicKey, row: bytes | None, number: int | None) -> None:
        if key in KEYS:
            records = self.topic[partition_of(key)]
            place = None if number is None else RowPlace(1, number)
            records.append((key, LastRecord(row, partition_of(key), len(records), row is None, place)))

    # -- the end

    def end(self) -> int:
        """Let all come to an end, check it, and return how many records were sent behind the gap."""
        for _ in range(10):
            next(self._compares, None)
        self._compares = self._compare()
        for _ in self._compares:
            pass
        self.visible = self.executed = self.late = len(self.log)
        while self.offset.windows or self.offset.taken < len(self.offset.lists) or self._is_behind():
            self._batch()
        for key in KEYS:
            records = [each for each in self.topic[partition_of(key)] if each[0] == key]
            shown = records[-1][1].row if records else None
            if shown != self.row_at(key, len(self.log)):
                raise Violation("lost", f"{key} shows {shown!r}, the table has {self.row_at(key, len(self.log))!r}")
            new = [each.row for _, each in records if each.offset >= self.ends[partition_of(key)]]
            versions = [self._version_of(key, row) for row in new]
            if any(before is not None and now is not None and before > now for before, now in pairwise(versions)):
                raise Violation("back in time", f"{key}: {new}")
        return sum(len(each) for each in self.topic) - sum(self.ends)

    def _is_behind(self) -> bool:
        return self.offset.delivered < len(self.log)

    def _version_of(self, key: TopicKey, row: bytes | None) -> int | None:
        return None if row is None else int(row.rpartition(b"/")[2])


@dataclass
class Seen:
    """The sides of `differing`, read already."""

    ends: gap_rules.Seam
    read: Mapping[TopicKey, bytes]
    last: Mapping[TopicKey, Sequence[LastRecord]]

    def seam(self) -> gap_rules.Seam:
        return self.ends

    def rows(self) -> Mapping[TopicKey, bytes]:
        return self.read

    def records(self) -> Mapping[TopicKey, Sequence[LastRecord]]:
        return self.last


class ModelSides:
    """The reads of a comparison, in the world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def seam(self) -> gap_rules.Seam:
        return {(TOPIC, number): len(each) for number, each in enumerate(self.world.topic)}

    def row(self, key: TopicKey) -> bytes | None:
        world = self.world
        if "wait" not in world._without:
            world.late = max(world.late, world.offset.start)
        return world.row_at(key, world.rng.choice([world.late, max(world.late, world.visible)]))

    def records(self) -> Mapping[TopicKey, Sequence[LastRecord]]:
        last: dict[TopicKey, LastRecord] = {}
        for each in self.world.topic:
            last.update(each)
        return {key: [record] for key, record in last.items()}


def live(rng: random.Random, without: Sequence[str] = ()) -> None:
    """Let a job close a gap while the world goes on. Raise Violation for a wrong end."""
    world = World(rng, without)
    for _ in range(rng.randint(5, 60)):
        world.step()
    world.end()


def live_calmly(rng: random.Random) -> None:
    """Let a job close a gap while nobody writes. Raise Violation if it sends a key that is the same."""
    world = World(rng, calm=True)
    shown = {key: next((r.row for k, r in reversed(world.topic[partition_of(key)]) if k == key), None) for key in KEYS}
    changed = sum(shown[key] != world.row_at(key, len(world.log)) for key in KEYS)
    for _ in range(rng.randint(5, 60)):
        world.step()
    if (sent := world.end()) != changed:
        raise Violation("needless", f"{sent} records for {changed} keys")
