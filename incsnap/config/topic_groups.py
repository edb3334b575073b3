"""Settings for creating missing topics."""

from __future__ import annotations

from pydantic import Field

from incsnap.config.frozen import Frozen
from signals.regex import any_matches


class TopicGroup(Frozen):
    """A group of topics with equal settings, from Kafka Connect's topic.creation.<name>.*."""

    name: str = "default"
    include: tuple[str, ...] = (".*",)  #: Java regexes of topic names
    exclude: tuple[str, ...] = ()  #: Java regexes of topic names
    partitions: int = -1  #: -1: the broker's default
    replication_factor: int = -1  #: -1: the broker's default
    #: further settings of the topics with Kafka's names, for example `cleanup.policy`
    config: dict[str, str] = Field(default_factory=dict)

    def takes(self, topic: str) -> bool:
        """Return True if the topic belongs to the group."""
        return any_matches(self.include, topic, ignore_case=False) and not any_matches(
            self.exclude, topic, ignore_case=False
        )


class TopicCreation(Frozen):
    """The groups of topics, and the group for all other topics."""

    groups: tuple[TopicGroup, ...] = ()  #: the first group that takes a topic is used
    default: TopicGroup = TopicGroup()  #: for topics that no group takes

    def group_of(self, topic: str) -> TopicGroup:
        """Return the group of `topic`."""
        return next((group for group in self.groups if group.takes(topic)), self.default)
