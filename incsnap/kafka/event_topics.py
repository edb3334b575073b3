"""Topics that rows of an outbox table name.

The sink looks them up, and creates missing ones, when it sends the events.
"""

from __future__ import annotations

import time

from incsnap.config.settings import TopicCreation
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, ensure_topics

#: Seconds for which a topic's number of partitions is cached. A deleted topic must be created again at some time.
_KNOWN_SECONDS = 60.0
_kept: dict[str, EventTopics] = {}


class EventTopics:
    """A cache of the partition counts of such topics."""

    def __init__(self, client: ClientSettings, creation: TopicCreation) -> None:
        self._admin = admin_client(client)
        self._creation = creation
        self._known: dict[str, tuple[int, float]] = {}

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of `topic`, which is created if it does not exist.

        Raise SinkError if Kafka cannot be asked, or refuses to create the topic.
        """
        count, until = self._known.get(topic, (0, 0.0))
        if time.monotonic() > until:
            group = self._creation.group_of(topic)
            made = ensure_topics(self._admin, [topic], group.partitions, group.replication_factor, group.config)
            count = made[topic]
            self._known[topic] = (count, time.monotonic() + _KNOWN_SECONDS)
        return count


def event_topics(client: ClientSettings, creation: TopicCreation) -> EventTopics:
    """Return the worker's EventTopics for these settings.

    It is kept, because an admin client has its own connections.
    """
    who = repr((sorted(client.for_admin().items()), creation.model_dump_json()))
    if who not in _kept:
        _kept[who] = EventTopics(client, creation)
    return _kept[who]
