"""All names of topics that the settings give, as Debezium names them, and those behind the transforms."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from incsnap.config.settings import Settings
from incsnap.connect.field_names import unicode_escape
from incsnap.connect.schema import Schema
from incsnap.envelope.control_records import SCHEMA_CHANGE_KEY, TRANSACTION_KEY
from incsnap.envelope.heartbeat_records import HEARTBEAT_KEY
from incsnap.envelope.notification_records import NOTIFICATION_KEY
from incsnap.envelope.written import topics
from incsnap.tables import TableId
from incsnap.transforms.chain import passed
from incsnap.transforms.form import Form, Value

#: What Kafka refuses in a topic's name.
INVALID = re.compile(r"[^a-zA-Z0-9._-]")
#: What the Unicode strategy of Debezium replaces.
_ESCAPED = re.compile(r"[^a-zA-Z0-9.-]")
#: Kafka's bound for a topic's name.
LONGEST_NAME = 249


def topic_name(prefix: str, delimiter: str, table: TableId, *, unicode: bool = False) -> str:
    """Characters that Kafka refuses become ``_``; at most 249 are kept. Two tables may so share a topic, as in
    Debezium. ``unicode``: they become ``_u`` and the number of the character, as ``_`` does, so that names differ.
    """
    name = delimiter.join((prefix, table.database, table.table))
    if unicode:
        return _ESCAPED.sub(lambda match: unicode_escape(match[0]), name)[:LONGEST_NAME]
    return INVALID.sub("_", name)[:LONGEST_NAME]


def topic_of(settings: Settings, table: TableId) -> str:
    """Before transforms."""
    return topic_name(settings.topic_prefix, settings.topic_delimiter, table, unicode=settings.unicode_topics)


def topics_of(settings: Settings, table: TableId) -> tuple[str, ...]:
    """All that records of the table are sent to, that of rows read by SELECT first; none where all are dropped. Raises
    ``ConfigError`` where a transform cannot be asked."""
    return topics(topic_of(settings, table), settings.transforms, settings.formats.schema_names)


@dataclass(frozen=True, slots=True)
class ControlTopic:
    """``name`` and the schema of keys behind the transforms; ``key_fields``: what these add to a key."""

    name: str
    key_schema: Schema
    key_fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, settings: Settings, name: str, key_schema: Schema) -> ControlTopic | None:
        """None where a transform drops such records. Raises ``ConfigError`` where one cannot be asked about them."""
        form = passed(settings.transforms, Form(name, "", Value.OTHER, key_schema.name or ""))
        if form is None:
            return None
        more = tuple((field.name, field.text) for field in form.key_fields)
        fields = (*key_schema.fields, *((added, Schema("string")) for added, _ in more))
        return cls(form.topic, replace(key_schema, name=form.key_name, fields=fields), more)

    def key(self, value: dict[str, Any]) -> dict[str, Any]:
        return {**value, **dict(self.key_fields)}


def transaction_topic(settings: Settings) -> ControlTopic | None:
    """``<topic.prefix>.<topic.transaction>``; None where transactions are not told."""
    if not settings.transaction_metadata:
        return None
    own = INVALID.sub("_", settings.topic_delimiter.join((settings.topic_prefix, settings.transaction_topic)))
    return ControlTopic.of(settings, own, TRANSACTION_KEY)


def schema_topic(settings: Settings) -> ControlTopic | None:
    """``<topic.prefix>``; None where changes of definitions are not told."""
    if not settings.include_schema_changes:
        return None
    return ControlTopic.of(settings, INVALID.sub("_", settings.topic_prefix), SCHEMA_CHANGE_KEY)


def notification_topic(settings: Settings) -> ControlTopic | None:
    """None where nothing is told to a topic."""
    own = settings.notifications.sink_topic
    if not own or "sink" not in settings.notifications.channels:
        return None
    return ControlTopic.of(settings, own, NOTIFICATION_KEY)


def heartbeat_topic(settings: Settings) -> ControlTopic | None:
    """``<topic.heartbeat.prefix>.<topic.prefix>`` or ``topic.heartbeat.name``; None where there are no heartbeats."""
    if not settings.heartbeat.interval_ms:
        return None
    return ControlTopic.of(settings, settings.heartbeat.topic, HEARTBEAT_KEY)


def control_topics(settings: Settings) -> set[str]:
    """Those that this job may write to."""
    made = (notification_topic, transaction_topic, schema_topic, heartbeat_topic)
    topics = [of(settings) for of in made]
    return {topic.name for topic in topics if topic is not None}
