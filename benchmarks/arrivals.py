"""The arrival times of records, as a `read_committed` consumer sees them, measured at almost no cost.

A consumer may read up to the last stable offset. A thread looks at these offsets 20 to 50 times a second, so it knows
when records became readable. An offset is not always a record, because a transaction takes an offset for its end. So a
real consumer counts the records afterwards, and the recorded looks give the time of each offset.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition, admin

#: confluent_kafka neither exports nor annotates this value.
_LATEST: Any = admin.OffsetSpec.latest()  # type: ignore[attr-defined, no-untyped-call]
_LOOK_SECONDS, _FIRST_LOOK_SECONDS = 0.05, 0.02
_KAFKA_SECONDS = 30
#: A side that takes longer is considered hung. The limit is a start (180 s), which a backlog includes, and a rate below
#: a third of the slowest that was ever measured on two cores.
_WAIT_SECONDS, _SLOWEST_RATE = 180.0, 3_000

Partition = tuple[str, int]
Offsets = Mapping[Partition, int]
Check = Callable[[], None]


class NotArrived(Exception):
    """The error of records that did not come in time. It tells how many of how many came."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The time in which a number of records arrived. Times are of `time.monotonic()`."""

    records: int  #: records that arrived
    first: float  #: when a look first saw records
    last: float  #: when a look saw the last record
    at_first: int  #: about how many records the first of these looks saw

    @property
    def rate(self) -> float:
        """Return records a second from the first to the last, without those that the first look saw.

        Return NaN if all records came at one look.
        """
        seconds = self.last - self.first
        return (self.records - self.at_first) / seconds if seconds > 0 else float("nan")

    def rate_since(self, began: float) -> float:
        """Return records a second from the moment `began` to the last record."""
        return self.records / (self.last - began)


class Arrivals:
    """A thread that looks at the offsets of all partitions of `topics`, which exist, until the `with` block ends."""

    def __init__(self, kafka: str, topics: Sequence[str], consumer: Mapping[str, Any] | None = None) -> None:
        """Begin at the present end of the topics. `consumer` are further settings of the consumer that counts."""
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
        """Wait until `records` records may have come, judged by offsets. Use `arrival` to count them.

        `check` must raise an error if no more can come. Raise NotArrived if the records do not come within `seconds`.
        """
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
        """Wait for `records` records, count them, and return when they came.

        Raise NotArrived if they do not come within `seconds`.
        """
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
        """Return the offset after the last counted record of each partition."""
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
