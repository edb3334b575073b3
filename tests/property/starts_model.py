"""A model of several starts of one `topic.prefix` around a modelled Kafka.

Each start is a thread. One thread runs at a time, and gives its turn away at every call of Kafka. So a start may be
frozen between any two calls, while others begin, take over, end or are killed, and may go on later. Its tasks may
outlive it. The steps of a start, the rules of ownership, looks, fences, batch numbers and the place of a hand-over are
the product's code. Kafka, checkpoints and the changes that a job sends are modelled.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from confluent_kafka import KafkaError

from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.errors import SinkError
from incsnap.kafka import announcements, transaction
from incsnap.kafka.announcements import (
    ALIVE_SECONDS,
    BEAT_SECONDS,
    WATCH_SECONDS,
    Announcement,
    OwnStart,
    PrefixTaken,
    StartFacts,
)
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import CommittedBatch
from incsnap.kafka.producer_cache import ProducerCache
from incsnap.kafka.refusals import ClientError, SinkRefused
from incsnap.kafka.transaction import BucketWriter
from incsnap.planner import start_steps, where_ended
from incsnap.planner.where_ended import EndedJob

#: Partitions of the topic. A key never leaves its partition. Partition n is in bucket n modulo the number of buckets.
PARTITIONS = 4
#: Most seconds of real time for a turn of a thread.
_TURN_SECONDS = 60.0


class Violation(AssertionError):
    """An error: a consumer has seen what it must never see. `kind` is "twice", "lost" or "stuck"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Died(BaseException):
    """The end of a process: none of its code runs any more."""


@dataclass
class Checkpoint:
    """A checkpoint folder."""

    name: str
    starts: tuple[str, ...] = ()  #: ids of the starts that used it, newest first
    job: str = ""  #: id of its job; "": none yet
    buckets: int = 0
    #: First change of batch 1.
    base: int = 0
    #: Planned batch -> its end, exclusive.
    ends: dict[int, int] = field(default_factory=dict)
    #: The newest batch that is committed in all buckets.
    done: int = 0
    holder: Start | None = None  #: start that has the folder's lock

    def begin_of(self, batch: int) -> int:
        """Return the first change of a batch."""
        return self.ends.get(batch - 1, self.base)

    def new_job(self, job: str, buckets: int, base: int) -> None:
        """Begin a job."""
        self.job, self.buckets, self.base, self.ends, self.done = job, buckets, base, {}, 0


class Producer:
    """A producer in the process of `start`."""

    refused = None
    has_lost_answers = False
    waiting = 0
    too_large = ()

    def __init__(self, start: Start, name: str) -> None:
        self._start, self._world, self._name = start, start.world, name
        self._epoch = -1
        self._sent: list[int] = []
        self._number: tuple[str, int, CommittedBatch] | None = None
        self._place: Any = None

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None: ...

    def init_transactions(self, _seconds: float) -> None:
        """Fence all other producers of this transactional id."""
        self._start.pause()
        self._epoch = self._world.epochs[self._name] = self._world.epochs.get(self._name, 0) + 1
        self._start.pause()

    def begin(self) -> None:
        """Begin a transaction."""
        self._sent, self._place = [], None

    def send_offset(self, _topic: str, partition: int, offset: int, metadata: str, group: str, _seconds: float) -> None:
        """Send the batch number."""
        self._start.pause()
        self._refuse_fenced()
        self._number = group, partition, CommittedBatch(offset, metadata)

    def send(self, _topics: object, records: Any, *_: Any) -> None:
        """Send the changes, which are numbers."""
        self._sent += records

    def send_one(self, _topic: str, _partition: int, _key: bytes, _value: bytes) -> None:
        """Ignore the control record: `commit` takes its contents from the start."""

    def commit(self, _seconds: float) -> None:
        """Commit the transaction. Raise ClientError if the producer is fenced."""
        self._start.pause()
        self._refuse_fenced()
        assert self._number is not None
        group, bucket, number = self._number
        job = group.rsplit("-", 1)[1]
        self._world.numbers[job, bucket] = replace(number, place=self._start.place_of(number.batch, job))
        for change in self._sent:
            self._world.append(change, self._start)
        self._start.pause()

    def abort(self, _seconds: float) -> None:
        """Do nothing: `begin` forgets what was sent."""

    def close(self) -> None:
        """Do nothing: the model holds only memory."""

    def _refuse_fenced(self) -> None:
        if self._world.epochs[self._name] != self._epoch:
            raise ClientError(KafkaError._FENCED, "there is a newer producer of this name", fatal=True)


