"""The topic in which Kafka Connect keeps the offsets of its connectors.

A record's key is `["NAME",{"server":"PREFIX"}]`, and its value is the connector's offset as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings

_SECONDS = 60.0
#: The only connector of a Debezium Server that writes to Kafka: the name is its `debezium.sink.type`.
_OF_DEBEZIUM_SERVER = "kafka"


@dataclass(frozen=True, slots=True)
class ConnectorOffsets:
    """The place of a connector's offsets in Kafka."""

    topic: str  #: the worker's `offset.storage.topic`, or the connector's `offsets.storage.topic`
    connector: str  #: name of the connector; "": any


@dataclass(frozen=True, slots=True)
class KeptOffset:
    """A connector's offset as Connect keeps it."""

    connector: str  #: name of the connector
    server: str  #: its `topic.prefix`
    content: dict[str, Any] | None  #: the offset; None if it was deleted


def kept_offset(key: bytes | None, value: bytes | None) -> KeptOffset | None:
    """Return the offset in a record of Connect; None if the record has another form."""
    try:
        name, partition = json.loads(key or b"null")
        content = json.loads(value) if value else None
        return KeptOffset(str(name), str(partition["server"]), content)
    except (ValueError, TypeError, KeyError):
        return None


def name_there(offsets: Iterable[KeptOffset], connector: str, server: str) -> str:
    """Return the name under which `offsets` have the connector: its own, or that of Debezium Server.

    `server`: its `topic.prefix`.
    """
    names = {each.connector for each in offsets if each.server == server and each.content}
    return _OF_DEBEZIUM_SERVER if connector not in names and _OF_DEBEZIUM_SERVER in names else connector


def kept_offsets(client: ClientSettings, topic: str) -> dict[tuple[str, str], KeptOffset]:
    """Return the newest offset of each connector in `topic`, by connector and `topic.prefix`.

    The result is empty if the topic does not exist. Raise ServerUnreachable if Kafka does not answer.
    """
    newest: dict[tuple[str, str], KeptOffset] = {}
    for key, value in newest_values(client, topic).items():
        offset = kept_offset(key, value)
        if offset is not None:
            newest[offset.connector, offset.server] = offset
    return newest


def newest_values(client: ClientSettings, topic: str) -> dict[bytes, bytes | None]:
    """Return the newest value of each key in a topic of Connect's: of offsets, of states.

    The result is empty if the topic does not exist. Raise ServerUnreachable if Kafka does not answer.
    """
    newest: dict[bytes, bytes | None] = {}
    settings = {**client.for_consumer("incsnap-connect-offsets"), "enable.partition.eof": "true"}
    with closing(Consumer(settings)) as consumer:
        try:
            described = consumer.list_topics(topic, timeout=_SECONDS).topics.get(topic)
        except KafkaException as problem:
            raise ServerUnreachable(f"Kafka does not describe the topic {topic}: {problem.args[0].str()}") from None
        if described is None or described.error is not None:
            return newest
        left = set(described.partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
        deadline = time.monotonic() + _SECONDS
        while left:
            if time.monotonic() > deadline:
                raise ServerUnreachable(f"Kafka sends nothing of the topic {topic} for {_SECONDS:.0f} s")
            for message in consumer.consume(1_000, timeout=0.1):
                deadline = time.monotonic() + _SECONDS
                error = message.error()
                if error is None:
                    newest[message.key() or b""] = message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
    return newest
