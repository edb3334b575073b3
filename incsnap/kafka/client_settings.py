"""What each of our Kafka clients is given: the user's settings, the ones that were measured, and the ones that must be.

The user's settings come in librdkafka's words (``incsnap.config.clients`` translates those of a Java client). The
producer takes all of them; an admin client or a consumer only how to reach the brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Where both a user and we have a wish, the user's wins.
_PRODUCER_DEFAULTS = {
    # 780-byte JSON records: lz4 840 thousand/s, zstd 480, none 250 (the broker on the same two cores).
    "compression.type": "lz4",
    # 1 MB is also the most a broker accepts by default (max.message.bytes).
    "batch.size": "1000000",
    "linger.ms": "5",
    # Above a batch, so that producing seldom waits; memory is bounded by bytes.
    "queue.buffering.max.messages": "1000000",
    # A zombie's open transaction ends by itself after this long; brokers allow up to 15 minutes.
    "transaction.timeout.ms": "60000",
    # With the default 100 ms, a transaction that follows another at once waits that long for the first to be complete.
    "retry.backoff.ms": "3",
    # A topic that was deleted under a running job is named after this long; must be below the wait for a commit.
    "topic.metadata.propagation.max.ms": "10000",
}
#: A second of what a broker takes. It is memory of each task that sends, beside the blocks of its batch.
_QUEUE_KILOBYTES = 65_536
#: librdkafka's own default of message.max.bytes.
_LARGEST_MESSAGE = 1_000_000
#: What librdkafka counts for a message besides key, value and headers: the longest form of its lengths and numbers.
_MESSAGE_OVERHEAD = 36
#: Exactly-once stands on these.
_PRODUCER_FIXED = {
    # Successful deliveries need no word: commit_transaction waits for all of them.
    "delivery.report.only.error": "true",
    "enable.idempotence": "true",
    "acks": "all",
    # A topic that was deleted under the job would come back by looking for it, with the brokers' number of partitions
    # in place of those that its records are cut for. The planner makes it again, as its group says.
    "allow.auto.create.topics": "false",
}
_CLIENT_DEFAULTS = {
    # The default opens connections late, one by one: a new producer takes 57 ms (505 by a race within); so 5-8 ms.
    "enable.sparse.connections": "false",
    # Errors reach us as exceptions; librdkafka would write them to a worker's stderr as well.
    "log_level": "0",
    "client.id": "incsnap",
}
#: Beginnings of names that say how to reach the brokers.
_CONNECTION = (
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl.",
    "enable.sasl.",
    "socket.",
    "broker.address.",
    "client.",
    "connections.max.idle.",
    "reconnect.",
    "metadata.",
    "topic.metadata.",
    "debug",
)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How to reach one Kafka cluster and how to write to it. Has no ``repr`` of its settings: they hold secrets."""

    bootstrap_servers: str
    producer: Mapping[str, str] = field(default_factory=dict, repr=False)

    def for_producer(self, transactional_id: str) -> dict[str, str]:
        """Return the settings of a transactional producer."""
        return {
            **_CLIENT_DEFAULTS,
            **_PRODUCER_DEFAULTS,
            "queue.buffering.max.kbytes": str(self._queue_kilobytes()),
            **self.producer,
            **_PRODUCER_FIXED,
            "bootstrap.servers": self.bootstrap_servers,
            "transactional.id": transactional_id,
        }

    @property
    def largest_message(self) -> int:
        """``producer.max.request.size``, which librdkafka calls ``message.max.bytes``."""
        given = self.producer.get("message.max.bytes", "")
        return int(given) if given.isdigit() else _LARGEST_MESSAGE

    @property
    def largest_record(self) -> int:
        """Bytes of key and value that librdkafka takes as one message without headers."""
        return self.largest_message - _MESSAGE_OVERHEAD

    @property
    def compression(self) -> str:
        """The producer's ``compression.type``."""
        settings = {**_PRODUCER_DEFAULTS, **self.producer}
        return settings.get("compression.codec", settings["compression.type"])

    @property
    def has_compression_level(self) -> bool:
        """Whether the user has chosen how hard the producer compresses."""
        return "compression.level" in self.producer

    @property
    def batch_bytes(self) -> int:
        """The producer's ``batch.size``: bytes of a batch, before compression."""
        return int({**_PRODUCER_DEFAULTS, **self.producer}["batch.size"])

    def for_announcements(self) -> dict[str, str]:
        """Return the settings of a producer that writes single records, each of them confirmed by all replicas."""
        return {**self.for_admin(), "acks": "all", "enable.idempotence": "true", "linger.ms": "0"}

    def _queue_kilobytes(self) -> int:
        """Room for the largest message: one that is larger than the queue would never be taken."""
        return max(_QUEUE_KILOBYTES, self.largest_message // 1000)

    def for_admin(self) -> dict[str, str]:
        return {
            **_CLIENT_DEFAULTS,
            **{name: value for name, value in self.producer.items() if name.startswith(_CONNECTION)},
            "bootstrap.servers": self.bootstrap_servers,
        }

    def for_consumer(self, group: str) -> dict[str, str]:
        """For a consumer that asks for committed records and offsets, and commits nothing itself."""
        return {
            **self.for_admin(),
            "group.id": group,
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",  # committed() then waits for an open transaction on the offset
        }
