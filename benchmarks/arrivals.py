"""When records arrive, as a ``read_committed`` consumer sees them, at hardly any cost for the machine.

A consumer may read up to the last stable offset, so a look at those offsets, 20 to 50 times a second, tells when
records were to be had. Offsets are not all records (a transaction takes one for itself): so the records are counted
by a real consumer, but only when they have come, and the looks taken meanwhile then say when each one had.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition, admin

#: The library neither exports nor annotates it.
_LATEST: Any = admin.OffsetSpec.latest()  # type: ignore[attr-defined, no-untyped-call]
_LOOK_SECONDS, _FIRST_LOOK_SECONDS = 0.05, 0.02
_KAFKA_SECONDS = 30
#: A side that needs more for so many records is taken for one that hangs: its start, for a backlog is read from there,
#: and a rate below a third of the slowest that was ever measured on two cores.
_WAIT_SECONDS, _SLOWEST_RATE = 180.0, 3_000

Partition = tuple[str, int]
Offsets = Mapping[Partition, int]
Check = Callable[[], None]


class NotArrived(Exception):
    """Says how many records of how many had come."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Times are of ``time.monotonic``. ``at_first``: how many records the first look that saw any saw, about."""

    records: int
    first: float
    last: float
    at_first: int

    @property
    def rate(self) -> float:
        """Records a second from the first to the last; those that were there at the first look took no time."""
        seconds = self.last - self.first
        return (self.records - self.at_first) / seconds if seconds > 0 else float("nan")

    def rate_since(self, began: float) -> float:
        return self.records / (self.last - began)


class Arrivals:
    """``with Arrivals(kafka, topics) as arrivals:`` looks at all partitions of the topics, which exist."""

    def __init__(self, kafka: str, topics: Sequence[str], consumer: Mapping[str, Any] | None = None) -> None:
        """``consumer``: settings of the one that counts."""
        self._kafka = kafka
        self._consumer = dict(consumer or {})
        self._admin = admin.AdminClient({"bootstrap.servers": kafka})
        known = self._admin.list_topics(timeout=_KAFKA_SECONDS).topics
        self._partitions = [(topic, partition) for topic in topics for partition in known[topic].partitions]
        self.begin = self._stable()
        self._looks: list[tuple[float, Offsets]] = [(time.monotonic(), self.begin)]
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._look, name="arrivals", daemon=True)

    def __enter__(self) -> Arrivals:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    def wait_for(self, records: int, check: Check, seconds: float | None = None) -> None:
        """Until so many records may have come: see ``arrival``. ``check`` raises when no more can come."""
        seconds = _wait_seconds(records) if seconds is None else seconds
        deadline = time.monotonic() + seconds
        next_check = time.monotonic() + 2.0
        while self._passed(self._looks[-1][1]) < records:
            if self._error is not None:
                raise self._error
            if time.monotonic() > next_check:
                check()
                next_check = time.monotonic() + 2.0
            if time.monotonic() > deadline:
                raise NotArrived(f"{self._passed(self._looks[-1][1]):,} of {records:,} records in {seconds:.0f} s")
            time.sleep(_LOOK_SECONDS / 2)

    def arrival(self, records: int, check: Check, seconds: float | None = None) -> Arrival:
        """Wait for so many records and count them. :raises NotArrived: they do not come in time."""
        seconds = _wait_seconds(records) if seconds is None else seconds
        self.wait_for(records, check, seconds)
        ends = self._count(records, check, seconds)
        while True:
            for moment, seen in self._looks:
                if all(seen[partition] >= end for partition, end in ends.items()):
                    first, at_first = next(
                        (begun, passed) for begun, looked in self._looks if (passed := self._passed(looked))
                    )
                    return Arrival(records, first, moment, min(at_first, records))
            time.sleep(_LOOK_SECONDS)

    def _count(self, records: int, check: Check, seconds: float) -> Offsets:
        """The offsets behind the last of so many records."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._kafka,
                "group.id": "incsnap-bench",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                **self._consumer,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, at, self.begin[topic, at]) for topic, at in self._partitions])
            ends: dict[Partition, int] = {}
            counted, deadline = 0, time.monotonic() + seconds
            while counted < records:
                for message in consumer.consume(min(10_000, records - counted), timeout=1.0):
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                    ends[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
                    counted += 1
                if time.monotonic() > deadline:
                    check()
                    raise NotArrived(f"{counted:,} of {records:,} records in {seconds:.0f} s")
            return ends
        finally:
            consumer.close()

    def _passed(self, ends: Offsets) -> int:
        return sum(end - self.begin[partition] for partition, end in ends.items())

    def _stable(self) -> Offsets:
        asked = {TopicPartition(topic, partition): _LATEST for topic, partition in self._partitions}
        answers: Mapping[TopicPartition, Future[object]] = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_KAFKA_SECONDS
        )
        return {
            (partition.topic, partition.partition): answer.result(_KAFKA_SECONDS).offset  # type: ignore[attr-defined]
            for partition, answer in answers.items()
        }

    def _look(self) -> None:
        try:
            pause = _FIRST_LOOK_SECONDS
            while not self._end.wait(pause):
                ends = self._stable()
                pause = _LOOK_SECONDS if self._passed(ends) else _FIRST_LOOK_SECONDS
                self._looks.append((time.monotonic(), ends))
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits
            self._error = error


def _wait_seconds(records: int) -> float:
    return _WAIT_SECONDS + records / _SLOWEST_RATE
