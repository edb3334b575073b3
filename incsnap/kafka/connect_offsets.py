"""The topics and files in which Kafka Connect keeps the offsets of its connectors.

A record's key is `["NAME",{"server":"PREFIX"}]`, and its value is the connector's offset as JSON. A standalone worker
and Debezium Server write such keys and values into a file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.java_objects import NotUnderstood, read_object

_SECONDS = 60.0
#: The only connector of a Debezium Server that writes to Kafka: the name is its `debezium.sink.type`.
_OF_DEBEZIUM_SERVER = "kafka"
#: The first bytes of a standalone worker's file.
OF_WORKER = b"\xac\xed"
#: The repair where no offset can be read.
WHERE = (
    "Give the worker's file with --worker, or the offset with --offsets: a file with what GET /connectors/NAME/offsets"
    " prints, or the file of a standalone worker or of Debezium Server (offset.storage.file.filename)."
)


@dataclass(frozen=True, slots=True)
class KeptOffset:
    """A connector's offset as Connect keeps it."""

    connector: str  #: name of the connector
    server: str  #: its `topic.prefix`
    content: dict[str, Any] | None  #: the offset; None if it was deleted


@dataclass(frozen=True, slots=True)
class ConnectorOffsets:
    """The places of a connector's offsets."""

    topics: tuple[str, ...]  #: the connector's `offsets.storage.topic`, and the worker's `offset.storage.topic`
    connector: str  #: name of the connector; "": any
    file: str = ""  #: `offset.storage.file.filename`, which is read instead of the topics; "": none

    @classmethod
    def of(cls, own: Mapping[str, str], of_worker: Mapping[str, str], given: str | None = None) -> ConnectorOffsets:
        """Return the places that the settings of a connector and its worker name. `given`: a file with the offset."""
        named = {**of_worker, **own}
        topics = dict.fromkeys(filter(None, map(named.get, ("offsets.storage.topic", "offset.storage.topic"))))
        return cls(tuple(topics), own.get("name", ""), given or named.get("offset.storage.file.filename", ""))

    def places(self, client: ClientSettings) -> Iterator[tuple[str, Sequence[KeptOffset]]]:
        """Yield each place in words, with all offsets there. A worker reads the connector's own topic first.

        Raise ConfigError if the file cannot be read, and ServerUnreachable if Kafka does not answer.
        """
        if self.file:
            yield f"The file {self.file}", _in_file(Path(self.file))
            return
        for topic in self.topics:
            yield f"The topic {topic}", list(kept_offsets(client, topic).values())

    def own(self, offsets: Iterable[KeptOffset], server: str) -> list[KeptOffset]:
        """Return those of `offsets` that can be the connector's. `server`: its `topic.prefix`."""
        of_server = [each for each in offsets if each.server == server and each.content]
        if not self.connector:
            return of_server
        there = name_there(of_server, self.connector, server)
        return [each for each in of_server if each.connector in ("", there)]


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


def _in_file(path: Path) -> list[KeptOffset]:
    """Return the offsets in a file: none in an empty one, which a worker takes as new.

    Raise ConfigError if it cannot be read, or has another form.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the file with offsets cannot be read: {error}", WHERE) from None
    if not content:
        return []
    try:
        if content.startswith(OF_WORKER):
            kept = read_object(content)
            in_map = [kept_offset(key, value) for key, value in kept.items()]
            return [each for each in in_map if each is not None]
        return [
            KeptOffset("", str(each["partition"]["server"]), each.get("offset"))
            for each in json.loads(content)["offsets"]
        ]
    except (NotUnderstood, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} has no offsets of Kafka Connect: {error}", WHERE) from None


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
