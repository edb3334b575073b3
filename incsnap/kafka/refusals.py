"""What Kafka said, sorted by what it means for the job: repeat the batch, or wait for a person."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError

from incsnap.errors import SinkError


class SinkRefused(SinkError):
    """Kafka will refuse the same again; somebody has to change something first."""

    hint = "Change what Kafka refuses, then start the job again; nothing is lost."
    resumable = False


@dataclass(frozen=True, slots=True)
class OversizedRecord:
    """A record that was refused for its size."""

    number: int  #: the sender's number of the record, from 0
    topic: str
    bytes: int  #: of key and value, uncompressed
    by_client: bool  #: refused by librdkafka (`message.max.bytes`), not by a broker


class RecordsTooLarge(SinkRefused):
    """A transaction that failed because of the size of some of its records."""

    records: tuple[OversizedRecord, ...] = ()  #: at least one; lost where the error crosses a process


class ClientError(Exception):
    """An error of librdkafka as plain values; lives and dies within a task."""

    def __init__(
        self, code: int, text: str, *, fatal: bool = False, retriable: bool = False, requires_abort: bool = False
    ) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.fatal = fatal
        self.retriable = retriable
        self.requires_abort = requires_abort


#: Another writer took the transactional id over.
FENCED = frozenset((KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED))
#: Codes that the same records or the same rights will meet again, and the way out.
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
    KafkaError.POLICY_VIOLATION: "A policy of the brokers forbids it; ask those who run them.",
    KafkaError.INVALID_RECORD: "The topic takes no such record: a compacted topic needs a key in each.",
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: "Set producer.compression.type to one that the brokers know (lz4).",
    KafkaError.TOPIC_EXCEPTION: "The topic's name is not one that Kafka takes; change topic.prefix or topic.delimiter.",
    KafkaError.INVALID_REPLICATION_FACTOR: (
        "Lower topic.creation.default.replication.factor: there are fewer brokers than that."
    ),
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "Raise max.message.bytes of the topic and producer.max.request.size of the job above the record's size."
    ),
}
#: Of a topic that somebody has deleted.
_GONE = (
    "The job makes it again, as topic.creation.* says, and repeats the batch. What was in it before is gone: signal"
    " execute-snapshot for the rows that there are."
)


def sink_error(what: str, error: ClientError, transactional_id: str) -> SinkError:
    """The error to raise when ``what`` (a clause: "committing batch 7 of bucket 0") has failed."""
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
    return SinkError(f"Kafka failed {what}: {error.text}")
