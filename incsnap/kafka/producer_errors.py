"""Errors of a producer as ClientError, and the records that were refused."""

from __future__ import annotations

import ctypes
from typing import Any

from confluent_kafka import KafkaError

from incsnap.errors import shorten
from incsnap.kafka import librdkafka as c
from incsnap.kafka.refusals import ClientError, OversizedRecord

#: The codes of records that were purged because an earlier record failed.
_PURGED = frozenset((KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT))


class ProducerErrors:
    """A collector of the errors of one producer's records. librdkafka reports the result of each record to `callback`.

    `refused` is the error of the first record that the broker or librdkafka refused; None if no record was refused.
    `too_large` has an OversizedRecord for each record of the open transaction that was refused for its size, if the
    sink gave the records numbers.
    """

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        self.refused: ClientError | None = None
        self.too_large: list[OversizedRecord] = []
        # a reference for Python: librdkafka holds only the address
        self.callback = c.DELIVERY_CALLBACK(self._delivered)

    def _delivered(self, _rk: int, message: Any, _opaque: int) -> None:
        """Record the result of one message. librdkafka calls this function."""
        record = message.contents
        topic = self._lib.rd_kafka_topic_name(record.rkt) if record.rkt else b"?"
        number = (record._private or 0) - 1
        self.note(record.err, topic.decode(), record.key or 0, record.key_len, record.len, number, by_client=False)

    def note(
        self, code: int, topic: str, key: int | bytes, key_len: int, size: int, number: int = -1, *, by_client: bool
    ) -> None:
        """Record that a message was refused with `code`. Record nothing for code 0, a delivered message.

        `key` is the key's bytes, or the address of `key_len` bytes. `number` is the sender's number of the record; -1
        means none. `by_client`: librdkafka refused the record before it reached a broker.
        """
        if code == KafkaError.MSG_SIZE_TOO_LARGE and number >= 0:
            self.too_large.append(OversizedRecord(number, topic, key_len + size, by_client))
        # librdkafka purges all records after the first failure, so only the first code has a meaning.
        if code and self.refused is None and code not in _PURGED:
            raw = key if isinstance(key, bytes) else ctypes.string_at(key, key_len) if key else b""
            reason = self._lib.rd_kafka_err2str(code).decode()
            name = shorten(raw.decode("utf-8", "replace"))
            self.refused = ClientError(code, f"{reason} (topic {topic}, key {name}, value of {size} bytes)")

    def failure(self, rk: int | None, code: int) -> ClientError:
        """Return the error for a code without an error object.

        If the producer has a fatal error, that error is the cause.
        """
        reason = ctypes.create_string_buffer(512)
        fatal = self._lib.rd_kafka_fatal_error(rk, reason, len(reason))
        if fatal:
            return ClientError(fatal, reason.value.decode("utf-8", "replace"), fatal=True)
        text = self._lib.rd_kafka_err2str(code).decode() if self.refused is None else self.refused.text
        return ClientError(code, text, requires_abort=True)

    def check(self, error: int | None) -> None:
        """Raise ClientError for the error object that a C function returned, and free the object.

        Do nothing without one.
        """
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