class Start:
    """A start of the job, as a thread. `replace`: whether it was started with `--replace-job`."""

    def __init__(self, world: World, checkpoint: Checkpoint, *, replace: bool) -> None:
        self.world = world
        self.checkpoint = checkpoint
        self.replace = replace
        self.id = f"s{len(world.starts)}"
        #: The reason why it has ended; "" while it runs.
        self.outcome = ""
        self.frozen_until = 0.0
        #: The start was killed. With `outlives`, a task of it still runs.
        self.killed = False
        self.outlives = False
        self._in_task = False
        self._places: dict[tuple[str, int], Any] = {}
        self._announcement: Announcement | None = None
        #: The producers of two workers.
        self._kept = [ProducerCache(), ProducerCache()]
        self._turn = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    # -- turns

    def take_turn(self) -> None:
        """Run the thread until it gives its turn back. The scheduler calls this."""
        self._turn.release()
        assert self.world.turn.acquire(timeout=_TURN_SECONDS)

    def pause(self) -> None:
        """Give the turn back, and wait for the next one. Raise Died if the process was killed meanwhile."""
        producers = transaction.PRODUCERS
        self.world.turn.release()
        assert self._turn.acquire(timeout=10 * _TURN_SECONDS)
        transaction.PRODUCERS = producers
        self.world.running = self
        if self.killed and not self.outlives:
            raise Died

    def kill(self, *, outlives: bool) -> None:
        """End the process. `outlives`: its running task, if there is one, goes on."""
        self.killed, self.outlives = True, outlives and self._in_task
        if self.checkpoint.holder is self:
            self.checkpoint.holder = None

    def _live(self) -> None:
        assert self._turn.acquire(timeout=10 * _TURN_SECONDS)
        self.world.running = self
        try:
            self._run()
        except (PrefixTaken, SinkRefused) as refused:
            self.outcome = refused.message
        except Died:
            self.outcome = "killed"
        except BaseException as error:  # noqa: BLE001 - the scheduler raises it
            self.world.broken, self.outcome = error, "broken"
        if self.checkpoint.holder is self:
            self.checkpoint.holder = None
        self.world.turn.release()

    # -- a start, in order

    def _run(self) -> None:
        if self.checkpoint.holder is not None:
            raise PrefixTaken("the checkpoint is locked")
        self.checkpoint.holder = self
        while True:
            try:
                self._begin()
            except SinkRefused:
                raise
            except SinkError:  # for example, Kafka is away for a moment
                self.id += "+"
            else:
                break
        while not (self.world.is_ending and self.checkpoint.ends.get(self.checkpoint.done) == len(self.world.changes)):
            self._beat()
            self._batch()
        self._beat(ended=True)
        self.outcome = "done"

    def _begin(self) -> None:
        world, checkpoint = self.world, self.checkpoint
        own = self._own_checkpoint()
        facts = StartFacts(self.id, checkpoint=own.location, lock=own.lock)
        start_steps.own_the_prefix(self, own, facts, replace_job=self.replace)
        if not checkpoint.job:
            checkpoint.new_job(world.new_job(), world.random.choice((1, 2, 4)), len(world.changes))
            world.begun_anew = len(world.changes)
        assert self._announcement is not None
        self.announce(self._announcement.begun(checkpoint.job, checkpoint.buckets))

    def _own_checkpoint(self) -> OwnCheckpoint:
        checkpoint = self.checkpoint
        newest = max(checkpoint.ends, default=0)
        return OwnCheckpoint(checkpoint.name, checkpoint.name, checkpoint.starts, checkpoint.job, newest)

    # -- the steps of a start (`StartPort`)

    def current_owner(self) -> Announcement | None:
        """Return the owner of the prefix."""
        return self.world.owner()

    def owner_before(self) -> Announcement | None:
        """Return the owner before this start announced itself."""
        own = itertools.takewhile(lambda each: each.facts.start != self.id, self.world.log)
        return announcements.owner_after(None, own)

    def earlier_buckets(self) -> int:
        """Return 0: no older release has written to this topic."""
        return 0

    def state(self, buckets: int, *, fenced: bool) -> _State:
        """Return the answers to the questions of the rules, before or after the fence."""
        return _Fenced(self) if fenced else _State(self)

    def keep_start(self, start: str, before: Sequence[str]) -> None:
        """Write the start's id into the checkpoint."""
        self.checkpoint.starts = (start, *before)

    def announce(self, what: Announcement, *, ended: bool = False) -> None:
        """Write an announcement."""
        self.pause()
        facts = replace(what.facts, beat_ms=round(self.world.now * 1000), ended=ended)
        self._announcement = replace(what, facts=facts)
        self.world.log.append(self._announcement)
        self.pause()

    def fence(self, buckets: int) -> None:
        """Fence all other producers in each bucket."""
        for bucket in range(buckets):
            self._writer("").fence(bucket)

    def hand_over(self, jobs: Sequence[StartFacts], _buckets: int) -> EndedJob | None:
        """Return where the newest of `jobs` with delivered batches has ended."""
        records = self.world.records_of
        return where_ended.where_ended(jobs, records, lambda place: place["buckets"], self._own_checkpoint())

    def take_over(self, place: EndedJob) -> None:
        """Begin a job at the place where another one has ended."""
        where: Any = place.place
        begin = where["from"] if place.sent else where["to"]
        self.checkpoint.new_job(self.world.new_job(), where["buckets"], begin)
        if place.sent:
            self.checkpoint.ends[1] = where["to"]
            self.mark_as_sent(place.sent)

    def mark_as_sent(self, buckets: Sequence[int]) -> None:
        """Commit the first batch, without changes, in the buckets that have its records already."""
        for bucket in buckets:
            self._send(self._written(1), bucket, 1, [])

    # -- batches

    def _batch(self) -> None:
        """Send the next batch. Plan it first, unless it is planned already."""
        checkpoint, world = self.checkpoint, self.world
        batch = checkpoint.done + 1
        if batch not in checkpoint.ends:
            begin = checkpoint.begin_of(batch)
            self.pause()
            checkpoint.ends[batch] = world.random.randint(begin, len(world.changes))
            self.pause()
        begin, end = checkpoint.begin_of(batch), checkpoint.ends[batch]
        for bucket in world.random.sample(range(checkpoint.buckets), checkpoint.buckets):
            changes = [number for number in range(begin, end) if world.changes[number] % checkpoint.buckets == bucket]
            if changes:
                self._task(bucket, batch, changes)
        checkpoint.done = batch

    def _task(self, bucket: int, batch: int, changes: list[int]) -> None:
        """Run the task of a bucket, and repeat it as Spark does."""
        job = self._written(batch)
        for _ in range(20):
            try:
                transaction.PRODUCERS = self.world.random.choice(self._kept)
                self._in_task = True
                self._send(job, bucket, batch, changes)
            except SinkRefused:
                raise
            except SinkError:
                self.pause()
                continue
            finally:
                self._in_task = False
                self.outlives = False
            if self.killed:
                raise Died
            return
        raise SinkRefused("fenced for ever")

    def _written(self, batch: int) -> str:
        """Keep the place of a batch, which a task gets, and return the job."""
        checkpoint = self.checkpoint
        begin, end = checkpoint.begin_of(batch), checkpoint.ends[batch]
        self._places[checkpoint.job, batch] = {"from": begin, "to": end, "buckets": checkpoint.buckets}
        return checkpoint.job

    def _send(self, job: str, bucket: int, batch: int, changes: list[int]) -> None:
        digest = f"1:{self._places[job, batch]['to']}"
        opened: Any = self._writer(job).open(bucket, batch, digest)
        if opened is not None:
            with opened:
                if changes:
                    opened.send([("t", len(changes))], changes)
                opened.commit()

    def place_of(self, batch: int, job: str) -> Any:
        """Return the place in the control record of a batch."""
        return self._places[job, batch]

    def _writer(self, job: str) -> BucketWriter:
        own = self._announcement
        assert own is not None
        return BucketWriter(ClientSettings("modelled:9092"), "t", job, OwnStart(self.id, own.term))

    def _beat(self, *, ended: bool = False) -> None:
        """Look for another owner and announce the start again, if a beat is due."""
        own, checkpoint = self._announcement, self.checkpoint
        assert own is not None
        if ended or self.world.now - own.facts.beat_ms / 1000 >= BEAT_SECONDS:
            announcements.refuse_another(self.current_owner(), OwnStart(self.id, own.term))
            place = {"batch": checkpoint.done, "to": checkpoint.begin_of(checkpoint.done + 1)}
            if checkpoint.done:
                own = replace(own, facts=replace(own.facts, place={**place, "buckets": checkpoint.buckets}))
            self.announce(own, ended=ended)


