"""The names of all topics that a job writes to: Debezium's names, changed by the transforms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from incsnap.config.declarations.kinds import LONGEST_NAME
from incsnap.config.settings import Settings
from incsnap.connect.field_names import unicode_escape
from incsnap.connect.schema import Schema
from incsnap.envelope.control_schemas import HEARTBEAT_KEY, NOTIFICATION_KEY, SCHEMA_CHANGE_KEY, TRANSACTION_KEY
from incsnap.envelope.record_encoder import specs_of, topics
from incsnap.tables import TableId
from incsnap.transforms.chain import apply_chain
from incsnap.transforms.record_spec import Constant, RecordSpec, ValueShape

#: Characters that Kafka refuses in a topic's name.
INVALID = re.compile(r"[^a-zA-Z0-9._-]")
#: Characters that Debezium's Unicode strategy replaces.
_ESCAPED = re.compile(r"[^a-zA-Z0-9.-]")


def topic_of(settings: Settings, table: TableId) -> str:
    """Return the topic of a table's records before transforms, cut to 249 characters.

    Characters that Kafka refuses become `_`. So two tables may share a topic, as in Debezium. With Debezium's Unicode
    strategy these characters and `_` become `_u` and the code of the character, so that names stay different.
    """
    name = settings.topic_delimiter.join((settings.topic_prefix, table.database, table.table))
    if settings.unicode_topics:
        return _ESCAPED.sub(lambda match: unicode_escape(match[0]), name)[:LONGEST_NAME]
    return INVALID.sub("_", name)[:LONGEST_NAME]


def topics_of(settings: Settings, table: TableId) -> tuple[str, ...]:
    """Return all topics that records of the table are sent to, first the topic of rows read by SELECT.

    Return an empty tuple if transforms drop all records. Raise ConfigError if a transform cannot be evaluated.
    """
    return topics(
        topic_of(settings, table), settings.transforms, settings.formats.schema_names, context_headers(settings)
    )


def tables_by_topic(settings: Settings, tables: Iterable[TableId]) -> dict[str, list[TableId]]:
    """Return the tables of each topic, in their order. Raise ConfigError as `topics_of` does."""
    owners: dict[str, list[TableId]] = {}
    for table in tables:
        for topic in topics_of(settings, table):
            owners.setdefault(topic, []).append(table)
    return owners


def table_with_same_keys(settings: Settings, table: TableId, others: Iterable[TableId]) -> TableId | None:
    """Return the first of `others` whose keys cannot be told from those of `table`; None if there is none.

    `others`: tables of the same topic. A router may add a field to keys, and its text may be the same for both tables.
    Raise ConfigError as `topics_of` does.
    """
    own = _texts_in_keys(settings, table)
    return next((each for each in others if () in own or own & _texts_in_keys(settings, each)), None)


def _texts_in_keys(settings: Settings, table: TableId) -> set[tuple[Constant, ...]]:
    """Return the fields that transforms add to the keys of a table's records, as each kind of record has them."""
    own, names, headers = topic_of(settings, table), settings.formats.schema_names, context_headers(settings)
    specs = specs_of(own, settings.transforms, names, headers).values()
    return {spec.key_fields for spec in specs if spec is not None and spec.event is None}


def context_headers(settings: Settings) -> tuple[Constant, ...]:
    """Return the headers of Debezium's `extended.headers.enabled`, which all records of tables have, or none."""
    if not settings.run_id:
        return ()
    values = {
        "connectorLogicalName": settings.topic_prefix,
        "taskId": "0",
        "connectorName": "mysql",
        "runId": settings.run_id,
    }
    return tuple(Constant(f"__debezium.context.{name}", text) for name, text in values.items())


@dataclass(frozen=True, slots=True)
class ControlTopic:
    """A topic of records that are not changes of rows, after transforms."""

    name: str  #: after transforms
    key_schema: Schema  #: with the fields that transforms add
    key_fields: tuple[tuple[str, str], ...]  #: names and texts that transforms add to each key

    @classmethod
    def of(cls, settings: Settings, name: str, key_schema: Schema) -> ControlTopic | None:
        """Return the topic `name` after transforms, or None if a transform drops such records.

        Raise ConfigError if a transform cannot be evaluated for them.
        """
        spec = apply_chain(settings.transforms, RecordSpec(name, "", ValueShape.OTHER, key_schema.name or ""))
        if spec is None:
            return None
        more = tuple((field.name, field.text) for field in spec.key_fields)
        fields = (*key_schema.fields, *((added, Schema("string")) for added, _ in more))
        return cls(spec.topic, replace(key_schema, name=spec.key_name, fields=fields), more)

    def key(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the key `value` with the fields that transforms add."""
        return {**value, **dict(self.key_fields)}


def transaction_topic(settings: Settings) -> ControlTopic | None:
    """Return the topic `<topic.prefix>.<topic.transaction>`, or None if transactions are not reported."""
    if not settings.transaction_metadata:
        return None
    own = INVALID.sub("_", settings.topic_delimiter.join((settings.topic_prefix, settings.transaction_topic)))
    return ControlTopic.of(settings, own, TRANSACTION_KEY)


def schema_topic(settings: Settings) -> ControlTopic | None:
    """Return the topic `<topic.prefix>`, or None if schema changes are not reported."""
    if not settings.include_schema_changes:
        return None
    return ControlTopic.of(settings, INVALID.sub("_", settings.topic_prefix), SCHEMA_CHANGE_KEY)


def notification_topic(settings: Settings) -> ControlTopic | None:
    """Return the topic of notifications, or None if they are not sent to a topic."""
    own = settings.notifications.sink_topic
    if not own or "sink" not in settings.notifications.channels:
        return None
    return ControlTopic.of(settings, own, NOTIFICATION_KEY)


def heartbeat_topic(settings: Settings) -> ControlTopic | None:
    """Return the topic of heartbeats, or None without heartbeats.

    The name is `<topic.heartbeat.prefix>.<topic.prefix>` or `topic.heartbeat.name`.
    """
    if not settings.heartbeat.interval_ms:
        return None
    return ControlTopic.of(settings, settings.heartbeat.topic, HEARTBEAT_KEY)


def control_topics(settings: Settings) -> set[str]:
    """Return the names of all control topics that the job may write to."""
    made = (notification_topic, transaction_topic, schema_topic, heartbeat_topic)
    topics = [of(settings) for of in made]
    return {topic.name for topic in topics if topic is not None}
