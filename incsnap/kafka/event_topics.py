"""Topics that only the rows of an outbox table name: looked up, and made, where their events are sent."""

from __future__ import annotations

import time

from incsnap.config.topic_groups import TopicCreation
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, ensure_topics

#: Seconds for which the number of a topic's partitions is believed: one that was deleted must come back some time.
_KNOWN_SECONDS = 60.0
_kept: dict[str, EventTopics] = {}


class EventTopics:
    def __init__(self, client: ClientSettings, creation: TopicCreation) -> None:
        self._admin = admin_client(client)
        self._creation = creation
        self._known: dict[str, tuple[int, float]] = {}

    def partitions(self, topic: str) -> int:
        """How many it has; it is made where there is none. Raises ``SinkError``."""
        count, until = self._known.get(topic, (0, 0.0))
        if time.monotonic() > until:
            group = self._creation.group_of(topic)
            made = ensure_topics(self._admin, [topic], group.partitions, group.replication_factor, group.config)
            count = made[topic]
            self._known[topic] = (count, time.monotonic() + _KNOWN_SECONDS)
        return count


def event_topics(client: ClientSettings, creation: TopicCreation) -> EventTopics:
    """One for the worker's life: an admin client has connections of its own."""
    who = repr((sorted(client.for_admin().items()), creation.model_dump_json()))
    if who not in _kept:
        _kept[who] = EventTopics(client, creation)
    return _kept[who]
