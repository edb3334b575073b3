"""Reading a topic of keys once, from its beginning to its present end."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.refusals import SinkRefused

_REQUEST_SECONDS = 15.0
#: Seconds without any record after which the brokers count as away.
_SILENT_SECONDS = 30.0
_TOGETHER = 1_000
#: Codes of errors that only a person can end.
_REFUSALS = frozenset(
    (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION, KafkaError.TOPIC_AUTHORIZATION_FAILED)
)


def keys_in(settings: ClientSettings, topic: str) -> Iterator[bytes]:
    """Yield each record's value, or its key if the value is missing: committed records, in no order of partitions.

    Raise SinkRefused if the topic does not exist or may not be read, and ServerUnreachable if Kafka does not answer.
    """
    consumer = Consumer({**settings.for_consumer("incsnap-keys"), "enable.partition.eof": "true"})
    try:
        ends = _ends(consumer, topic)
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in ends])
        heard = time.monotonic()
        while ends:
            # Somebody may write behind the end of a partition that has been read.
            messages = [each for each in consumer.consume(_TOGETHER, 1.0) if (each.partition() or 0) in ends]
            if any(_is_heard(message.error()) for message in messages):
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENT_SECONDS:
                raise ServerUnreachable(
                    f"Kafka sends nothing of the topic {topic}, though it has {len(ends)} more ends"
                )
            for message in messages:
                error = message.error()
                if error is not None and error.code() in _REFUSALS:
                    raise _refused(topic, error)
                if error is None:
                    content = message.value() if message.value() is not None else message.key()
                    if content is not None:
                        yield bytes(content)
                # With an error this is the end of a partition, in its place after the last record.
                if (message.offset() or 0) + (error is None) >= ends.get(message.partition() or 0, 1 << 62):
                    ended = ends.pop(message.partition() or 0, None)
                    if ended is not None:
                        consumer.pause([TopicPartition(topic, message.partition() or 0)])
    except KafkaException as problem:
        reason: KafkaError = problem.args[0]
        if reason.code() in _REFUSALS:
            raise _refused(topic, reason) from None
        raise ServerUnreachable(f"Kafka does not answer about the topic {topic}: {reason.str()}") from None
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    """Return the partitions that have records, each with its end."""
    described = consumer.list_topics(topic, timeout=_REQUEST_SECONDS).topics[topic]
    if described.error is not None or not described.partitions:
        raise KafkaException(described.error or KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    ends = {}
    for partition in described.partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_REQUEST_SECONDS)
        if high > low:
            ends[partition] = high
    return ends


def _is_heard(error: KafkaError | None) -> bool:
    """Return True for a record, and for the end of a partition: a broker has answered."""
    return error is None or error.code() == KafkaError._PARTITION_EOF


def _refused(topic: str, error: KafkaError) -> SinkRefused:
    """Return the error for a topic that is missing or may not be read."""
    return SinkRefused(f"the topic {topic} with keys does not exist or cannot be read: {error.str()}")
