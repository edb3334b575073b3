"""A small model of Kafka, below the sink: transactions, fencing by epoch, and the number of the last batch.

It replaces `kafka.producer.TransactionalProducer` and `kafka.control.committed_batch`; everything above is the
product's code. A process may die at a commit in three ways: before Kafka has the transaction, after that but without an
answer, or frozen. A frozen process (a zombie) wakes up at any later call of another process, and sends its commit then.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import KafkaError

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import CommittedBatch, control_topic
from incsnap.kafka.refusals import ClientError


class Died(BaseException):
    """The end of a process: it holds nothing any more, and none of its code runs."""


@dataclass
class Sent:
    """The records of one committed transaction of a bucket, in order."""

    batch: int  #: number of the batch
    records: list[tuple[str, pa.RecordBatch]]  #: (topic, records) in the order in which they were sent


@dataclass
class Broker:
    """The state of Kafka, for all producers."""

    buckets: int
    random: random.Random
    #: Chance that a commit is the last action of its process.
    deadly: float = 0.0
    epochs: dict[str, int] = field(default_factory=dict)  #: transactional id -> newest epoch
    numbers: dict[int, CommittedBatch] = field(default_factory=dict)  #: bucket -> its last committed batch
    frozen: list[Producer] = field(default_factory=list)  #: producers whose commit comes later, unless fenced

    def __post_init__(self) -> None:
        self.log: list[list[Sent]] = [[] for _ in range(self.buckets)]

    def producer(self, settings: Mapping[str, str]) -> Producer:
        return Producer(self, settings["transactional.id"])

    def committed_batch(
        self, _settings: ClientSettings, _prefix: str, _job_id: str, bucket: int, _seconds: float
    ) -> CommittedBatch | None:
        number = self.numbers.get(bucket)
        self.wake()
        return number

    def wake(self) -> None:
        """Let a frozen producer commit, by chance. It fails if it was fenced meanwhile."""
        if self.frozen and self.random.random() < 0.5:
            sleeper = self.frozen.pop(self.random.randrange(len(self.frozen)))
            if not sleeper.fenced:
                sleeper.apply()


class Producer:
    refused = None
    has_lost_answers = False
    waiting = 0

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._name = name
        self._epoch = -1
        self._dead = False
        self._records: list[tuple[str, pa.RecordBatch]] = []
        self._number: tuple[int, CommittedBatch] | None = None

    @property
    def fenced(self) -> bool:
        return self._broker.epochs[self._name] != self._epoch

    def init_transactions(self, _seconds: float) -> None:
        self._broker.wake()
        self._epoch = self._broker.epochs[self._name] = self._broker.epochs.get(self._name, 0) + 1
        self._broker.wake()

    def begin(self) -> None:
        self._records = []

    def send_offset(
        self, _topic: str, partition: int, offset: int, metadata: str, _group: str, _seconds: float
    ) -> None:
        self._broker.wake()
        self._refuse_fenced()
        self._number = partition, CommittedBatch(offset, metadata)

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch, _seconds: float) -> None:
        begin = 0
        for topic, count in topics:
            self._records.append((topic, records.slice(begin, count)))
            begin += count

    def send_one(self, topic: str, _partition: int, _key: bytes, _value: bytes) -> None:
        assert topic == control_topic("t")

    def commit(self, _seconds: float) -> None:
        self._refuse_fenced()
        if self._broker.random.random() < self._broker.deadly:
            end = self._broker.random.choice(("before", "behind", "frozen"))
            if end == "behind":
                self.apply()
            elif end == "frozen":
                self._broker.frozen.append(self)
            self._dead = True
            raise Died
        self.apply()

    def apply(self) -> None:
        """Commit records and batch number at once."""
        assert self._number is not None
        bucket, number = self._number
        self._broker.log[bucket].append(Sent(number.batch, self._records))
        self._broker.numbers[bucket] = number
        self._records = []

    def abort(self, _seconds: float) -> None:
        if not self._dead:
            self._records = []

    def close(self) -> None:
        """Do nothing: the model holds only memory."""

    def _refuse_fenced(self) -> None:
        if self.fenced:
            raise ClientError(KafkaError._FENCED, "there is a newer producer of this name", fatal=True)
