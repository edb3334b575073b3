"""Reading a topic of keys once, from its beginning to its present end."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.refusals import SinkRefused

_REQUEST_SECONDS = 15.0
#: Seconds without any record after which the brokers count as away.
_SILENT_SECONDS = 30.0
_TOGETHER = 1_000


def keys_in(settings: ClientSettings, topic: str) -> Iterator[bytes]:
    """Yield each record's value, or its key if the value is missing: committed records, in no order of partitions.

    Raise SinkRefused if the topic does not exist, and ServerUnreachable if Kafka does not answer.
    """
    consumer = Consumer({**settings.for_consumer("incsnap-keys"), "enable.partition.eof": "true"})
    try:
        ends = _ends(consumer, topic)
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in ends])
        heard = time.monotonic()
        while ends:
            messages = consumer.consume(_TOGETHER, 1.0)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENT_SECONDS:
                raise ServerUnreachable(
                    f"Kafka sends nothing of the topic {topic}, though it has {len(ends)} more ends"
                )
            for message in messages:
                if message.error() is None:
                    content = message.value() if message.value() is not None else message.key()
                    if content is not None:
                        yield bytes(content)
                # With an error this is the end of a partition, in its place after the last record.
                if (message.offset() or 0) + (message.error() is None) >= ends.get(message.partition() or 0, 1 << 62):
                    ends.pop(message.partition() or 0, None)
    except KafkaException as error:
        raise ServerUnreachable(f"Kafka does not answer about the topic {topic}: {error.args[0].str()}") from None
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    """Return the partitions that have records, each with its end."""
    described = consumer.list_topics(topic, timeout=_REQUEST_SECONDS).topics[topic]
    if described.error is not None or not described.partitions:
        raise SinkRefused(f"the topic {topic} with keys does not exist or cannot be read")
    ends = {}
    for partition in described.partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_REQUEST_SECONDS)
        if high > low:
            ends[partition] = high
    return ends
