"""The largest record that a topic takes. The topic is asked for its limit when a record was refused for its size.

A broker measures a batch of records as the producer has compressed it. So a record that is larger than
`max.message.bytes` may still fit, and only the broker knows for certain. `surely_exceeds` finds records that do not fit
under any compression of ours.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaException

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import topic_config

_log = logging.getLogger(__name__)
#: Bytes of a batch of one record besides key and value: a header of 61 bytes, and a few bytes of the record.
BATCH_OVERHEAD = 70
#: Seconds for which an answer is cached, because an operator may raise the limit.
_KNOWN_SECONDS = 60.0
#: Seconds after which brokers that did not answer are asked again.
_UNKNOWN_SECONDS = 5.0
#: By compression type: how much librdkafka's result may differ from Arrow's, which has other default levels. Closer to
#: the limit only the broker can decide.
_MARGINS = {"lz4": 0.02, "snappy": 0.05, "gzip": 0.1, "zstd": 0.15}


@dataclass(frozen=True, slots=True)
class TopicLimit:
    """The limit of a topic for its batches."""

    bytes: int  #: max.message.bytes
    recompressed: str = ""  #: compression.type of the topic; "": batches stay as the producer made them


#: The answers, by topic and brokers, each with the time at which it expires.
_known: dict[tuple[str, str], tuple[TopicLimit | None, float]] = {}


#: By brokers: bytes of batches that all topics take, after a topic has refused larger batches.
_batch_bytes: dict[str, int] = {}


def batch_settings(client: ClientSettings) -> dict[str, str]:
    """Return the setting `batch.size` for a new producer if `lower_batches` has reduced it, else an empty dict."""
    most = _batch_bytes.get(client.bootstrap_servers)
    return {} if most is None else {"batch.size": str(most)}


def lower_batches(client: ClientSettings, topic: str) -> bool:
    """Reduce `batch.size` for producers that are opened from now on, so that `topic` takes their batches.

    Call it when the topic has refused a batch of small records for its size. Return False if batches are small enough
    already, or if the topic's limit is unknown.
    """
    limit = topic_limit(client, topic)
    now = _batch_bytes.get(client.bootstrap_servers, client.batch_bytes)
    if limit is None or limit.bytes >= now:
        return False
    _batch_bytes[client.bootstrap_servers] = limit.bytes
    _log.warning(
        "Topic %s refuses batches of more than %d bytes (max.message.bytes). incsnap sends smaller batches now. Set"
        " producer.batch.size=%d, so that none is refused first",
        topic, limit.bytes, limit.bytes,
    )  # fmt: skip
    return True


def topic_limit(client: ClientSettings, topic: str) -> TopicLimit | None:
    """Return the topic's limit, asked from Kafka or cached.

    Return None if Kafka does not report the limit, for example because the principal lacks DESCRIBE_CONFIGS.
    """
    who = (topic, client.bootstrap_servers)
    limit, until = _known.get(who, (None, 0.0))
    if time.monotonic() > until:
        limit = _asked(client, topic)
        _known[who] = (limit, time.monotonic() + (_KNOWN_SECONDS if limit is not None else _UNKNOWN_SECONDS))
    return limit


def limit_in_memory(client: ClientSettings, topic: str) -> TopicLimit | None:
    """Return the cached limit of the topic, or None. Send no request."""
    limit, until = _known.get((topic, client.bootstrap_servers), (None, 0.0))
    return limit if time.monotonic() <= until else None


def surely_exceeds(content: bytes, limit: TopicLimit, client: ClientSettings) -> bool:
    """Return True if a batch of this record alone, compressed as `client` does, is larger than the topic takes.

    `content` is key and value. Return False if only the broker can decide.
    """
    return _batch_bytes_of(content, limit, client)[0] > limit.bytes


@dataclass(frozen=True, slots=True)
class RecordRoom:
    """The room that topics have for a record, as far as Kafka reports its limits."""

    client: ClientSettings  #: settings of the producer that sends the record

    def fits(self, topic: str, content: bytes) -> bool:
        """Return True if Kafka takes a record with this key and value. Return False close to the topic's limit."""
        limit = topic_limit(self.client, topic)
        if len(content) > self.client.largest_record:
            return False
        if limit is None:
            return True
        return _batch_bytes_of(content, limit, self.client)[1] <= limit.bytes

    def most(self, topic: str) -> int:
        """Return the most bytes of key and value that Kafka takes, even if they do not compress."""
        limit = topic_limit(self.client, topic)
        largest = self.client.largest_record
        # Data that does not compress grows a little.
        return largest if limit is None else min(largest, int((limit.bytes - BATCH_OVERHEAD) * 0.99))


def _batch_bytes_of(content: bytes, limit: TopicLimit, client: ClientSettings) -> tuple[float, float]:
    """Return the least and the most bytes that the broker may count for a batch of this record alone."""
    whole = len(content) + BATCH_OVERHEAD
    margin = _MARGINS.get(client.compression)
    if margin is None or limit.recompressed == "uncompressed" or whole <= limit.bytes:
        return whole, whole
    compressed = len(pa.compress(content, client.compression, asbytes=True)) + BATCH_OVERHEAD
    # A compression level that the user has chosen may compress much better.
    return 0 if "compression.level" in client.producer else compressed * (1 - margin), compressed * (1 + margin)


def _asked(client: ClientSettings, topic: str) -> TopicLimit | None:
    try:
        config = topic_config(client, topic)
        compression = config["compression.type"]
        return TopicLimit(int(config["max.message.bytes"]), "" if compression == "producer" else compression)
    except (KafkaException, KeyError, ValueError) as problem:
        _log.warning("Kafka does not report max.message.bytes of topic %s: %s", topic, problem)
        return None
