"""Copies of topics with seeded faults, under another prefix: verify must find each and name it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.kafka import Read, read_all

#: Returns the records to send in place of those of a topic.
Edit = Callable[[list[Read]], list[Read]]


def copy_topic(
    kafka: str, source: str, target: str, partitions: int, edit: Edit, config: dict[str, str] | None = None
) -> None:
    """Copy the committed records of `source` to a new topic `target`, as `edit` changes them."""
    records = edit(read_all(kafka, source, range(partitions)))
    admin = AdminClient({"bootstrap.servers": kafka})
    made = admin.create_topics([NewTopic(target, num_partitions=partitions, config=config or {})], request_timeout=30)
    made[target].result(30)
    send(kafka, target, records)


def send(kafka: str, topic: str, records: Sequence[Read]) -> None:
    """Send records to a topic, each to its partition."""
    producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": "true"})
    for record in records:
        producer.produce(topic, key=record.key, value=record.value, partition=record.partition)
        producer.poll(0)
    producer.flush(30)
