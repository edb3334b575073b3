"""The signal topic, with one partition. The key is the job's `topic.prefix`, the value is a JSON signal.

The caller passes the offset to read next and gets the following one. The job saves it in its own offset together with
the effects of the signal, so a signal is obeyed exactly once. Debezium commits to a consumer group by time instead, so
there a crash can lose a signal. The first time, and when the topic no longer has the offset, reading starts at the
earliest record, as in Debezium.
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
#: Most records of one poll, because a flood of signals must not delay a batch.
_MOST = 1000


class SignalTopic:
    """A consumer of partition 0. It never creates the topic, but waits until the topic exists."""

    def __init__(
        self, bootstrap_servers: str, topic: str, key: str, group_id: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self._topic, self._key = topic, key.encode()
        self._next: int | None = None
        self._assigned = False
        self._missing = False
        #: Codes of errors that were logged. Each is logged once until a message arrives.
        self._reported: set[int] = set()
        self._consumer = Consumer(
            {
                **Brokers(f"The signal topic {topic}").settings(),
                # The broker answers at once when there is a record. 100 ms limits the time of close().
                "fetch.wait.max.ms": "100",
                # A new topic is found within a second of its creation.
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
        """Return the records from offset `position` on (None at first).

        Wait at most `wait_seconds` for the first one.
        """
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
        """Close the consumer."""
        self._consumer.close()

    def _assign(self, offset: int | None) -> None:
        start = OFFSET_BEGINNING if offset is None else offset
        # Drop records that were fetched ahead from another offset.
        self._consumer.unassign()
        self._consumer.assign([TopicPartition(self._topic, 0, start)])
        self._next = offset
        self._assigned = True

    def _trouble(self, error: Any) -> None:
        """Log an error of the consumer, once."""
        if error.code() in _MISSING:
            if not self._missing:
                log.info("The signal topic %s does not exist yet; waiting for it", self._topic)
            self._missing = True
        elif error.code() not in self._reported:
            # librdkafka retries by itself. The stream must not stop because signals are unavailable for a while.
            self._reported.add(error.code())
            log.warning("The signal topic %s: %s", self._topic, error.str())

    def _record(self, message: Any, place: int) -> list[SignalRecord]:
        """Return the record in a message, or [] if the message is for another job or empty."""
        if message.key() != self._key:
            log.info("A signal at offset %s has another key than %s: not for this job", place, self._key.decode())
            return []
        value = message.value()
        if value is None:
            return []
        return [record_of(value, str(place), "kafka")]
