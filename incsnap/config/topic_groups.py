"""How topics that are missing are made."""

from __future__ import annotations

from pydantic import Field

from incsnap.config.frozen import Frozen
from signals.regex import any_matches


class TopicGroup(Frozen):
    """Topics that are made alike, by Kafka Connect's topic.creation.<name>.*; the patterns are Java regexes."""

    name: str = "default"
    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    #: -1: the broker's default
    partitions: int = -1
    replication_factor: int = -1
    #: further topic settings, by Kafka's names (``cleanup.policy``)
    config: dict[str, str] = Field(default_factory=dict)

    def takes(self, topic: str) -> bool:
        return any_matches(self.include, topic, ignore_case=False) and not any_matches(
            self.exclude, topic, ignore_case=False
        )


class TopicCreation(Frozen):
    """The first of ``groups`` that takes a topic says how it is made, else ``default``."""

    groups: tuple[TopicGroup, ...] = ()
    default: TopicGroup = TopicGroup()

    def group_of(self, topic: str) -> TopicGroup:
        return next((group for group in self.groups if group.takes(topic)), self.default)
