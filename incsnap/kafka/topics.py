"""Creating and describing topics. Missing topics are created, existing ones stay as they are."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from incsnap.errors import ServerUnreachable, SinkError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import client_error, control_topic
from incsnap.kafka.refusals import sink_error

_T = TypeVar("_T")
#: The control topic gets one record for each bucket and batch, and only the newest one of a job matters. With small
#: segments, compaction comes soon.
CONTROL_CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "3600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
_REQUEST_SECONDS = 15.0
#: Most topics of one request to create or describe topics. A broker creates about 200 a second within the request's
#: time.
_TOGETHER = 500
#: Most partitions of one request to create topics. Brokers refuse a request that makes 10,000 records (partitions plus
#: topics). If the brokers' default decides the number of partitions, at most 10 are assumed.
_PARTITIONS_TOGETHER = 5_000
#: Seconds in which at least one more topic must get its leaders. A busy broker with thousands of topics took 30 s.
_READY_SECONDS = 60.0


def admin_client(settings: ClientSettings) -> AdminClient:
    """Return an admin client for these settings."""
    return AdminClient(dict(settings.for_admin()))


def topic_config(settings: ClientSettings, topic: str) -> dict[str, Any]:
    """Return the configuration of a topic: name -> value. Raise KafkaException if Kafka does not describe it."""
    # A variable, so that the client lives until the answer arrives.
    admin = admin_client(settings)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    entries = admin.describe_configs([resource], request_timeout=_REQUEST_SECONDS)[resource].result()
    return {name: entry.value for name, entry in entries.items()}


def partition_counts(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """Return the number of partitions of each topic that exists.

    Raise SinkError if Kafka cannot describe a topic, and ServerUnreachable if a partition has no leader.
    """
    counts = _counts_or_leaderless(admin, names)
    for name, count in counts.items():
        if count is None:
            raise ServerUnreachable(f"a partition of topic {name} has no leader", "Start the brokers that are down.")
    return {name: count for name, count in counts.items() if count is not None}


def _counts_or_leaderless(admin: AdminClient, names: Iterable[str]) -> dict[str, int | None]:
    """Return the number of partitions of each topic that exists; None for a topic with a partition without a leader.

    Raise SinkError if Kafka cannot describe a topic.
    """
    counts: dict[str, int | None] = {}
    answers: dict[str, Future[Any]] = {}
    for part in _parts(sorted(set(names))):
        answers |= admin.describe_topics(TopicCollection(part), request_timeout=_REQUEST_SECONDS)
    for name, answer in answers.items():
        try:
            description = answer.result()
        except KafkaException as problem:
            # A name that is not possible is reported when the topic is created.
            if problem.args[0].code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION):
                raise _failed(f"describing topic {name}", problem) from problem
        else:
            is_led = all(partition.leader is not None for partition in description.partitions)
            counts[name] = len(description.partitions) if is_led else None
    return counts


def _counts_of_led(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """Return the number of partitions of each topic that exists and whose partitions all have leaders."""
    return {name: count for name, count in _counts_or_leaderless(admin, names).items() if count is not None}


def ensure_topics(
    admin: AdminClient,
    names: Iterable[str],
    partitions: int = -1,
    replication: int = -1,
    config: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Create missing topics and return the number of partitions of each. Existing topics stay as they are.

    -1 for `partitions` or `replication` means the brokers' default. Raise SinkError if Kafka refuses.
    """
    topics = sorted(set(names))
    counts = _counts_of_led(admin, topics)
    missing = [
        NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(config or {}))
        for name in topics
        if name not in counts
    ]
    for part in creatable_together(missing, partitions):
        for name, answer in admin.create_topics(part, request_timeout=_REQUEST_SECONDS).items():
            _settle(f"creating topic {name}", answer, KafkaError.TOPIC_ALREADY_EXISTS)
        counts |= _ready(admin, {topic.topic: 1 for topic in part})
    return counts


def creatable_together(topics: list[NewTopic], partitions: int) -> Iterator[list[NewTopic]]:
    """Divide topics into groups that one request may create.

    `partitions` is their number of partitions; -1: the default.
    """
    return _parts(topics, max(1, min(_TOGETHER, _PARTITIONS_TOGETHER // max(1, partitions))))


def _parts(items: list[_T], size: int = _TOGETHER) -> Iterator[list[_T]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def ensure_control_topic(admin: AdminClient, prefix: str, buckets: int, replication: int = -1) -> str:
    """Create the control topic with at least one partition for each bucket, or add partitions. Return its name.

    The topic never shrinks, so a bucket keeps its partition. Raise SinkError if Kafka refuses.
    """
    name = control_topic(prefix)
    have = ensure_topics(admin, [name], buckets, replication, CONTROL_CONFIG)[name]
    if have < buckets:
        answers = admin.create_partitions([NewPartitions(name, buckets)], request_timeout=_REQUEST_SECONDS)
        _settle(f"adding partitions to {name}", answers[name], KafkaError.INVALID_PARTITIONS)
        _ready(admin, {name: buckets})
    return name


def _ready(admin: AdminClient, least: Mapping[str, int]) -> dict[str, int]:
    """Wait until the brokers know the topics with at least `least` partitions. Return the numbers of partitions.

    Brokers answer a creation before all of them know the topic. Raise SinkError if no further topic is ready for
    `_READY_SECONDS`.
    """
    deadline = time.monotonic() + _READY_SECONDS
    counts: dict[str, int] = {}
    waiting = dict(least)
    while True:
        ready = {name: n for name, n in _counts_of_led(admin, waiting).items() if n >= waiting[name]}
        if ready:
            deadline = time.monotonic() + _READY_SECONDS
        counts |= ready
        waiting = {name: count for name, count in waiting.items() if name not in ready}
        if not waiting:
            return counts
        if time.monotonic() > deadline:
            late = ", ".join(sorted(waiting)[:50])
            raise SinkError(f"Topics were created, but have no leaders after {_READY_SECONDS:.0f} s: {late}")
        time.sleep(0.02)


def _settle(what: str, answer: Future[Any], *fine: int) -> None:
    """Wait for the answer. Raise SinkError unless it succeeds or fails with a code in `fine`."""
    try:
        answer.result()
    except KafkaException as problem:
        if problem.args[0].code() not in fine:
            raise _failed(what, problem) from problem


def _failed(what: str, problem: KafkaException) -> SinkError:
    return sink_error(what, client_error(problem), "the admin client")
