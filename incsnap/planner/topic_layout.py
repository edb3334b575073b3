"""The topics of a job: made when they are first written to, and how many partitions each has.

The layout in an offset names what its batch writes to and what windows in flight were cut for, and nothing else: what
it does not name can be looked up, so the offset does not grow with every table that was ever changed, and the topic of
a table that is gone is not made again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Protocol

from incsnap.config.settings import Settings
from incsnap.config.topic_groups import TopicGroup
from incsnap.config.topics import control_topics, topics_of
from incsnap.errors import OffsetError, SinkError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics
from incsnap.snapshot.offset import TopicLayout
from incsnap.tables import TableId

#: How often the number of a topic's partitions is asked for: a producer's setting, and the default of a Java producer.
_LOOK, _LOOK_MS = "metadata.max.age.ms", "300000"


class Layouts(Protocol):
    """What the planner asks of the topics, wherever records go."""

    def first(self, buckets: int, tables: Iterable[TableId]) -> TopicLayout: ...
    def checked(self, layout: TopicLayout, in_flight: Iterable[TableId]) -> bool: ...
    def of(self, layout: TopicLayout, tables: Iterable[TableId], topics: Iterable[str] = ()) -> TopicLayout: ...
    def ready(self, layout: TopicLayout) -> None: ...


def layouts_of(settings: Settings) -> Layouts:
    return KafkaLayouts(settings) if settings.frame is None else FrameLayouts(settings)


class FrameLayouts:
    """The layout of a DataFrame, whose topics are names alone: one partition each, and nothing to be made."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def first(self, buckets: int, tables: Iterable[TableId]) -> TopicLayout:
        return TopicLayout(buckets)

    def checked(self, layout: TopicLayout, in_flight: Iterable[TableId]) -> bool:
        return any(layout.partitions.get(topic) != 1 for table in in_flight for topic in self._topics(table))

    def of(self, layout: TopicLayout, tables: Iterable[TableId], topics: Iterable[str] = ()) -> TopicLayout:
        return replace(layout, partitions={topic: 1 for table in sorted(tables) for topic in self._topics(table)})

    def ready(self, layout: TopicLayout) -> None:
        """There is nothing that could be missing."""

    def _topics(self, table: TableId) -> tuple[str, ...]:
        return topics_of(self._settings, table)


class KafkaLayouts:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = admin_client(ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer))
        #: As they were found when they were first needed behind the last look.
        self._partitions: dict[str, int] = {}
        self._look_seconds = int(settings.kafka.producer.get(_LOOK, _LOOK_MS)) / 1000
        self._look_at = 0.0

    def first(self, buckets: int, tables: Iterable[TableId]) -> TopicLayout:
        """The layout that a new job begins with. The topics of ``tables`` are made."""
        self._ensure_control_topic(buckets)
        self._counts(self._topics(tables) | control_topics(self._settings))
        return TopicLayout(buckets)

    def checked(self, layout: TopicLayout, in_flight: Iterable[TableId]) -> bool:
        """At start-up, and from time to time: are topics of windows in flight (``in_flight``) other ones than these
        were cut for, by name or by number of partitions? Then they must be read again."""
        if time.monotonic() < self._look_at:
            return False
        is_first, known = not self._look_at, self._partitions
        if is_first:
            self._ensure_control_topic(layout.buckets)
        self._partitions = {}
        try:
            counts = self._counts(self._topics(in_flight))
        except SinkError:
            if is_first:
                raise
            # Brokers that do not answer end the batch that needs them, not one that has nothing for them.
            self._partitions, counts = known, {}
        self._look_at = time.monotonic() + self._look_seconds
        return any(layout.partitions.get(topic) != count for topic, count in counts.items())

    def of(self, layout: TopicLayout, tables: Iterable[TableId], topics: Iterable[str] = ()) -> TopicLayout:
        """The layout of a batch that writes to ``tables`` or has windows of them in flight. ``topics`` and those of no
        table are made as well."""
        self._counts(control_topics(self._settings).union(topics))
        return replace(layout, partitions=self._counts(self._topics(tables)))

    def ready(self, layout: TopicLayout) -> None:
        """Prepares a batch that is repeated, whose records have their partitions: a topic that was deleted meanwhile is
        made again. ``OffsetError`` where somebody has made it again with fewer partitions."""
        self._ensure_control_topic(layout.buckets)
        counts: dict[str, int] = {}
        for topic, planned in layout.partitions.items():
            group = self._settings.topic_creation.group_of(topic)
            counts |= ensure_topics(self._admin, [topic], planned, group.replication_factor, group.config)
        fewer = [f"{topic} has {counts[topic]}, not {n}" for topic, n in layout.partitions.items() if counts[topic] < n]
        if fewer:
            raise OffsetError(
                f"the batch under way was planned for topics with more partitions: {'; '.join(fewer)}",
                "Was a topic deleted and made again? Give it as many partitions as before (kafka-topics.sh --alter"
                " --partitions), and start.",
            )

    def _topics(self, tables: Iterable[TableId]) -> set[str]:
        return {topic for table in tables for topic in topics_of(self._settings, table)}

    def _ensure_control_topic(self, buckets: int) -> None:
        replication = self._settings.topic_creation.default.replication_factor
        ensure_control_topic(self._admin, self._settings.topic_prefix, buckets, replication)

    def _counts(self, names: Collection[str]) -> dict[str, int]:
        """Partitions of each; the missing ones are made."""
        groups: dict[str, tuple[TopicGroup, list[str]]] = {}
        for name in names:
            if name not in self._partitions:
                group = self._settings.topic_creation.group_of(name)
                groups.setdefault(group.name, (group, []))[1].append(name)
        for group, alike in groups.values():
            self._partitions |= ensure_topics(
                self._admin, alike, group.partitions, group.replication_factor, group.config
            )
        return {name: self._partitions[name] for name in sorted(names)}
