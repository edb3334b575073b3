"""A transactional producer that takes Arrow columns: no Python object for any record, but for re-keyed ones."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from incsnap.errors import ConfigError, shorten
from incsnap.kafka import librdkafka as c
from incsnap.kafka.binary_columns import places, plain
from incsnap.kafka.left_behind import Calls
from incsnap.kafka.record_headers import RecordHeaders
from incsnap.kafka.refusals import ClientError

# At most so many messages a call: 72 bytes each, and the sending thread sees the first ones while the next are copied.
_MESSAGES_A_CALL = 20_000
_QUEUE_FULL, _UNKNOWN_PARTITION = KafkaError._QUEUE_FULL, KafkaError._UNKNOWN_PARTITION
#: What passes; any other code is the end of the transaction.
_PASSING = frozenset((_QUEUE_FULL, _UNKNOWN_PARTITION))
#: Seconds until each broker knows of partitions that a topic was given: the planner has them from another one.
_SPREAD_SECONDS = 5.0
#: Seconds to reach a first broker in, and to look every millisecond whether all records have been taken.
_REACH_SECONDS = 3.0
_CLOSE_LOOK_SECONDS = 0.1


class TransactionalProducer:
    """One librdkafka producer. Blocking; used by one thread; every method raises ``ClientError``. What asks the brokers
    has its limit of time from ``left_behind`` too.

    ``refused`` tells of the first record that the broker or the client would not take, with its topic and key, for
    those who have to find it.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._lib: Any = c.loaded_library()
        self._topics: dict[str, int] = {}
        self._calls = Calls()
        self.refused: str | None = None
        self.refused_code = 0
        self._callback = c.DELIVERY_CALLBACK(self._delivery_failed)  # kept: librdkafka holds only its address
        reason = ctypes.create_string_buffer(512)
        conf = self._lib.rd_kafka_conf_new()
        for name, value in settings.items():
            if self._lib.rd_kafka_conf_set(conf, name.encode(), value.encode(), reason, len(reason)) != c.CONF_OK:
                self._lib.rd_kafka_conf_destroy(conf)
                raise _wrong_setting(name, reason.value)
        self._lib.rd_kafka_conf_set_dr_msg_cb(conf, self._callback)
        self._rk = self._lib.rd_kafka_new(c.PRODUCER, conf, reason, len(reason))
        if not self._rk:
            self._lib.rd_kafka_conf_destroy(conf)
            raise _wrong_setting("producer.*", reason.value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Drops what is still in the queue; an open transaction stays open until the broker times it out or the
        next writer's ``init_transactions`` ends it."""
        self._calls.close()
        if self._calls.lost:
            # A thread is in it still: to destroy it would wait for that thread.
            self._rk = None
        if self._rk:
            for handle in self._topics.values():
                self._lib.rd_kafka_topic_destroy(handle)
            self._topics.clear()
            self._lib.rd_kafka_destroy(self._rk)
            self._rk = None

    # -- transactions ------------------------------------------------------------------------------------------------

    def init_transactions(self, seconds: float) -> None:
        """Fences every older producer of the same transactional id and ends its open transaction.

        A broker is reached first: when none is, librdkafka may look again only after 500 ms.
        """
        self._calls.run("init_transactions", lambda: self._init_transactions(seconds), seconds + _REACH_SECONDS)

    def _init_transactions(self, seconds: float) -> None:
        self._look_up(None, min(seconds, _REACH_SECONDS))
        self._check(self._lib.rd_kafka_init_transactions(self._rk, _ms(seconds)))

    def begin(self) -> None:
        self._check(self._lib.rd_kafka_begin_transaction(self._rk))

    def send_offset(self, topic: str, partition: int, offset: int, metadata: str, group: str, seconds: float) -> None:
        """Makes ``offset``, with ``metadata``, the group's committed one when, and only when, the transaction commits.

        Asks the transaction's coordinator, so a producer that was fenced learns of it here.
        """

        def call() -> None:
            self._send_offset(topic, partition, offset, metadata, group, seconds)

        self._calls.run("send_offsets_to_transaction", call, seconds)

    def _send_offset(self, topic: str, partition: int, offset: int, metadata: str, group: str, seconds: float) -> None:
        lib = self._lib
        offsets = lib.rd_kafka_topic_partition_list_new(1)
        member = lib.rd_kafka_consumer_group_metadata_new(group.encode())
        # librdkafka copies as many bytes as it is told and sends those up to the first NUL, so the NUL is counted.
        text = ctypes.create_string_buffer(metadata.encode())
        added = lib.rd_kafka_topic_partition_list_add(offsets, topic.encode(), partition).contents
        added.offset = offset
        added.metadata, added.metadata_size = ctypes.addressof(text), len(text)
        try:
            self._check(lib.rd_kafka_send_offsets_to_transaction(self._rk, offsets, member, _ms(seconds)))
        finally:
            added.metadata, added.metadata_size = None, 0  # ours: the list would free it
            lib.rd_kafka_topic_partition_list_destroy(offsets)
            lib.rd_kafka_consumer_group_metadata_destroy(member)

    def commit(self, seconds: float) -> None:
        """Waits for every record, then commits. Fails when any record of the transaction failed.

        librdkafka's own wait looks every 10 ms only, which is most of a small transaction; so the first looks are ours.
        Either way linger.ms is not waited for: there is nothing to come.
        """
        self._calls.run("commit_transaction", lambda: self._commit(seconds), seconds + _CLOSE_LOOK_SECONDS)

    def _commit(self, seconds: float) -> None:
        deadline = time.monotonic() + min(seconds, _CLOSE_LOOK_SECONDS)
        while self._lib.rd_kafka_outq_len(self._rk) and time.monotonic() < deadline:
            self._lib.rd_kafka_flush(self._rk, 1)
        self._check(self._lib.rd_kafka_commit_transaction(self._rk, _ms(seconds)))

    def abort(self, seconds: float) -> None:
        def call() -> None:
            self._check(self._lib.rd_kafka_abort_transaction(self._rk, _ms(seconds)))

        self._calls.run("abort_transaction", call, seconds)

    # -- records -----------------------------------------------------------------------------------------------------

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch, patience: float = 60.0) -> None:
        """Queues all ``records`` (columns of ``envelope.records.RECORDS``) in order; order holds within a partition.

        ``topics``: how many records go to which topic, one after the other. ``patience``: seconds to wait for room in
        the queue before giving up.
        """
        if not records.num_rows:
            return
        keys, values = plain(records.column("key")), plain(records.column("value"))  # hold the bytes until copied
        messages = np.zeros(records.num_rows, c.MESSAGE)
        messages["partition"] = records.column("partition").to_numpy(zero_copy_only=False)
        messages["key"], messages["key_len"] = places(keys)
        messages["payload"], messages["len"] = places(values)
        # One call a partition: with a partition in each message (MSG_F_PARTITION) librdkafka 2.16 adds partition -1 to
        # the transaction whenever it has yet to learn of the topic, and the brokers refuse that.
        run = np.repeat(np.arange(len(topics)), [count for _, count in topics])
        order = np.lexsort((messages["partition"], run))
        messages = messages[order]
        headers = RecordHeaders(records)
        singles = set(np.flatnonzero(headers.present[order]).tolist())
        changes = (np.diff(messages["partition"]) != 0) | (np.diff(run) != 0)
        starts = {0, *(np.flatnonzero(changes) + 1).tolist()}
        borders = sorted(starts | singles | {at + 1 for at in singles} | {len(messages)})
        names = [topics[number][0] for number in run[borders[:-1]].tolist()]
        times = records.column("timestamp").to_pylist() if "timestamp" in records.schema.names else None
        for topic, (at, end) in zip(names, itertools.pairwise(borders), strict=True):
            handle = self._topic(topic)
            if at not in singles:
                self._enqueue(topic, handle, messages[at:end], patience)
                continue
            row = int(order[at])
            partition = int(messages["partition"][at])
            key, value, when = keys[row].as_py(), values[row].as_py(), times[row] if times else 0
            self._enqueue_one(handle, partition, key, value, headers.of(row), patience, when)

    def send_one(self, topic: str, partition: int, key: bytes, value: bytes, patience: float = 60.0) -> None:
        self._enqueue_one(self._topic(topic), partition, key, value, [], patience, 0)

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
                self._note(code, topic, int(part["key"][first]), int(part["key_len"][first]), int(part["len"][first]))
                raise self._failure(code)
            at += first

    def _enqueue_one(
        self,
        handle: int,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[bytes, bytes | None]],
        patience: float,
        timestamp: int,
    ) -> None:
        """``timestamp``: milliseconds since 1970; 0: now."""
        arguments = (c.Argument * (6 + len(headers)))()
        for argument, kind in zip(
            arguments,
            (
                c.VTYPE_RKT,
                c.VTYPE_PARTITION,
                c.VTYPE_MSGFLAGS,
                c.VTYPE_TIMESTAMP,
                c.VTYPE_KEY,
                c.VTYPE_VALUE,
                *[c.VTYPE_HEADER] * len(headers),
            ),
            strict=True,
        ):
            argument.vtype = kind
        arguments[0].u.rkt = handle
        arguments[1].u.i32 = partition
        arguments[2].u.i = c.MSG_F_COPY
        arguments[3].u.i64 = timestamp
        for argument, content in ((arguments[4], key), (arguments[5], value)):
            argument.u.mem.ptr = content
            argument.u.mem.size = len(content or b"")
        for argument, (name, content) in zip(list(arguments)[6:], headers, strict=True):
            argument.u.header.name = name
            argument.u.header.val = content
            argument.u.header.size = len(content or b"")
        began = time.monotonic()
        while True:
            try:
                return self._check(self._lib.rd_kafka_produceva(self._rk, arguments, len(arguments)))
            except ClientError as error:
                if error.code not in _PASSING or not self._waited(error.code, handle, began, patience):
                    topic = self._lib.rd_kafka_topic_name(handle).decode()
                    self._note(error.code, topic, key or b"", 0, len(value or b""))
                    raise self._failure(error.code) from None

    def _waited(self, code: int, handle: int, began: float, patience: float) -> bool:
        """A moment, for room in the queue, or until the topic was looked up again: librdkafka does that every five
        minutes, and a producer is kept longer than a topic its number of partitions. False: it does not pass."""
        passed = time.monotonic() - began
        if code == _UNKNOWN_PARTITION:
            if passed > _SPREAD_SECONDS:
                return False
            self._calls.run("metadata", lambda: self._look_up(handle), _REACH_SECONDS)
        elif passed > patience:
            raise ClientError(_QUEUE_FULL, "the brokers take no records: the queue has been full for too long")
        else:
            self._lib.rd_kafka_poll(self._rk, 5)
        return True

    def _look_up(self, handle: int | None, seconds: float = _REACH_SECONDS) -> None:
        """Asks a broker for its cluster, and for the topic where one is given; an answer that does not come is no
        error here, as what is done next tells it better."""
        metadata = ctypes.c_void_p()
        code = self._lib.rd_kafka_metadata(self._rk, 0, handle, ctypes.byref(metadata), _ms(seconds))
        if not code:
            self._lib.rd_kafka_metadata_destroy(metadata)

    def _topic(self, topic: str) -> int:
        handle = self._topics.get(topic)
        if handle is None:
            handle = self._topics[topic] = self._lib.rd_kafka_topic_new(self._rk, topic.encode(), None)
            if not handle:
                del self._topics[topic]
                raise ClientError(KafkaError._INVALID_ARG, f"{topic!r} is not a possible topic name")
        return handle

    # -- errors ------------------------------------------------------------------------------------------------------

    def _delivery_failed(self, _rk: int, message: Any, _opaque: int) -> None:
        record = message.contents
        topic = self._lib.rd_kafka_topic_name(record.rkt) if record.rkt else b"?"
        self._note(record.err, topic.decode(), record.key or 0, record.key_len, record.len)

    def _note(self, code: int, topic: str, key: int | bytes, key_len: int, size: int) -> None:
        # After the first failure the rest are purged: only the first says anything.
        if code and self.refused is None and code not in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT):
            raw = key if isinstance(key, bytes) else ctypes.string_at(key, key_len) if key else b""
            reason = self._lib.rd_kafka_err2str(code).decode()
            name = shorten(raw.decode("utf-8", "replace"))
            self.refused_code = code
            self.refused = f"{reason} (topic {topic}, key {name}, value of {size} bytes)"

    def _failure(self, code: int) -> ClientError:
        """What a code without an error object stands for: the fatal error, when there is one, is the cause."""
        reason = ctypes.create_string_buffer(512)
        fatal = self._lib.rd_kafka_fatal_error(self._rk, reason, len(reason))
        if fatal:
            return ClientError(fatal, reason.value.decode("utf-8", "replace"), fatal=True)
        return ClientError(code, self.refused or self._lib.rd_kafka_err2str(code).decode(), requires_abort=True)

    def _check(self, error: int | None) -> None:
        if not error:
            return
        lib = self._lib
        problem = ClientError(
            lib.rd_kafka_error_code(error),
            lib.rd_kafka_error_string(error).decode("utf-8", "replace"),
            fatal=bool(lib.rd_kafka_error_is_fatal(error)),
            retriable=bool(lib.rd_kafka_error_is_retriable(error)),
            requires_abort=bool(lib.rd_kafka_error_txn_requires_abort(error)),
        )
        lib.rd_kafka_error_destroy(error)
        raise problem


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _wrong_setting(name: str, reason: bytes) -> ConfigError:
    return ConfigError(f"The Kafka producer cannot take {name}: {reason.decode('utf-8', 'replace')}")
