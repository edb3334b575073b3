"""Tests that a topic without a leader is not taken for a topic that does not exist."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from incsnap.errors import ServerUnreachable, SinkError
from incsnap.kafka import topics
from incsnap.kafka.topics import ensure_topics, partition_counts


class Answer:
    def __init__(self, leaders: list[object] | None) -> None:
        self._leaders = leaders

    def result(self) -> Any:
        if self._leaders is None:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return SimpleNamespace(partitions=[SimpleNamespace(leader=leader) for leader in self._leaders])


class Admin:
    """A cluster whose topic `led` has two leaders, and whose topic `half` has one leader for two partitions."""

    def describe_topics(self, collection: Any, **_: object) -> dict[str, Answer]:
        leaders: dict[str, list[object]] = {"led": [1, 2], "half": [1, None]}
        return {name: Answer(leaders.get(name)) for name in collection.topic_names}

    def create_topics(self, topics: Any, **_: object) -> dict[str, Any]:
        class Exists:
            def result(self) -> None:
                raise KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS))

        return {topic.topic: Exists() for topic in topics}


def test_a_topic_without_a_leader_is_an_outage_and_not_a_missing_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    admin: Any = Admin()
    monkeypatch.setattr(topics, "TopicCollection", lambda names: SimpleNamespace(topic_names=names))

    assert partition_counts(admin, ["led", "gone"]) == {"led": 2}
    with pytest.raises(ServerUnreachable, match="a partition of topic half has no leader"):
        partition_counts(admin, ["led", "half"])


def test_a_topic_without_a_leader_is_waited_for_where_topics_are_created(monkeypatch: pytest.MonkeyPatch) -> None:
    admin: Any = Admin()
    monkeypatch.setattr(topics, "TopicCollection", lambda names: SimpleNamespace(topic_names=names))
    monkeypatch.setattr(topics, "_READY_SECONDS", 0.1)

    assert ensure_topics(admin, ["led"]) == {"led": 2}
    with pytest.raises(SinkError, match="have no leaders after"):
        ensure_topics(admin, ["half"])
