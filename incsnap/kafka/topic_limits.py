"""How large a record a topic takes: the topic's own limit, asked for when a record was refused for its size.

A broker judges a batch of records as the producer has compressed it. A record that is larger than
``max.message.bytes`` alone may so fit, and only the broker knows surely. ``surely_exceeds`` says of which records no
compression of ours makes one that fits.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin._config import ConfigResource

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client

_log = logging.getLogger(__name__)
#: What a batch of one record has besides key and value: 61 bytes of its own header and a few of the record's.
BATCH_OVERHEAD = 70
_REQUEST_SECONDS = 15.0
#: Seconds for which an answer is believed: somebody may raise the limit meanwhile.
_KNOWN_SECONDS = 60.0
#: Seconds after which brokers that did not answer are asked again.
_UNKNOWN_SECONDS = 5.0
#: By compression type: by how much librdkafka's result may differ from Arrow's, which has other levels by default.
#: Nearer to the limit only the broker decides.
_MARGINS = {"lz4": 0.02, "snappy": 0.05, "gzip": 0.1, "zstd": 0.15}


@dataclass(frozen=True, slots=True)
class TopicLimit:
    """The limit of a topic for its batches."""

    bytes: int  #: max.message.bytes
    recompressed: str = ""  #: compression.type of the topic; "": batches stay as the producer made them


#: By topic, and how the brokers are reached: the answer, and until when it is believed.
_known: dict[tuple[str, str], tuple[TopicLimit | None, float]] = {}


#: By brokers: bytes of the batches that all their topics take, where a topic has refused larger ones.
_batch_bytes: dict[str, int] = {}


def batch_settings(client: ClientSettings) -> dict[str, str]:
    """Return the producer's ``batch.size``, if a topic has refused larger batches of small records."""
    most = _batch_bytes.get(client.bootstrap_servers)
    return {} if most is None else {"batch.size": str(most)}


def lower_batches(client: ClientSettings, topic: str) -> bool:
    """Send smaller batches from now on, which the topic takes. False if they are small enough as they are."""
    limit = topic_limit(client, topic)
    now = _batch_bytes.get(client.bootstrap_servers, client.batch_bytes)
    if limit is None or limit.bytes >= now:
        return False
    _batch_bytes[client.bootstrap_servers] = limit.bytes
    _log.warning(
        "Topic %s refuses batches of more than %d bytes (max.message.bytes), and batches of small records were larger:"
        " they are sent in smaller ones. Set producer.batch.size=%d, so that none is refused first",
        topic, limit.bytes, limit.bytes,
    )  # fmt: skip
    return True


def topic_limit(client: ClientSettings, topic: str) -> TopicLimit | None:
    """Return the topic's limit, or None if Kafka does not tell it (the principal may lack DESCRIBE_CONFIGS)."""
    who = (topic, client.bootstrap_servers)
    limit, until = _known.get(who, (None, 0.0))
    if time.monotonic() > until:
        limit = _asked(client, topic)
        _known[who] = (limit, time.monotonic() + (_KNOWN_SECONDS if limit is not None else _UNKNOWN_SECONDS))
    return limit


def limit_in_memory(client: ClientSettings, topic: str) -> TopicLimit | None:
    """Return the topic's limit if it was asked for lately; nobody is asked now."""
    limit, until = _known.get((topic, client.bootstrap_servers), (None, 0.0))
    return limit if time.monotonic() <= until else None


def surely_exceeds(content: bytes, limit: TopicLimit, client: ClientSettings) -> bool:
    """Whether a batch that has this record alone is larger than the topic takes, as ``client`` compresses it.

    ``content``: key and value. False if only the broker can tell.
    """
    least, _ = _batch_bytes_of(content, limit, client)
    return least > limit.bytes


@dataclass(frozen=True, slots=True)
class RecordRoom:
    """The room that topics have for a record, as far as Kafka tells its limits."""

    client: ClientSettings  #: of the producer that sends it

    def fits(self, topic: str, content: bytes) -> bool:
        """Whether Kafka takes a record with this key and value. Near to the topic's limit: False."""
        limit = topic_limit(self.client, topic)
        if len(content) > self.client.largest_record:
            return False
        if limit is None:
            return True
        _, most = _batch_bytes_of(content, limit, self.client)
        return most <= limit.bytes

    def most(self, topic: str) -> int:
        """Return the bytes of key and value that Kafka takes, however badly they compress."""
        limit = topic_limit(self.client, topic)
        largest = self.client.largest_record
        # What does not compress grows a little by it.
        return largest if limit is None else min(largest, int((limit.bytes - BATCH_OVERHEAD) * 0.99))


def _batch_bytes_of(content: bytes, limit: TopicLimit, client: ClientSettings) -> tuple[float, float]:
    """Return the least and the most bytes that the broker may count for a batch of this record alone."""
    whole = len(content) + BATCH_OVERHEAD
    margin = _MARGINS.get(client.compression)
    if margin is None or limit.recompressed == "uncompressed" or whole <= limit.bytes:
        return whole, whole
    compressed = len(pa.compress(content, client.compression, asbytes=True)) + BATCH_OVERHEAD
    # A level that the user has chosen may compress better by any measure.
    return 0 if client.has_compression_level else compressed * (1 - margin), compressed * (1 + margin)


def _asked(client: ClientSettings, topic: str) -> TopicLimit | None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        # Named, so that it lives until the answer is there.
        admin = admin_client(client)
        entries = admin.describe_configs([resource], request_timeout=_REQUEST_SECONDS)[resource].result()
        compression = entries["compression.type"].value
        return TopicLimit(int(entries["max.message.bytes"].value), "" if compression == "producer" else compression)
    except (KafkaException, KeyError, ValueError) as problem:
        _log.warning("Kafka does not tell max.message.bytes of topic %s: %s", topic, problem)
        return None
