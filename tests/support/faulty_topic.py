"""Copies of topics with seeded faults, under another prefix: verify must find each and name it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pymysql.connections import Connection

from incsnap.mysql.watermarks import high_watermark
from tests.support.kafka import Read, read_all
from tests.support.waiting import PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Damage:
    """Events beside the faults that a topic may have, and that change nothing of what it holds."""

    clock_goes_back: bool = False  #: the producer's clock goes back again and again
    aborted: bool = False  #: records of transactions that were aborted lie between the others
    compacted: bool = False  #: Kafka has removed older records of each key


_UNDAMAGED = Damage()


def write_topic(kafka: str, topic: str, partitions: int, records: Sequence[Read], damage: Damage = _UNDAMAGED) -> None:
    """Make a topic of these records. `damage` happens to it."""
    config = {}
    if damage.compacted:
        config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.0"}
    admin = AdminClient({"bootstrap.servers": kafka})
    made = admin.create_topics([NewTopic(topic, num_partitions=partitions, config=config)], request_timeout=30)
    made[topic].result(30)
    if damage.aborted:
        _send_and_abort(kafka, topic, records[::7])
    # Kafka compacts no segment that is still written to. The last record of each partition begins another one.
    last = {record.partition: at for at, record in enumerate(records)}
    send(kafka, topic, [each for at, each in enumerate(records) if at not in last.values()], damage.clock_goes_back)
    if damage.aborted:
        _send_and_abort(kafka, topic, records[::5])
    if damage.compacted:
        time.sleep(0.5)
    send(kafka, topic, [records[at] for at in sorted(last.values())], damage.clock_goes_back)
    if damage.compacted:
        _wait_until_compacted(kafka, topic, partitions, len(records))


def send(kafka: str, topic: str, records: Sequence[Read], clock_goes_back: bool = False) -> None:
    """Send records to a topic, each to its partition."""
    producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": "true"})
    now = time.time_ns() // 1_000_000
    for number, record in enumerate(records):
        at: dict[str, Any] = {"timestamp": now - number % 50 * 100} if clock_goes_back else {}
        headers: Any = list(record.headers)
        producer.produce(topic, key=record.key, value=record.value, partition=record.partition, headers=headers, **at)
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def deliver_everything(connection: Connection[Any], kafka: str, prefix: str) -> str:
    """Write the offset of a connector that has delivered everything, and return the topic of offsets."""
    file, pos = high_watermark(connection)
    topic = f"{prefix}-offsets"
    key = json.dumps(["connector", {"server": prefix}]).encode()
    value = json.dumps({"file": file, "pos": pos, "row": 0, "event": 0}).encode()
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(topic, 5)], request_timeout=30)[topic].result(30)
    send(kafka, topic, [Read(3, 0, key, value)])
    return topic


def _send_and_abort(kafka: str, topic: str, records: Sequence[Read]) -> None:
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": f"aborted-{secrets.token_hex(4)}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, key=record.key, value=record.value, partition=record.partition)
    assert producer.flush(PATIENCE_SECONDS) == 0
    producer.abort_transaction(30)


def _wait_until_compacted(kafka: str, topic: str, partitions: int, records: int) -> None:
    """Wait until Kafka has removed records: it looks every 15 seconds. Raise AssertionError if it removes none."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(read_all(kafka, topic, range(partitions))) >= records:
        assert time.monotonic() < deadline, f"{topic} is not compacted"
        time.sleep(1)
