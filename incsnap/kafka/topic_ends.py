"""The ends of topics, and whether a partition has committed records from an offset on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts

_REQUEST_SECONDS = 30.0


def topic_ends(
    client: ClientSettings, topics: Mapping[str, int], *, first: bool = False, committed: bool = True
) -> dict[tuple[str, int], int]:
    """Return the end of each partition of `topics`: the offset behind its last committed record.

    `topics`: how many partitions each topic has. `first`: return the offsets of the first records instead. Without
    `committed`, records of open transactions count too. Raise ServerUnreachable if Kafka does not answer.
    """
    spec: Any = (OffsetSpec.earliest if first else OffsetSpec.latest)()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, number): spec for topic, count in topics.items() for number in range(count)}
    admin = AdminClient(client.for_admin())
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    try:
        answers = admin.list_offsets(asked, isolation_level=level, request_timeout=_REQUEST_SECONDS)
        return {(each.topic, each.partition): answer.result().offset for each, answer in answers.items()}
    except KafkaException as error:
        raise ServerUnreachable(
            f"Kafka at {client.bootstrap_servers} does not name the ends of topics: {error}"
        ) from None


def ends_by_topic(client: ClientSettings, topics: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return of each topic the ends of its partitions, in their order; () for a topic that does not exist.

    Raise ServerUnreachable if Kafka does not answer, and SinkError if it does not describe a topic.
    """
    names = sorted(set(topics))
    counts = partition_counts(admin_client(client), names)
    ends = topic_ends(client, counts)
    return {name: tuple(ends[name, number] for number in range(counts.get(name, 0))) for name in names}


def has_records(client: ClientSettings, topic: str, partition: int, begin: int) -> bool:
    """Return True if a partition has a committed record from the offset `begin` on.

    The offsets of transactions that were aborted have none. Raise ServerUnreachable if Kafka does not answer.
    """
    settings = {
        **client.for_consumer("incsnap-topic-ends"),
        "auto.offset.reset": "earliest",
        "enable.partition.eof": "true",
    }
    deadline = time.monotonic() + _REQUEST_SECONDS
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, partition, begin)])
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None:
                error = message.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    return error is None
    raise ServerUnreachable(f"Kafka at {client.bootstrap_servers} sends nothing of the topic {topic}")
