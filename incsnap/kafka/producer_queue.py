"""Filling the queue of a producer, in order. If librdkafka cannot take a record now, the queue waits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from incsnap.kafka import librdkafka as c
from incsnap.kafka.bounded_calls import BoundedCalls
from incsnap.kafka.calls_with_headers import CallsWithHeaders, arguments_of
from incsnap.kafka.outgoing_messages import OutgoingMessages, SingleRecord
from incsnap.kafka.producer_errors import ProducerErrors
from incsnap.kafka.refusals import ClientError

# Most messages of one call. Each takes 72 bytes, and brokers get the first ones while the next ones are copied.
_MESSAGES_A_CALL = 20_000
_QUEUE_FULL, _UNKNOWN_PARTITION = KafkaError._QUEUE_FULL, KafkaError._UNKNOWN_PARTITION
#: Codes after which a retry may help. Any other code ends the transaction.
_PASSING = frozenset((_QUEUE_FULL, _UNKNOWN_PARTITION))
#: Seconds until every broker knows the partitions that were added to a topic. The planner may have learned of them from
#: another broker than the one that the producer asks.
_SPREAD_SECONDS = 5.0


class ProducerQueue:
    """The queue of the producer `rk`. Only the producer's thread uses it.

    Its methods raise ClientError. `patience` is how many seconds a method waits for room before it gives up.
    """

    def __init__(self, lib: Any, rk: int, calls: BoundedCalls, errors: ProducerErrors) -> None:
        self._lib = lib
        self._rk = rk
        self._calls = calls
        self._errors = errors
        self._topics: dict[str, int] = {}
        #: The topics of the open transaction.
        self._written: set[str] = set()

    def begin(self) -> None:
        """Record that a transaction begins."""
        self._written.clear()

    def gone(self) -> str | None:
        """Return a topic of the open transaction that the brokers do not have any more, or None."""
        deadline = time.monotonic() + c.REACH_SECONDS
        for topic in sorted(self._written):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if c.look_up(self._lib, self._rk, self._topics[topic], left) == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return topic
        return None

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch, patience: float) -> None:
        """Queue all `records`, with the meaning of `OutgoingMessages`. Order is kept within a partition."""
        if not records.num_rows:
            return
        messages = OutgoingMessages(topics, records)
        for topic, begin, end in messages.calls():
            handle = self._topic(topic)
            if begin in messages.alone:
                self._enqueue_one(handle, messages.single(begin), patience)
            elif messages.shared_headers:
                template = SingleRecord(0, None, None, messages.shared_headers)
                calls = CallsWithHeaders(
                    arguments_of(handle, template), messages.array[begin:end], messages.times(begin, end)
                )
                self._enqueue_each(topic, handle, calls, patience)
            else:
                self._enqueue(topic, handle, messages.array[begin:end], patience)

    def send_one(self, topic: str, record: SingleRecord, patience: float) -> None:
        """Queue one record."""
        self._enqueue_one(self._topic(topic), record, patience)

    def close(self) -> None:
        """Release the topic handles."""
        for handle in self._topics.values():
            self._lib.rd_kafka_topic_destroy(handle)
        self._topics.clear()

    def _enqueue(self, topic: str, handle: int, messages: Any, patience: float) -> None:
        """Queue messages of one partition, and wait while the queue is full.

        librdkafka stops at the first message that finds the queue full. So the messages that are left form a tail, and
        the order is kept.
        """
        at = 0
        partition = int(messages["partition"][0])
        began = time.monotonic()
        while at < len(messages):
            part = messages[at : at + _MESSAGES_A_CALL]
            taken = self._lib.rd_kafka_produce_batch(handle, partition, c.MSG_F_COPY, part.ctypes.data, len(part))
            if taken == len(part):
                at += taken
                continue
            first = int(np.argmax(part["err"] != 0))
            code = int(part["err"][first])
            passes = code in _PASSING and not (part["err"][first:] != code).any()
            if not passes or not self._waited(code, handle, began, patience):
                key, key_len, size, number = (int(part[name][first]) for name in ("key", "key_len", "len", "_private"))
                self._errors.note(code, topic, key, key_len, size, number - 1, by_client=True)
                raise self._errors.failure(self._rk, code)
            at += first

    def _enqueue_each(self, topic: str, handle: int, calls: CallsWithHeaders, patience: float) -> None:
        """Queue messages with one call for each, and wait while the queue is full."""
        produce, rk, count = self._lib.rd_kafka_produceva, self._rk, calls.arguments
        began = time.monotonic()
        for number, address in calls.addresses():
            while error := produce(rk, address, count):
                try:
                    self._errors.check(error)
                except ClientError as refused:
                    if refused.code not in _PASSING or not self._waited(refused.code, handle, began, patience):
                        self._errors.note(refused.code, topic, *calls.described(number), by_client=True)
                        raise self._errors.failure(self._rk, refused.code) from None

    def _enqueue_one(self, handle: int, record: SingleRecord, patience: float) -> None:
        """Queue one record, and wait while the queue is full. Raise the producer's error if it is refused."""
        arguments = arguments_of(handle, record)
        began = time.monotonic()
        while True:
            try:
                return self._errors.check(self._lib.rd_kafka_produceva(self._rk, arguments, len(arguments)))
            except ClientError as error:
                if error.code not in _PASSING or not self._waited(error.code, handle, began, patience):
                    topic = self._lib.rd_kafka_topic_name(handle).decode()
                    key, size = record.key or b"", len(record.value or b"")
                    self._errors.note(error.code, topic, key, len(key), size, record.number, by_client=True)
                    raise self._errors.failure(self._rk, error.code) from None

    def _waited(self, code: int, handle: int, began: float, patience: float) -> bool:
        """Wait a moment before a retry, and return False if a retry cannot help.

        For a full queue, wait for room. For an unknown partition, look up the topic: librdkafka itself does so only
        every five minutes, and a kept producer may outlive a topic's number of partitions. Raise ClientError if the
        queue stays full.
        """
        passed = time.monotonic() - began
        if code == _UNKNOWN_PARTITION:
            if passed > _SPREAD_SECONDS:
                return False
            self._calls.run("metadata", lambda: c.look_up(self._lib, self._rk, handle), c.REACH_SECONDS)
        elif passed > patience:
            raise ClientError(_QUEUE_FULL, "the brokers take no records: the queue has been full for too long")
        else:
            self._lib.rd_kafka_poll(self._rk, 5)
        return True

    def _topic(self, topic: str) -> int:
        """Return librdkafka's handle of the topic. Raise ClientError if the name is not possible."""
        self._written.add(topic)
        handle = self._topics.get(topic)
        if handle is None:
            handle = self._topics[topic] = self._lib.rd_kafka_topic_new(self._rk, topic.encode(), None)
            if not handle:
                del self._topics[topic]
                self._written.discard(topic)
                raise ClientError(KafkaError._INVALID_ARG, f"{topic!r} is not a valid topic name")
        return handle
