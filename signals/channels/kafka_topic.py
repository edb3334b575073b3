"""A Kafka topic of one partition: the key is the job's ``topic.prefix``, the value a JSON signal.

The offset to read next is handed in and handed back; the job saves it in its own offset together with what the signal
has changed, so a signal is obeyed exactly once. (Debezium commits to a consumer group by time: a crash can lose one.)
The first time, and when the topic no longer holds the offset, reading starts at the earliest record, as in Debezium.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from signals.channels import Polled
from signals.channels.brokers import Brokers
from signals.channels.file import record_of
from signals.records import SignalRecord

log = logging.getLogger(__name__)

_MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
#: Records taken in one poll: a flood of signals must not hold a batch up.
_MOST = 1000


class SignalTopic:
    """One consumer, assigned partition 0. It never creates the topic: it waits for it without complaint."""

    def __init__(
        self, bootstrap_servers: str, topic: str, key: str, group_id: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self._topic, self._key = topic, key.encode()
        self._next: int | None = None
        self._assigned = False
        self._missing = False
        #: Errors that were told; each is told once until a message comes.
        self._reported: set[int] = set()
        self._consumer = Consumer(
            {
                **Brokers(f"The signal topic {topic}").settings(),
                # Answers at once when there is a record; 100 ms bound how long close() can take.
                "fetch.wait.max.ms": "100",
                # A topic that does not exist yet is found within a second of its creation.
                "topic.metadata.refresh.interval.ms": "1000",
                **(settings or {}),
                "bootstrap.servers": bootstrap_servers,
                "group.id": group_id,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": "false",
                "enable.partition.eof": "false",
                "logger": logging.getLogger(__name__ + ".client"),
            }
        )

    def poll(self, position: Any, wait_seconds: float = 0.0) -> Polled:
        """Records from offset ``position`` on (``None`` at first); waits ``wait_seconds`` for the first of them."""
        offset = position if isinstance(position, int) else None
        if offset != self._next or not self._assigned:
            self._assign(offset)
        records: list[SignalRecord] = []
        message = self._consumer.poll(wait_seconds)
        for _ in range(_MOST):
            if message is None:
                break
            error = message.error()
            if error is not None:
                self._trouble(error)
            else:
                self._missing = False
                self._reported.clear()
                place = int(message.offset() or 0)
                records.extend(self._record(message, place))
                self._next = place + 1
            message = self._consumer.poll(0)
        return Polled(tuple(records), self._next)

    def close(self) -> None:
        self._consumer.close()

    def _assign(self, offset: int | None) -> None:
        start = OFFSET_BEGINNING if offset is None else offset
        # What was fetched ahead from another place is dropped.
        self._consumer.unassign()
        self._consumer.assign([TopicPartition(self._topic, 0, start)])
        self._next = offset
        self._assigned = True

    def _trouble(self, error: Any) -> None:
        if error.code() in _MISSING:
            if not self._missing:
                log.info("The signal topic %s does not exist yet; waiting for it", self._topic)
            self._missing = True
        elif error.code() not in self._reported:
            # librdkafka goes on by itself; the stream must not stop because nobody can signal for a while.
            self._reported.add(error.code())
            log.warning("The signal topic %s: %s", self._topic, error.str())

    def _record(self, message: Any, place: int) -> list[SignalRecord]:
        if message.key() != self._key:
            log.info("A signal at offset %s has another key than %s: not for this job", place, self._key.decode())
            return []
        value = message.value()
        if value is None:
            return []
        return [record_of(value, str(place), "kafka")]
