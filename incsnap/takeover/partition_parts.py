"""The parts of partitions that a take-over reads: from some minutes before the offset's time on, and the last records.

The offset's time is that of MySQL's clock, and records have that of the connector's worker. The clocks may differ by
more than those minutes. So of a partition without records since then the last record is looked at too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import topic_config
from incsnap.verify.topic_side import PartitionPart

#: Seconds before the offset's time from which records are read: clocks differ, and a transaction may have begun then.
_MARGIN_SECONDS = 600
_REQUEST_SECONDS = 30.0
#: Offsets in which the last record of a partition is looked for. Markers of transactions have offsets too.
_TAIL_OFFSETS = 10
#: Fewest offsets by which a part grows.
_STEP_OFFSETS = 1_000


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The part of a partition since a time, which may be empty, and the partition's first offset."""

    part: PartitionPart  #: the part
    first: int  #: first offset that Kafka has

    @property
    def is_quiet(self) -> bool:
        """Whether the partition has records, but none since the time."""
        return self.first < self.part.begin == self.part.end

    @property
    def is_emptied(self) -> bool:
        """Whether Kafka has removed all records of the partition."""
        return 0 < self.first == self.part.end

    @property
    def tail(self) -> PartitionPart:
        """The last offsets of the partition."""
        return replace(self.part, begin=max(self.first, self.part.end - _TAIL_OFFSETS))

    def longer(self, part: PartitionPart) -> PartitionPart:
        """Return a part with the end of `part` that begins earlier, if the partition has earlier records."""
        return replace(part, begin=max(self.first, part.begin - max(_STEP_OFFSETS, part.end - part.begin)))


def ranges_since(client: ClientSettings, counts: Mapping[str, int], seconds: int) -> list[PartitionRange]:
    """Return each partition's range since `seconds`, some minutes earlier; from the first record on if it is 0.

    `counts`: number of partitions, by topic.
    """
    ends = topic_ends(client, counts)
    firsts = topic_ends(client, counts, first=True)
    begins = _offsets_at(client, firsts, (seconds - _MARGIN_SECONDS) * 1000) if seconds else {}
    return [
        PartitionRange(PartitionPart(*place, min(max(begins.get(place, 0), firsts[place]), end), end), firsts[place])
        for place, end in sorted(ends.items())
    ]


def tails_of(client: ClientSettings, ranges: Iterable[PartitionRange]) -> dict[tuple[str, int], list[Message]]:
    """Return the last committed records of partitions, by topic and partition.

    All partitions are read at once, because each one alone would take a fifth of a second. Raise ServerUnreachable if
    Kafka does not answer.
    """
    parts = [each.tail for each in ranges]
    tails: dict[tuple[str, int], list[Message]] = {(part.topic, part.partition): [] for part in parts}
    left = {(part.topic, part.partition): part.end for part in parts}
    settings = {
        **client.for_consumer("incsnap-takeover"),
        "auto.offset.reset": "earliest",
        "enable.partition.eof": "true",
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(part.topic, part.partition, part.begin) for part in parts])
        deadline = time.monotonic() + _REQUEST_SECONDS
        while left:
            for message in consumer.consume(1_000, timeout=0.1):
                error, place = message.error(), (str(message.topic()), message.partition() or 0)
                if error is None:
                    tails[place].append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    # A new leader may have an earlier end for a moment.
                    if (message.offset() or 0) >= left.get(place, 0):
                        left.pop(place, None)
                elif not error.retriable():
                    raise ServerUnreachable(f"{place[0]} cannot be read: {error.str()}")
                deadline = time.monotonic() + _REQUEST_SECONDS
            if time.monotonic() > deadline:
                raise ServerUnreachable(f"the brokers do not send the last records of {min(left)[0]}")
    return tails


def may_have_removed(client: ClientSettings, topic: str, seconds: int) -> bool:
    """Whether Kafka may have removed records since `seconds` by the topic's retention."""
    try:
        retention_ms = int(topic_config(client, topic)["retention.ms"])
    except (KafkaException, KeyError):
        return True
    return 0 <= retention_ms < (time.time() - seconds) * 1000


def _offsets_at(
    client: ClientSettings, partitions: Iterable[tuple[str, int]], milliseconds: int
) -> dict[tuple[str, int], int]:
    """Return of each partition the first offset at or after a time; the partition's end if there is none."""
    asked = [TopicPartition(topic, number, milliseconds) for topic, number in partitions]
    consumer = Consumer(client.for_consumer("incsnap-takeover"))
    try:
        answers = consumer.offsets_for_times(asked, timeout=_REQUEST_SECONDS) if asked else []
        begins = {(each.topic, each.partition): each.offset for each in answers}
        return {
            place: offset if offset >= 0 else consumer.get_watermark_offsets(TopicPartition(*place), timeout=30.0)[1]
            for place, offset in begins.items()
        }
    finally:
        consumer.close()
