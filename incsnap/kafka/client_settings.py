"""The settings of each Kafka client: the user's settings, defaults that were measured, and values that are fixed.

The user's settings have librdkafka's names (`incsnap.config.clients` translates those of a Java client). A producer
gets all of them. An admin client or consumer gets only those about reaching the brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from incsnap.config.names import words
from incsnap.kafka.oauth_login import with_login

#: Our defaults. The user's settings override them.
_PRODUCER_DEFAULTS = {
    # Records/s of 780 bytes of JSON, with the broker on the same two cores: lz4 840,000, zstd 480,000, none 250,000.
    "compression.type": "lz4",
    # 1 MB is also the largest batch that a broker accepts by default (max.message.bytes).
    "batch.size": "1000000",
    "linger.ms": "5",
    # More than the messages of a batch, so that producing rarely waits. A limit in bytes bounds the memory.
    "queue.buffering.max.messages": "1000000",
    # The broker ends a zombie's open transaction after this time. Brokers allow up to 15 minutes.
    "transaction.timeout.ms": "60000",
    # With the default of 100 ms a transaction that follows at once waits so long for the previous one to complete.
    "retry.backoff.ms": "3",
    # After this time an error names a topic that was deleted under a running job. It must be below the wait for a
    # commit.
    "topic.metadata.propagation.max.ms": "10000",
}
#: Records for about one second of a broker. Each sending task needs this memory, in addition to the blocks of its
#: batch. The queue never accepts a message larger than itself, so it gets room for the largest message.
_QUEUE_KILOBYTES = 65_536
#: librdkafka's default of message.max.bytes.
_LARGEST_MESSAGE = 1_000_000
#: Bytes that librdkafka adds for a message besides key, value and headers: the longest encoding of lengths and numbers.
_MESSAGE_OVERHEAD = 36
#: Settings that exactly-once delivery needs. The user cannot change them.
_PRODUCER_FIXED = {
    # Successful deliveries need no report: commit_transaction waits for all of them.
    "delivery.report.only.error": "true",
    "enable.idempotence": "true",
    "acks": "all",
    # A look-up would create a deleted topic again with the brokers' default of partitions, but the job's records are
    # laid out for another number. The planner creates the topic again with the settings of its group.
    "allow.auto.create.topics": "false",
}
_CLIENT_DEFAULTS = {
    # The default opens connections late and one by one. Then a new producer takes 57 ms (505 ms if a race inside it is
    # lost). Without the default a new producer takes 5 to 8 ms.
    "enable.sparse.connections": "false",
    # Errors arrive as exceptions. librdkafka would also write them to a worker's stderr.
    "log_level": "0",
    "client.id": "incsnap",
}
#: Prefixes of settings about reaching the brokers.
_CONNECTION = tuple(
    words(
        """
        security. sasl. ssl. enable.ssl. enable.sasl. socket. broker.address. client. connections.max.idle. reconnect.
        metadata. topic.metadata. debug incsnap.
        """
    )
)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The address of a Kafka cluster, and the user's producer settings.

    `repr` hides the settings, because they hold secrets.
    """

    bootstrap_servers: str  #: host:port, separated by commas
    producer: Mapping[str, str] = field(default_factory=dict, repr=False)  #: with librdkafka's names

    def for_producer(self, transactional_id: str) -> dict[str, Any]:
        """Return the settings of a transactional producer. Raise ConfigError if its login needs what is missing."""
        given = {
            **_CLIENT_DEFAULTS,
            **_PRODUCER_DEFAULTS,
            "queue.buffering.max.kbytes": str(max(_QUEUE_KILOBYTES, self.largest_message // 1000)),
            **self.producer,
            **_PRODUCER_FIXED,
            "bootstrap.servers": self.bootstrap_servers,
            "transactional.id": transactional_id,
        }
        return with_login(given)

    @property
    def largest_message(self) -> int:
        """The setting `producer.max.request.size` in bytes, which librdkafka calls `message.max.bytes`."""
        given = self.producer.get("message.max.bytes", "")
        return int(given) if given.isdigit() else _LARGEST_MESSAGE

    @property
    def largest_record(self) -> int:
        """The most bytes of key and value that librdkafka accepts as one message without headers."""
        return self.largest_message - _MESSAGE_OVERHEAD

    @property
    def compression(self) -> str:
        """The producer's `compression.type`."""
        settings = {**_PRODUCER_DEFAULTS, **self.producer}
        return settings.get("compression.codec", settings["compression.type"])

    @property
    def batch_bytes(self) -> int:
        """The producer's `batch.size`: most bytes of a batch before compression."""
        return int({**_PRODUCER_DEFAULTS, **self.producer}["batch.size"])

    def for_admin(self) -> dict[str, Any]:
        """Return the settings of an admin client. Raise ConfigError if its login needs what is missing."""
        given = {
            **_CLIENT_DEFAULTS,
            **{name: value for name, value in self.producer.items() if name.startswith(_CONNECTION)},
            "bootstrap.servers": self.bootstrap_servers,
        }
        return with_login(given)

    def for_consumer(self, group: str) -> dict[str, Any]:
        """Return the settings of a consumer that reads committed records and offsets, and commits nothing itself.

        Raise ConfigError if its login needs what is missing.
        """
        return {
            **self.for_admin(),
            "group.id": group,
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",  # with this, committed() waits for an open transaction on the offset
        }
