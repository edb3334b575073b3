"""The schema history of a connector, in Kafka, for a connector that continues where a job has ended.

Debezium describes the tables by this topic. At its start it parses the statements of all records that are not behind
its offset. So the records that are written here have the place of the hand-back: a connector that begins before that
place skips them.

The statements are those of Debezium's own snapshot of schemas: set the server's character set, drop a database, create
it, create its tables. Debezium would ignore a CREATE TABLE of a table that it knows. `tableChanges` is empty, so that
Debezium parses the statement by the rules of its own release.

The records are not sent in a transaction. Its marker would be the last offset of the topic, and Debezium waits for a
record there until it gives up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, Producer

from incsnap.config.clients import client_settings
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, ensure_topics, partition_counts
from incsnap.tables import TableId, quote
from incsnap.verify.topic_side import messages_of, parts_between

_CLASS, _TOPIC = "schema.history.internal", "schema.history.internal.kafka.topic"
_BROKERS, _PRODUCER = "schema.history.internal.kafka.bootstrap.servers", "schema.history.internal.producer."
_KAFKA_CLASS, _FILE_CLASS = "KafkaSchemaHistory", "FileSchemaHistory"
_FILE = "schema.history.internal.file.filename"
#: Settings of a producer that matter to a job only.
_OF_JOBS = ("acks", "enable.idempotence", "transactional.id")
#: Debezium warns about other settings.
_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
_SECONDS = 60.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class HistoryTopic:
    """The topic of a connector's schema history."""

    name: str  #: `schema.history.internal.kafka.topic`
    client: ClientSettings  #: the brokers that have the topic, and the login

    def databases(self, prefix: str) -> set[str]:
        """Return the databases that the history of the connector with this `topic.prefix` names.

        The result is empty if the topic does not exist. Raise ConfigError if the topic holds only the histories of
        other connectors. Raise ServerUnreachable or SinkError if Kafka does not answer.
        """
        counts = partition_counts(admin_client(self.client), [self.name])
        if not counts:
            return set()
        one = {self.name: 1}
        parts = parts_between(topic_ends(self.client, one, first=True), topic_ends(self.client, one))
        # A history may have gigabytes, so records are not kept.
        databases, has_own, has_others = set[str](), False, False
        for message in (each for _, messages in messages_of(self.client, parts) for each in messages):
            if (record := _record(message.value())) is None:
                continue
            if record.get("source") == {"server": prefix}:
                has_own = True
                databases.add(str(record.get("databaseName") or ""))
            else:
                has_others = True
        if has_others and not has_own:
            raise ConfigError(
                f"the topic {self.name} has no schema history of a connector with topic.prefix={prefix}",
                f"Correct {_TOPIC}, or leave it out: then the command says how the connector starts without it.",
            )
        return databases - {""}

    def append(self, records: Iterable[bytes]) -> None:
        """Append records, in their order. Create the topic if it does not exist.

        Raise ServerUnreachable or SinkError if Kafka does not take them all. Another call then repairs the history.
        """
        ensure_topics(admin_client(self.client), [self.name], 1, config=_CONFIG)
        failed: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(error.str())

        settings = {**self.client.for_admin(), "acks": "all", "enable.idempotence": "true"}
        settings["delivery.timeout.ms"] = int(_SECONDS * 1000)
        try:
            producer = Producer(settings)
            for record in records:
                # A full queue waits for the broker, and a message that waits too long fails (delivery.timeout.ms).
                while not failed and not _is_queued(producer, self.name, record, delivered):
                    producer.poll(_POLL_SECONDS)
                producer.poll(0)
            left = producer.flush(_SECONDS)
        except KafkaException as error:
            raise ServerUnreachable(f"The topic {self.name} does not take the schema history: {error}") from None
        if left or failed:
            raise ServerUnreachable(
                f"The topic {self.name} does not take the schema history: {', '.join(failed[:1]) or 'no answer'}"
            )


def _is_queued(producer: Producer, topic: str, record: bytes, delivered: Callable[[Any, Any], None]) -> bool:
    """Give a record to a producer. Return False if its queue is full: librdkafka's holds 100,000 records."""
    try:
        producer.produce(topic, record, partition=0, on_delivery=delivered)
    except BufferError:
        return False
    return True


