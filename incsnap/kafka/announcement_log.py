"""The records of announcements: read from partition 0 of the control topic, and written to it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from incsnap.kafka.announcements import Announcement, announcement, owner_after
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import client_error, control_topic
from incsnap.kafka.refusals import ClientError

#: Announcements are in the partition of bucket 0: one partition gives them one order.
PARTITION = 0
#: Records from the end of the partition that are read first. A running job repeats its announcement among them.
_FIRST_LOOK = 1_000
#: The topic is not there, or not yet.
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
#: By prefix and settings; Spark's workers run the tasks of many batches.
_kept: dict[str, AnnouncementLog] = {}


class AnnouncementLog:
    """The announcements of a prefix, read further at each look. Used by one thread at a time; ``close`` it."""

    def __init__(self, settings: ClientSettings, prefix: str) -> None:
        self._settings = settings
        self._topic = control_topic(prefix)
        # A transaction that a dead job has left open must not hide what is behind it.
        hasty = {"isolation.level": "read_uncommitted", "enable.partition.eof": "true", "fetch.wait.max.ms": "10"}
        self._consumer = Consumer({**settings.for_consumer(f"incsnap-{prefix}-starts"), **hasty})
        self._producer: Producer | None = None
        #: The place behind what was read; None before the first look.
        self._next: int | None = None
        self._owner: Announcement | None = None
        #: The owner before this one, by its last record; None where that was not read.
        self.before: Announcement | None = None

    def owner(self, seconds: float) -> Announcement | None:
        """Read to the end of the partition and return the owner of the prefix; None where no start has announced.

        Raise ``ClientError``.
        """
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, PARTITION), timeout=seconds)
            if self._next is None or high < self._next or low > self._next:
                self._owner = self._from_the_end(low, high, seconds)
            elif high > self._next:
                for each in self._announcements(self._next, high, seconds):
                    owner = owner_after(self._owner, [each])
                    if self._owner is not None and owner is not None and owner.term > self._owner.term:
                        self.before = self._owner
                    self._owner = owner
            self._next = high
        except KafkaException as problem:
            if problem.args[0].code() not in _MISSING:
                raise client_error(problem) from problem
            self._next, self._owner = None, None
        return self._owner

    def was_written_to(self, partitions: int, seconds: float) -> bool:
        """Whether any of the topic's first ``partitions`` partitions was ever written to. Raise ``ClientError``."""
        try:
            ends = (
                self._consumer.get_watermark_offsets(TopicPartition(self._topic, each), timeout=seconds)
                for each in range(partitions)
            )
            return any(high > 0 for _, high in ends)
        except KafkaException as problem:
            raise client_error(problem) from problem

    def announce(self, what: Announcement, seconds: float) -> None:
        """Write the announcement; return when all replicas have it. Raise ``ClientError``."""
        problems: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                problems.append(error)

        try:
            if self._producer is None:
                self._producer = Producer(self._settings.for_announcements())
            key, value = what.record()
            self._producer.produce(self._topic, value, key, PARTITION, on_delivery=delivered)
            left = self._producer.flush(seconds)
        except KafkaException as problem:
            raise client_error(problem) from problem
        if problems:
            raise client_error(problems[0])
        if left:
            self._producer.purge()
            self._producer = None
            raise ClientError(KafkaError._TIMED_OUT, f"{self._topic} was not written to in {seconds:.0f} s")

    def close(self) -> None:
        self._consumer.close()
        self._producer = None

    def _from_the_end(self, low: int, high: int, seconds: float) -> Announcement | None:
        """Read back until the announcement of the highest term is confirmed, ten times further each time."""
        look = _FIRST_LOOK
        while high > low:
            begin = max(low, high - look)
            owner = owner_after(None, self._announcements(begin, high, seconds))
            if begin == low or (owner is not None and owner.confirmed):
                return owner
            look *= 10
        return None

    def _announcements(self, begin: int, end: int, seconds: float) -> Iterator[Announcement]:
        """Yield the announcements of the records from ``begin`` on, to ``end`` at least."""
        self._consumer.assign([TopicPartition(self._topic, PARTITION, begin)])
        try:
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                message = self._consumer.poll(0.1)
                if message is None:
                    continue
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise client_error(error)
                if error is None:
                    read_announcement = announcement(message.key(), message.value())
                    if read_announcement is not None:
                        yield read_announcement
                offset = message.offset() or 0
                if offset >= (end if error is not None else end - 1):
                    return
        finally:
            self._consumer.unassign()
        raise ClientError(KafkaError._TIMED_OUT, f"{self._topic} could not be read in time", retriable=True)


def announcement_log(settings: ClientSettings, prefix: str) -> AnnouncementLog:
    """Return the process's own log of the prefix: a new consumer takes 10 to 20 ms, one that is there 1 to 5 ms."""
    who = repr((prefix, sorted(settings.for_admin().items())))
    if who not in _kept:
        _kept[who] = AnnouncementLog(settings, prefix)
    return _kept[who]
