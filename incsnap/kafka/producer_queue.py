"""The queue of a producer, from the side that fills it: what librdkafka cannot take now is waited for, in order."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from incsnap.kafka import librdkafka as c
from incsnap.kafka.left_behind import Calls
from incsnap.kafka.metadata_request import REACH_SECONDS, look_up
from incsnap.kafka.outgoing_messages import OutgoingMessages, SingleRecord
from incsnap.kafka.producer_errors import ProducerErrors
from incsnap.kafka.refusals import ClientError

# At most so many messages a call: 72 bytes each, and the sending thread sees the first ones while the next are copied.
_MESSAGES_A_CALL = 20_000
_QUEUE_FULL, _UNKNOWN_PARTITION = KafkaError._QUEUE_FULL, KafkaError._UNKNOWN_PARTITION
#: What passes; any other code is the end of the transaction.
_PASSING = frozenset((_QUEUE_FULL, _UNKNOWN_PARTITION))
#: Seconds until each broker knows of partitions that a topic was given: the planner has them from another one.
_SPREAD_SECONDS = 5.0
#: What comes before the headers in each call for one record.
_VTYPES = (
    c.VTYPE_RKT,
    c.VTYPE_PARTITION,
    c.VTYPE_MSGFLAGS,
    c.VTYPE_TIMESTAMP,
    c.VTYPE_OPAQUE,
    c.VTYPE_KEY,
    c.VTYPE_VALUE,
)


class ProducerQueue:
    """The queue of the producer ``rk`` is used by its thread alone. Every method raises ``ClientError``. ``patience``:
    seconds to wait for room before giving up."""

    def __init__(self, lib: Any, rk: int, calls: Calls, errors: ProducerErrors) -> None:
        self._lib = lib
        self._rk = rk
        self._calls = calls
        self._errors = errors
        self._topics: dict[str, int] = {}
        #: Those of the open transaction.
        self._written: set[str] = set()

    def begin(self) -> None:
        """A transaction begins."""
        self._written.clear()

    def gone(self) -> str | None:
        """A topic of the open transaction that the brokers do not have any more."""
        deadline = time.monotonic() + REACH_SECONDS
        for topic in sorted(self._written):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if look_up(self._lib, self._rk, self._topics[topic], left) == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return topic
        return None

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch, patience: float) -> None:
        """Queues all ``records``, as ``OutgoingMessages`` are, in order within a partition."""
        if not records.num_rows:
            return
        messages = OutgoingMessages(topics, records)
        for topic, begin, end in messages.calls():
            handle = self._topic(topic)
            if begin in messages.with_headers:
                self._enqueue_one(handle, messages.single(begin), patience)
            else:
                self._enqueue(topic, handle, messages.array[begin:end], patience)

    def send_one(self, topic: str, record: SingleRecord, patience: float) -> None:
        self._enqueue_one(self._topic(topic), record, patience)

    def close(self) -> None:
        for handle in self._topics.values():
            self._lib.rd_kafka_topic_destroy(handle)
        self._topics.clear()

    def _enqueue(self, topic: str, handle: int, messages: Any, patience: float) -> None:
        """Hands over messages of one partition, waiting where the queue is full.

        librdkafka stops at the first message that finds the queue full and takes none after it, so what is left is a
        tail, and order holds.
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

    def _enqueue_one(self, handle: int, record: SingleRecord, patience: float) -> None:
        arguments = _arguments(handle, record)
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
        """A moment, for room in the queue, or until the topic was looked up again: librdkafka does that every five
        minutes, and a producer is kept longer than a topic its number of partitions. False: it does not pass."""
        passed = time.monotonic() - began
        if code == _UNKNOWN_PARTITION:
            if passed > _SPREAD_SECONDS:
                return False
            self._calls.run("metadata", lambda: look_up(self._lib, self._rk, handle), REACH_SECONDS)
        elif passed > patience:
            raise ClientError(_QUEUE_FULL, "the brokers take no records: the queue has been full for too long")
        else:
            self._lib.rd_kafka_poll(self._rk, 5)
        return True

    def _topic(self, topic: str) -> int:
        self._written.add(topic)
        handle = self._topics.get(topic)
        if handle is None:
            handle = self._topics[topic] = self._lib.rd_kafka_topic_new(self._rk, topic.encode(), None)
            if not handle:
                del self._topics[topic]
                self._written.discard(topic)
                raise ClientError(KafkaError._INVALID_ARG, f"{topic!r} is not a possible topic name")
        return handle


def _arguments(handle: int, record: SingleRecord) -> Any:
    """The array that ``rd_kafka_produceva`` takes; it is good as long as ``record`` is held."""
    arguments = (c.Argument * (len(_VTYPES) + len(record.headers)))()
    topic, partition, flags, timestamp, number, key, value, *headers = arguments
    for argument, kind in zip(arguments, _VTYPES, strict=False):
        argument.vtype = kind
    topic.u.rkt = handle
    partition.u.i32 = record.partition
    flags.u.i = c.MSG_F_COPY
    timestamp.u.i64 = record.timestamp
    number.u.ptr = record.number + 1
    for argument, content in ((key, record.key), (value, record.value)):
        argument.u.mem.ptr = content
        argument.u.mem.size = len(content or b"")
    for argument, (name, content) in zip(headers, record.headers, strict=True):
        argument.vtype = c.VTYPE_HEADER
        argument.u.header.name = name
        argument.u.header.val = content
        argument.u.header.size = len(content or b"")
    return arguments