def history_topic(
    properties: Mapping[str, str],
    settings: Settings,
    environment: Mapping[str, str] | None = None,
    providers: Mapping[str, str] | None = None,
) -> HistoryTopic | None:
    """Return the topic of the schema history that a connector's file names; None if it is not kept in Kafka.

    `environment` and `providers` resolve references to secrets, as in `config.references.resolve`. Raise ConfigError if
    the topic's login cannot be used here.
    """
    own = {name: text for name, text in properties.items() if name.startswith(_CLASS)}
    reader = SettingsReader(own, environment, providers)
    name, kept_by = reader.text(_TOPIC), reader.text(_CLASS)
    if not name or (kept_by and not kept_by.endswith(_KAFKA_CLASS)):
        return None
    of_job = settings.kafka.bootstrap_servers
    brokers = reader.text(_BROKERS) or of_job
    given = {each: text for each, text in own.items() if each.removeprefix(_PRODUCER) not in _OF_JOBS}
    options = {each: text for each, text in given.items() if each.startswith(_PRODUCER)}
    login = SettingsReader(options, environment, providers)
    producer = client_settings(login, _PRODUCER)
    if reader.problems or login.problems:
        raise ConfigError("; ".join((*reader.problems, *login.problems)), "Correct the connector's file.")
    same = sorted(split_list(brokers)) == sorted(split_list(of_job))
    return HistoryTopic(name, ClientSettings(brokers, producer or (settings.kafka.producer if same else {})))


def how_to_renew(properties: Mapping[str, str]) -> str:
    """Return how the schema history that a connector's file names is renewed by hand, in sentences."""
    kept_by = properties.get(_CLASS, "")
    if kept_by.endswith(_FILE_CLASS):
        change = f"give {_FILE} (now {properties.get(_FILE, '')}) a new name"
    elif kept_by and not kept_by.endswith(_KAFKA_CLASS):
        change = f"give {_CLASS} ({kept_by}) a new, empty place"
    else:
        change = f"give {_TOPIC} a new name"
    return (
        f"In the connector's file {change}, and set snapshot.mode=recovery for its first start. The connector then"
        " describes the tables as they are now."
    )


def of_server(charset: str, collation: str) -> tuple[str, str]:
    """Return the first statement of a schema history, and that it is of no database.

    It sets the server's character set, which Debezium takes for a database that names none.
    """
    return "", f"SET character_set_server={charset}, collation_server={collation}"


def statements(databases: Mapping[str, str | None], tables: Mapping[TableId, str]) -> Iterator[tuple[str, str]]:
    """Yield the statements that describe `tables` to Debezium, each with its database.

    `databases` has the character set of each database of which the history has these tables and no others afterwards;
    None for a database that does not exist any more. `tables` has the text of SHOW CREATE TABLE.
    """
    for database, charset in sorted(databases.items()):
        yield database, f"DROP DATABASE IF EXISTS {quote(database)}"
        if charset is not None:
            yield database, f"CREATE DATABASE {quote(database)} CHARACTER SET {charset}"
    for table, created in sorted(tables.items()):
        if table.database not in databases:
            yield table.database, f"DROP TABLE IF EXISTS {table.sql}"
        yield table.database, created


def records(prefix: str, position: Mapping[str, Any], described: Iterable[tuple[str, str]], now_ms: int) -> list[bytes]:
    """Return the records of the schema history for statements and their databases.

    `position` is the offset with which the connector continues. `now_ms` is in milliseconds since 1970.
    """
    place = {name: position[name] for name in ("ts_sec", "file", "pos", "gtids")}
    return [
        json.dumps(
            {
                "source": {"server": prefix},
                "position": place,
                "ts_ms": now_ms,
                "databaseName": database,
                "ddl": statement,
                "tableChanges": [],
            },
            ensure_ascii=False,
        ).encode()
        for database, statement in described
    ]


def _record(value: bytes | None) -> dict[str, Any] | None:
    """Return a record of the history; None for what is none."""
    try:
        content = json.loads(value or b"null")
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
