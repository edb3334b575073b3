"""Kafka's errors, sorted by their meaning for the job: repeat the batch, or wait for a person."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError

from incsnap.errors import SinkError


class SinkRefused(SinkError):
    """An error: Kafka will refuse the same batch again until a person changes something."""

    hint = "Change what Kafka refuses, then start the job again; nothing is lost."
    resumable = False


@dataclass(frozen=True, slots=True)
class OversizedRecord:
    """A record that was refused for its size."""

    number: int  #: the sender's number of the record, from 0
    topic: str  #: to which the record was sent
    bytes: int  #: of key and value, uncompressed
    by_client: bool  #: refused by librdkafka (`message.max.bytes`), not by a broker


class RecordsTooLarge(SinkRefused):
    """An error: a transaction failed because some of its records are too large."""

    records: tuple[OversizedRecord, ...] = ()  #: at least one record; empty if the error has crossed a process


class ClientError(Exception):
    """An error of librdkafka as plain values. It exists only within a task.

    `code` is one of KafkaError's codes. `retriable`: the same call may succeed. `requires_abort`: the transaction must
    be aborted. `fatal`: the producer cannot be used any more.
    """

    def __init__(
        self, code: int, text: str, *, fatal: bool = False, retriable: bool = False, requires_abort: bool = False
    ) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.fatal = fatal
        self.retriable = retriable
        self.requires_abort = requires_abort


#: Codes that mean that another writer has taken over the transactional id.
FENCED = frozenset((KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED))
#: Codes that the same records or privileges will meet again, each with the repair.
_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: (
        "Give the principal WRITE and DESCRIBE on the job's topics and on the control topic (kafka-acls --producer)."
    ),
    KafkaError.GROUP_AUTHORIZATION_FAILED: "Give the principal READ on the consumer groups incsnap-* (kafka-acls).",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "Give the principal WRITE and DESCRIBE on the transactional ids incsnap-* (kafka-acls --transactional-id)."
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Give the principal IDEMPOTENT_WRITE on the cluster (kafka-acls).",
    KafkaError.SASL_AUTHENTICATION_FAILED: "Check producer.sasl.* and the user's password.",
    KafkaError._AUTHENTICATION: "Check producer.security.protocol and producer.sasl.*.",
    KafkaError._SSL: "Check producer.security.protocol and producer.ssl.*.",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: (
        "Lower producer.transaction.timeout.ms, or raise the brokers' transaction.max.timeout.ms."
    ),
    KafkaError.POLICY_VIOLATION: "A policy of the brokers forbids this. Ask their administrators.",
    KafkaError.INVALID_RECORD: "The topic refuses this record: a compacted topic needs a key in each record.",
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: "Set producer.compression.type to one that the brokers know (lz4).",
    KafkaError.TOPIC_EXCEPTION: "Kafka refuses the topic's name; change topic.prefix or topic.delimiter.",
    KafkaError.INVALID_REPLICATION_FACTOR: (
        "Lower topic.creation.default.replication.factor: there are fewer brokers than that."
    ),
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "Raise max.message.bytes of the topic and producer.max.request.size of the job above the record's size."
    ),
}
#: The repair for a topic that somebody has deleted.
_GONE = (
    "The job creates the topic again (topic.creation.*) and repeats the batch. Its earlier records are gone: signal"
    " execute-snapshot to send the present rows."
)
#: The repair for records that brokers have not taken before the time of the transaction has passed.
_SLOW = (
    "A broker is away, or the line to Kafka is slow. If it is slow, raise producer.transaction.timeout.ms, up to the"
    " brokers' transaction.max.timeout.ms. The batch is repeated."
)


def sink_error(what: str, error: ClientError, transactional_id: str) -> SinkError:
    """Return the error to raise when `what` has failed, for example "committing batch 7 of bucket 0".

    The result is a SinkRefused if a repetition cannot help.
    """
    if error.code in FENCED:
        return SinkError(
            f"Another writer took over {transactional_id} while {what}: {error.text}",
            "Normal once after a restart: the batch is repeated. If it goes on, a job of an older release of incsnap"
            " has the same topic.prefix: stop it, or give it another topic.prefix.",
        )
    if error.code in _REFUSALS:
        return SinkRefused(f"Kafka refused {what}: {error.text}", _REFUSALS[error.code])
    if error.code == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return SinkError(f"Kafka failed {what}: {error.text}", _GONE)
    hint = _SLOW if error.code == KafkaError._MSG_TIMED_OUT else None
    return SinkError(f"Kafka failed {what}: {error.text}", hint)
