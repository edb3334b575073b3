"""The log of announcements in partition 0 of the control topic, with methods to read and to write them."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from incsnap.kafka.announcements import Announcement, announcement, owner_after
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import client_error, client_errors, control_topic, records_from
from incsnap.kafka.refusals import ClientError

#: All announcements are in the partition of bucket 0, because one partition gives them one order.
PARTITION = 0
#: Records to read first, from the end of the partition. A running job repeats its announcement among them.
_FIRST_LOOK = 1_000
#: Error codes for a topic that does not exist, or not yet.
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
#: Settings of a producer for single records that all replicas confirm.
_CONFIRMED = {"acks": "all", "enable.idempotence": "true", "linger.ms": "0"}
#: Logs by prefix and client settings. They are kept, because one worker of Spark runs the tasks of many batches.
_kept: dict[str, AnnouncementLog] = {}


class AnnouncementLog:
    """The announcements of a prefix. Each look continues where the previous one ended.

    One thread uses the log at a time, until `close`.
    """

    def __init__(self, settings: ClientSettings, prefix: str) -> None:
        self._settings = settings
        self._topic = control_topic(prefix)
        # A dead job's open transaction must not hide later records, so read uncommitted ones.
        hasty = {"isolation.level": "read_uncommitted", "enable.partition.eof": "true", "fetch.wait.max.ms": "10"}
        self._consumer = Consumer({**settings.for_consumer(f"incsnap-{prefix}-starts"), **hasty})
        self._producer: Producer | None = None
        #: Offset of the next record to read; None before the first look.
        self._next: int | None = None
        self._owner: Announcement | None = None
        #: The previous owner by its last record; None if that record was not read.
        self.before: Announcement | None = None

    def owner(self, seconds: float) -> Announcement | None:
        """Read to the end of the partition and return the owner of the prefix, or None if no start has announced.

        Raise ClientError if Kafka cannot be read within `seconds`.
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
        """Return True if any of the topic's first `partitions` partitions was ever written to.

        If nobody has announced a start, this tells whether a job of an older release has used the prefix. Raise
        ClientError if Kafka cannot be asked.
        """
        with client_errors():
            ends = (
                self._consumer.get_watermark_offsets(TopicPartition(self._topic, each), timeout=seconds)
                for each in range(partitions)
            )
            return any(high > 0 for _, high in ends)

    def producer(self) -> Producer:
        """Return the producer of announcements, and create it at the first call.

        A new producer asks a broker for its id. If no connection is open yet, librdkafka asks again after 500 ms. So
        create the producer ahead of the first announcement.
        """
        if self._producer is None:
            self._producer = Producer({**self._settings.for_admin(), **_CONFIRMED})
        return self._producer

    def announce(self, what: Announcement, seconds: float) -> None:
        """Write the announcement, and return when all replicas have it. Raise ClientError if that fails."""
        problems: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                problems.append(error)

        with client_errors():
            producer = self.producer()
            key, value = what.record()
            producer.produce(self._topic, value, key, PARTITION, on_delivery=delivered)
            left = producer.flush(seconds)
        if problems:
            raise client_error(problems[0])
        if left:
            producer.purge()
            self._producer = None
            raise ClientError(KafkaError._TIMED_OUT, f"{self._topic} could not be written within {seconds:.0f} s")

    def close(self) -> None:
        """Close the connections to Kafka."""
        self._consumer.close()
        self._producer = None

    def _from_the_end(self, low: int, high: int, seconds: float) -> Announcement | None:
        """Return the owner of the prefix, or None, from the last records of the partition.

        Read ten times further back each time, until the announcement with the highest term is a confirmed one.
        """
        look = _FIRST_LOOK
        while high > low:
            begin = max(low, high - look)
            owner = owner_after(None, self._announcements(begin, high, seconds))
            if begin == low or (owner is not None and owner.confirmed):
                return owner
            look *= 10
        return None

    def _announcements(self, begin: int, end: int, seconds: float) -> Iterator[Announcement]:
        """Yield the announcements from record `begin` on, at least up to `end`.

        Raise ClientError if that takes too long.
        """
        start = TopicPartition(self._topic, PARTITION, begin)
        for message in records_from(self._consumer, start, end, seconds):
            read_announcement = announcement(message.key(), message.value())
            if read_announcement is not None:
                yield read_announcement


def announcement_log(settings: ClientSettings, prefix: str) -> AnnouncementLog:
    """Return this process's log of the prefix. A new consumer takes 10 to 20 ms, a kept one 1 to 5 ms."""
    who = repr((prefix, sorted(settings.for_admin().items())))
    if who not in _kept:
        _kept[who] = AnnouncementLog(settings, prefix)
    return _kept[who]
