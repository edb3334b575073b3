"""The topics of a job: created before they are first written to, each with its number of partitions.

The layout in an offset names only the topics that its batch writes to, and those that windows in flight were made for.
All others can be looked up. So the offset does not grow with every table that was ever changed, and the topic of a
dropped table is not created again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import replace

from incsnap.config.settings import Settings, TopicGroup
from incsnap.config.topics import control_topics, topics_of
from incsnap.errors import OffsetError, SinkError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics
from incsnap.snapshot.offset import TopicLayout
from incsnap.tables import TableId

#: The producer's setting for how often the number of a topic's partitions is asked for, and its default in Java.
_LOOKUP, _LOOKUP_MS = "metadata.max.age.ms", "300000"


class FrameLayouts:
    """The topics of a DataFrame. They are only names: each has one partition, and none is created."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def first(self, buckets: int, tables: Iterable[TableId]) -> TopicLayout:
        """Return the layout that a new job begins with."""
        return TopicLayout(buckets)

    def outdated(self, layout: TopicLayout, in_flight: Iterable[TableId]) -> bool:
        """Whether a window in flight must be read again, because the settings give the topic of its table another name
        now.

        `in_flight`: tables of the windows.
        """
        return any(layout.partitions.get(topic) != 1 for table in in_flight for topic in self._topics(table))

    def of(self, layout: TopicLayout, tables: Iterable[TableId], topics: Iterable[str] = ()) -> TopicLayout:
        """Return the layout of a batch that writes to `tables` or has windows of them in flight."""
        return replace(layout, partitions={topic: 1 for table in sorted(tables) for topic in self._topics(table)})

    def ready(self, layout: TopicLayout) -> None:
        """Return at once: a DataFrame has no topic that could be missing."""

    def _topics(self, table: TableId) -> tuple[str, ...]:
        return topics_of(self._settings, table)


class KafkaLayouts:
    """The topics of a job in Kafka. A missing topic is created as `topic.creation.*` says."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = admin_client(ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer))
        #: Topic -> number of its partitions, as far as it was needed since the last lookup.
        self._partitions: dict[str, int] = {}
        self._lookup_seconds = int(settings.kafka.producer.get(_LOOKUP, _LOOKUP_MS)) / 1000
        self._lookup_at = 0.0

    def first(self, buckets: int, tables: Iterable[TableId]) -> TopicLayout:
        """Return the layout that a new job begins with, after creating the topics of `tables` and the job's own
        topics."""
        self._ensure_control_topic(buckets)
        self._counts(self._topics(tables) | control_topics(self._settings))
        return TopicLayout(buckets)

    def outdated(self, layout: TopicLayout, in_flight: Iterable[TableId]) -> bool:
        """Whether windows in flight must be read again, because their topics have other names or other numbers of
        partitions.

        `in_flight` are the tables of the windows. Topics are looked up at the start and each `metadata.max.age.ms`;
        between two lookups the result is False. Raise SinkError if the brokers do not answer at the start.
        """
        if time.monotonic() < self._lookup_at:
            return False
        is_first, known = not self._lookup_at, self._partitions
        if is_first:
            self._ensure_control_topic(layout.buckets)
        self._partitions = {}
        try:
            counts = self._counts(self._topics(in_flight))
        except SinkError:
            if is_first:
                raise
            # Brokers that do not answer must end only a batch that needs them.
            self._partitions, counts = known, {}
        self._lookup_at = time.monotonic() + self._lookup_seconds
        return any(layout.partitions.get(topic) != count for topic, count in counts.items())

    def of(self, layout: TopicLayout, tables: Iterable[TableId], topics: Iterable[str] = ()) -> TopicLayout:
        """Return the layout of a batch that writes to `tables` or has windows of them in flight, after creating missing
        topics.

        `topics` are created too, but they are not in the layout.
        """
        self._counts(control_topics(self._settings).union(topics))
        return replace(layout, partitions=self._counts(self._topics(tables)))

    def ready(self, layout: TopicLayout) -> None:
        """Create the missing topics of a batch that is repeated. Its records already have their partitions.

        A topic that was deleted meanwhile is created again with as many partitions. Raise OffsetError if somebody has
        created it again with fewer partitions.
        """
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
        """Return the number of partitions of each topic, after creating missing topics."""
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


#: The topics of a job: which exist, and how many partitions each has.
Layouts = KafkaLayouts | FrameLayouts


def layouts_of(settings: Settings) -> Layouts:
    """Return the topics of a job in Kafka, or those of a DataFrame if the settings are for one."""
    return KafkaLayouts(settings) if settings.frame is None else FrameLayouts(settings)