class _State:
    """The answers of Kafka that the rules ask for before the start announces itself."""

    def __init__(self, start: Start) -> None:
        self._start, self._world = start, start.world

    def is_alive(self, owner: Announcement, *, wait: bool) -> bool:
        """Whether the owner still beats."""
        world, facts = self._world, owner.facts
        young = facts.beat_ms / 1000 + ALIVE_SECONDS - world.now
        if facts.ended or (young > 0 and not wait):
            return not facts.ended
        deadline = world.now + max(WATCH_SECONDS, young)
        while world.now < deadline:
            now = world.owner()
            if now is None or now.facts.ended:
                return False
            if now.facts != facts:
                return True
        return False

    def delivered(self, job: StartFacts) -> int | None:
        """Return the newest batch that the job has committed in any bucket, or None."""
        self._start.pause()
        return max((each.batch for (name, _), each in self._world.numbers.items() if name == job.job), default=None)

    def has_records(self) -> bool:
        """Whether any job has committed a batch."""
        return bool(self._world.numbers)


class _Fenced(_State):
    """The answers of Kafka after the fence."""

    def is_alive(self, owner: Announcement, *, wait: bool) -> bool:
        """Return False: a fenced owner can deliver nothing any more."""
        return False


class World:
    """A run of the model, chosen by its seed: Kafka, the binlog, the clock and all starts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.turn = threading.Semaphore(0)
        #: The start whose thread runs now.
        self.running: Start
        self.broken: BaseException | None = None
        self.log: list[Announcement] = []
        self.epochs: dict[str, int] = {}
        self.numbers: dict[tuple[str, int], CommittedBatch] = {}
        #: Partition of each change in the binlog.
        self.changes: list[int] = []
        #: The changes that a consumer sees in each partition.
        self.seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
        #: First change of the last job that continued no other job. Earlier changes may be lost.
        self.begun_anew = 0
        self.starts: list[Start] = []
        self.checkpoints = [Checkpoint("c0")]
        self.is_ending = False
        self._jobs = 0

    # -- Kafka

    def producer(self, settings: dict[str, str]) -> Producer:
        """Replace `TransactionalProducer`."""
        return Producer(self.running, settings["transactional.id"])

    def committed_batch(self, _settings: object, _prefix: str, job: str, bucket: int, _s: float) -> Any:
        """Replace `kafka.control.committed_batch`."""
        number = self.numbers.get((job, bucket))
        self.running.pause()
        return number

    def owner(self, _seconds: float = 0) -> Announcement | None:
        """Replace `AnnouncementLog.owner`."""
        self.running.pause()
        owner = announcements.owner_after(None, self.log)
        self.running.pause()
        return owner

    def records_of(self, job: StartFacts) -> dict[int, CommittedBatch]:
        """Return bucket -> last committed batch of the job."""
        return {bucket: each for (name, bucket), each in sorted(self.numbers.items()) if name == job.job}

    def append(self, change: int, start: Start) -> None:
        """Show a change to the consumer. Raise Violation if the consumer has seen it, or a later one."""
        seen = self.seen[self.changes[change]]
        if seen and seen[-1] >= change:
            who = f"{start.id} on {start.checkpoint.name}"
            raise Violation("twice", f"{who} sent change {change} behind {seen[-1]}")
        seen.append(change)

    def new_job(self) -> str:
        """Return a new job id."""
        self._jobs += 1
        return f"j{self._jobs}"

    # -- the run

    def run(self, steps: int = 400) -> None:
        """Let starts come and go, then let one deliver everything. Raise Violation if a change is missing."""
        with self._patched():
            try:
                for _ in range(steps):
                    self._any_step()
                self._end()
            finally:
                for start in self.starts:
                    start.kill(outlives=False)
                    while not start.outcome:
                        start.take_turn()
        for partition, seen in enumerate(self.seen):
            missing = {number for number, where in enumerate(self.changes) if where == partition}
            lost = [number for number in missing - set(seen) if number >= self.begun_anew]
            if lost:
                raise Violation("lost", f"changes {sorted(lost)[:9]}")

    def _end(self) -> None:
        """Wake all starts. A last start takes over and delivers the rest."""
        self.is_ending = True
        for start in self.starts:
            start.frozen_until = 0
        last = self.start(self.random.choice(self.checkpoints), replace=True)
        for _ in range(20_000):
            if last.outcome == "done":
                return
            if last.outcome:
                last = self.start(self.random.choice(self.checkpoints), replace=True)
            self.now += 0.2
            self._turn_of_any()
        raise Violation("stuck", last.outcome)

    def start(self, checkpoint: Checkpoint, *, replace: bool) -> Start:
        """Begin a start."""
        start = Start(self, checkpoint, replace=replace)
        self.starts.append(start)
        return start

    def _any_step(self) -> None:
        rng = self.random.random()
        self.now += self.random.choice((0.0, 0.1, 0.5, 1.0))
        alive = [each for each in self.starts if not each.outcome and not each.killed]
        if rng < 0.08:
            self.changes += self.random.choices(range(PARTITIONS), k=self.random.randint(1, 4))
        elif rng < 0.11 or not alive:
            if len(alive) < 4:
                self.start(self.random.choice(self.checkpoints), replace=self.random.random() < 0.4)
        elif rng < 0.125:
            self.random.choice(alive).kill(outlives=self.random.random() < 0.5)
        elif rng < 0.15:
            self.random.choice(alive).frozen_until = self.now + self.random.choice((5, 40))
            self.now += self.random.choice((0, 30))
        elif rng < 0.16 and len(self.checkpoints) < 4:
            self._any_checkpoint()
        else:
            self._turn_of_any()

    def _any_checkpoint(self) -> None:
        name = f"c{len(self.checkpoints)}"
        if self.random.random() < 0.5:
            self.checkpoints.append(Checkpoint(name))
            return
        copied = self.random.choice(self.checkpoints)
        self.checkpoints.append(replace(copied, name=name, ends=dict(copied.ends), holder=None))

    def _turn_of_any(self) -> None:
        able = [each for each in self.starts if not each.outcome and each.frozen_until <= self.now]
        if able:
            start = self.random.choice(able)
            for _ in range(self.random.choice((1, 1, 3, 10))):
                if not start.outcome:
                    start.take_turn()
            if self.broken is not None:
                raise self.broken

    @contextmanager
    def _patched(self) -> Iterator[None]:
        edges: dict[str, Callable[..., Any]] = {
            "TransactionalProducer": self.producer,
            "committed_batch": self.committed_batch,
            "announcement_log": lambda _settings, _prefix: self,
        }
        with ExitStack() as stack:
            stack.enter_context(patch.object(transaction, "PRODUCERS", ProducerCache()))
            for name, model in edges.items():
                stack.enter_context(patch.object(transaction, name, model))
            yield
