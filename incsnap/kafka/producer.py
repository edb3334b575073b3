"""A transactional producer that takes Arrow columns. Only records with headers become Python objects."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from confluent_kafka import KafkaError

from incsnap.errors import ConfigError
from incsnap.kafka import librdkafka as c
from incsnap.kafka.bounded_calls import BoundedCalls
from incsnap.kafka.lost_answers import LostAnswers, logged
from incsnap.kafka.oauth_login import CALLBACK, TokenRefresh
from incsnap.kafka.outgoing_messages import SingleRecord
from incsnap.kafka.producer_errors import ProducerErrors
from incsnap.kafka.producer_queue import ProducerQueue
from incsnap.kafka.refusals import ClientError, OversizedRecord

#: At a commit: seconds for which this module asks every millisecond whether brokers have taken all records. Later it
#: asks every 50 ms.
_CLOSE_LOOK_SECONDS = 0.1
#: Seconds after which the brokers are asked whether a topic is gone. librdkafka would add a missing topic to the
#: transaction again and again until the time is up. A transaction takes far less than these seconds.
_DOUBT_SECONDS = 2.0


class TransactionalProducer:
    """A librdkafka producer with a transactional id. Its methods block, and one thread uses it.

    Every method raises ClientError. `bounded_calls` also limits the time of requests to brokers.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._lib: Any = c.loaded_library()
        self._calls = BoundedCalls()
        self._errors = ProducerErrors(self._lib)
        rk, self._lost_answers, self._tokens = _opened(self._lib, settings, self._errors)
        self._rk: int | None = rk
        self._queue = ProducerQueue(self._lib, rk, self._calls, self._errors)

    @property
    def refused(self) -> ClientError | None:
        """The error of the first record that the broker or librdkafka refused, with the record's topic and key; None if
        no record was refused.
        """
        return self._errors.refused

    @property
    def too_large(self) -> tuple[OversizedRecord, ...]:
        """The numbered records of the open transaction that were refused for their size so far."""
        return tuple(self._errors.too_large)

    @property
    def waiting(self) -> int:
        """The number of records that brokers have not taken yet."""
        return int(self._lib.rd_kafka_outq_len(self._rk)) if self._rk is not None else 0

    @property
    def has_lost_answers(self) -> bool:
        """Whether a broker may still execute an earlier request of this producer.

        If so, the producer must not begin another transaction.
        """
        return self._calls.lost or self._lost_answers.any()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the producer and drop records in its queue.

        An open transaction stays open until the broker times it out, or until the next writer's `init_transactions`
        ends it.
        """
        self._calls.close()
        if self._calls.lost:
            # A thread is still inside librdkafka. Destroying the producer would wait for that thread.
            self._rk = None
        if self._rk:
            self._queue.close()
            self._lost_answers.close()
            self._lib.rd_kafka_destroy(self._rk)
            self._rk = None

    # -- transactions ------------------------------------------------------------------------------------------------

    def init_transactions(self, seconds: float) -> None:
        """Fence every older producer with this transactional id and end its open transaction.

        Connect to a broker first: without a connection librdkafka may retry only after 500 ms.
        """
        self._calls.run("init_transactions", lambda: self._init_transactions(seconds), seconds + c.REACH_SECONDS)

    def _init_transactions(self, seconds: float) -> None:
        c.look_up(self._lib, self._rk, None, min(seconds, c.REACH_SECONDS))
        self._errors.check(self._lib.rd_kafka_init_transactions(self._rk, c.milliseconds(seconds)))

    def begin(self) -> None:
        """Begin a transaction."""
        self._queue.begin()
        self._errors.too_large.clear()
        self._errors.check(self._lib.rd_kafka_begin_transaction(self._rk))

    def send_offset(self, topic: str, partition: int, offset: int, metadata: str, group: str, seconds: float) -> None:
        """Make `offset`, with `metadata`, the committed offset of the group if and only if the transaction commits.

        This asks the transaction coordinator, so a fenced producer learns here that it is fenced.
        """
        call = partial(self._send_offset, topic, partition, offset, metadata, group, seconds)
        self._calls.run("send_offsets_to_transaction", call, seconds)

    def _send_offset(self, topic: str, partition: int, offset: int, metadata: str, group: str, seconds: float) -> None:
        lib = self._lib
        offsets = lib.rd_kafka_topic_partition_list_new(1)
        member = lib.rd_kafka_consumer_group_metadata_new(group.encode())
        # librdkafka copies the given number of bytes and sends those before the first NUL. So the NUL is counted.
        text = ctypes.create_string_buffer(metadata.encode())
        added = lib.rd_kafka_topic_partition_list_add(offsets, topic.encode(), partition).contents
        added.offset = offset
        added.metadata, added.metadata_size = ctypes.addressof(text), len(text)
        try:
            self._errors.check(
                lib.rd_kafka_send_offsets_to_transaction(self._rk, offsets, member, c.milliseconds(seconds))
            )
        finally:
            added.metadata, added.metadata_size = None, 0  # the memory is ours, and the list would free it
            lib.rd_kafka_topic_partition_list_destroy(offsets)
            lib.rd_kafka_consumer_group_metadata_destroy(member)

    def commit(self, seconds: float) -> None:
        """Wait until brokers have taken every record, then commit.

        Raise ClientError if any record of the transaction failed. librdkafka checks its queue only every 10 ms, which
        is most of the time of a small transaction. So this method checks more often at first. Neither waits for
        linger.ms, because no more records follow.
        """
        self._calls.run("commit_transaction", lambda: self._commit(seconds), seconds + _DOUBT_SECONDS + c.REACH_SECONDS)

    def _commit(self, seconds: float) -> None:
        """Commit. Raise ClientError that names the topic if a topic of the transaction was deleted."""
        began = time.monotonic()
        taken = self._taken(min(seconds, _CLOSE_LOOK_SECONDS), 1) or self._taken(min(seconds, _DOUBT_SECONDS), 50)
        if not taken:
            self._refuse_gone()
        left = max(seconds - (time.monotonic() - began), 1.0)
        try:
            self._errors.check(self._lib.rd_kafka_commit_transaction(self._rk, c.milliseconds(left)))
        except ClientError as error:
            # librdkafka reports that a topic is gone without naming the topic.
            if error.code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                self._refuse_gone()
            raise

    def _refuse_gone(self) -> None:
        """Raise ClientError if a topic of the open transaction does not exist any more."""
        if (topic := self._queue.gone()) is not None:
            raise ClientError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"the topic {topic} no longer exists")

    def _taken(self, seconds: float, look_ms: int) -> bool:
        """Return True if brokers took or refused all records within `seconds`. Check every `look_ms` milliseconds."""
        deadline = time.monotonic() + seconds
        while self._lib.rd_kafka_outq_len(self._rk):
            if time.monotonic() >= deadline:
                return False
            self._lib.rd_kafka_flush(self._rk, look_ms)
        return True

    def abort(self, seconds: float) -> None:
        """End the transaction without effect, unless a record may still be on its way to a broker.

        After the end of the transaction, brokers older than 3.6 would count such a record to the next transaction. So
        the transaction then stays open, and the next `init_transactions` ends it with a higher epoch.
        """
        self._calls.run("abort_transaction", lambda: self._abort(seconds), seconds)

    def _abort(self, seconds: float) -> None:
        began = time.monotonic()
        self._lib.rd_kafka_purge(self._rk, c.PURGE_F_QUEUE)
        while not self._taken(0.05, 50):
            if self._lost_answers.any() or time.monotonic() - began > seconds:
                return
        if not self._lost_answers.any():
            left = max(seconds - (time.monotonic() - began), 1.0)
            self._errors.check(self._lib.rd_kafka_abort_transaction(self._rk, c.milliseconds(left)))

    # -- records -----------------------------------------------------------------------------------------------------

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch, patience: float = 60.0) -> None:
        """Queue all `records` (columns of `envelope.records.RECORDS`). Order is kept within a partition.

        `topics` tells how many records go to each topic, one topic after the other. `patience` is how many seconds to
        wait for room in the queue.
        """
        self._queue.send(topics, records, patience)

    def send_one(self, topic: str, partition: int, key: bytes, value: bytes, patience: float = 60.0) -> None:
        """Queue one record without headers. `patience` is how many seconds to wait for room in the queue."""
        self._queue.send_one(topic, SingleRecord(partition, key, value), patience)


def _opened(
    lib: Any, settings: Mapping[str, Any], errors: ProducerErrors
) -> tuple[int, LostAnswers, TokenRefresh | None]:
    """Return a new librdkafka producer, its log, and its tokens if its login has any.

    Raise ConfigError if librdkafka refuses a setting.
    """
    reason = ctypes.create_string_buffer(512)
    settings = dict(settings)
    token = settings.pop(CALLBACK, None)
    conf = lib.rd_kafka_conf_new()
    for name, value in logged(settings).items():
        if lib.rd_kafka_conf_set(conf, name.encode(), value.encode(), reason, len(reason)) != c.CONF_OK:
            lib.rd_kafka_conf_destroy(conf)
            raise _wrong_setting(name, reason.value)
    lib.rd_kafka_conf_set_dr_msg_cb(conf, errors.callback)
    lost_answers = LostAnswers(lib, conf, settings)
    tokens = None if token is None else TokenRefresh(lib, conf, token, errors)
    rk: int | None = lib.rd_kafka_new(c.PRODUCER, conf, reason, len(reason))
    if not rk:
        lib.rd_kafka_conf_destroy(conf)
        raise _wrong_setting("producer.*", reason.value)
    lost_answers.listen(rk)
    if tokens is not None:
        tokens.begin(rk)
    return rk, lost_answers, tokens


def _wrong_setting(name: str, reason: bytes) -> ConfigError:
    return ConfigError(f"The Kafka producer cannot take {name}: {reason.decode('utf-8', 'replace')}")
