"""Consumers that follow a topic while the job runs: its notifications, or the marker rows that show its progress."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition


class Follower:
    """A `read_committed` consumer of all partitions of one topic, which need not exist yet.

    A context manager closes it.
    """

    def __init__(self, bootstrap: str, topic: str, *, from_now_on: bool = False) -> None:
        self.topic = topic
        self._first = OFFSET_END if from_now_on else OFFSET_BEGINNING
        self._assigned = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "incsnap-follower",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
                "allow.auto.create.topics": False,
                # Ignore errors of a broker that is away for a moment. Otherwise the error would come in place of the
                # polled records.
                "error_cb": lambda error: None,
                "log_level": 0,
            }
        )

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *exception: object) -> None:
        self._consumer.close()

    def poll(self, seconds: float = 0.0) -> list[Message]:
        """Return new records.

        Wait up to `seconds` for the first. Raise KafkaException if the consumer fails for good.
        """
        if not self._assigned:
            description = self._consumer.list_topics(self.topic, timeout=10).topics[self.topic]
            if description.error is not None or not description.partitions:
                return []
            self._consumer.assign([TopicPartition(self.topic, each, self._first) for each in description.partitions])
            self._assigned = True
        good = []
        # `consume` alone would wait for 500 records or the whole time.
        first = self._consumer.poll(max(seconds, 0.01))
        for message in [first, *self._consumer.consume(499, timeout=0.0)] if first is not None else []:
            error = message.error()
            if error is None:
                good.append(message)
            elif not error.retriable() and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        return good


@dataclass(slots=True)
class Notices:
    """The notifications of a job, in order, as Debezium writes them."""

    follower: Follower  #: a consumer of the topic of notifications
    all: list[dict[str, Any]] = field(default_factory=list)  #: all notifications that were polled so far

    def poll(self, seconds: float = 0.0) -> list[dict[str, Any]]:
        """Read and return the new notifications. Wait up to `seconds` for the first."""
        read = [json.loads(message.value() or b"null") for message in self.follower.poll(seconds)]
        # With `value.converter.schemas.enable` a notification stands beside its schema.
        notifications = [each.get("payload", each) for each in read]
        self.all += notifications
        return notifications

    def of(self, kind: str, signal: str | None = None) -> list[dict[str, Any]]:
        """Return the notifications of one type, such as `COMPLETED`. `signal` restricts them to one signal's id."""
        return [each for each in self.all if each["type"] == kind and signal in (None, each["id"])]

    def completed(self, signal: str) -> bool:
        """Read new notifications, and return True if the snapshot of that signal is complete."""
        with contextlib.suppress(KafkaException):
            self.poll()
        return bool(self.of("COMPLETED", signal))
