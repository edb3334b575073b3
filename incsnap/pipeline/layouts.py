"""The topics of a job: made when they are first written to, and how many partitions each has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from incsnap.config.settings import Settings, TopicGroup
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics
from incsnap.pipeline.control_topics import control_topics
from incsnap.pipeline.naming import topic_of
from incsnap.snapshot.offset import Layout
from incsnap.tables import TableId


class Layouts:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = admin_client(ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer))
        self._checked = False

    def first(self, buckets: int, tables: Iterable[TableId]) -> Layout:
        """Of a new job."""
        self._ensure_control_topic(buckets)
        return self.extended(Layout(buckets), tables)

    def checked(self, layout: Layout) -> tuple[Layout, bool]:
        """Topics that were given more partitions since are noticed at start-up; what is in flight is outdated then."""
        if self._checked:
            return layout, False
        self._ensure_control_topic(layout.buckets)
        now = self._ensured(layout.partitions)
        self._checked = True
        return replace(layout, partitions=now), any(now[topic] != n for topic, n in layout.partitions.items())

    def extended(self, layout: Layout, tables: Iterable[TableId], topics: Iterable[str] = ()) -> Layout:
        """The layout with the topics of ``tables``, ``topics``, and those of no table."""
        wanted = {topic_of(self._settings, table) for table in tables} | control_topics(self._settings)
        missing = wanted.union(topics).difference(layout.partitions)
        return replace(layout, partitions={**layout.partitions, **self._ensured(missing)}) if missing else layout

    def _ensure_control_topic(self, buckets: int) -> None:
        replication = self._settings.topic_creation.default.replication_factor
        ensure_control_topic(self._admin, self._settings.topic_prefix, buckets, replication)

    def _ensured(self, names: Collection[str]) -> dict[str, int]:
        groups: dict[str, tuple[TopicGroup, list[str]]] = {}
        for name in names:
            group = self._settings.topic_creation.group_of(name)
            groups.setdefault(group.name, (group, []))[1].append(name)
        counts: dict[str, int] = {}
        for group, alike in groups.values():
            counts |= ensure_topics(self._admin, alike, group.partitions, group.replication_factor, group.config)
        return counts
