"""Topics as they are and as the job needs them: create what is missing, leave alone what is there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from incsnap.errors import SinkError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import client_error, control_topic
from incsnap.kafka.refusals import sink_error

_T = TypeVar("_T")
#: One record a bucket and batch, of which only a job's newest matters: small segments, so that compaction comes soon.
_CONTROL_CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "3600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
_REQUEST_SECONDS = 15.0
#: Topics of one request to create or describe them. A broker makes some 200 a second, and a request has its time.
_TOGETHER = 500
#: Partitions of one request to create topics: brokers refuse it when it makes 10,000 records, of partitions and topics.
#: Where their own default decides how many a topic has, it is taken for at most 10.
_PARTITIONS_TOGETHER = 5_000
#: Seconds in which another topic must get its leaders. A busy broker that has thousands was seen to take 30.
_READY_SECONDS = 60.0


def admin_client(settings: ClientSettings) -> AdminClient:
    return AdminClient(dict(settings.for_admin()))


def partition_counts(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """Partitions of those topics that exist. A topic counts only when each partition has a leader."""
    counts: dict[str, int] = {}
    topics = sorted(set(names))
    answers: dict[str, Future[Any]] = {}
    for part in _parts(topics):
        answers |= admin.describe_topics(TopicCollection(part), request_timeout=_REQUEST_SECONDS)
    for name, answer in answers.items():
        try:
            description = answer.result()
        except KafkaException as problem:
            # An impossible name is told of when it comes to creating it.
            if problem.args[0].code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION):
                raise _failed(f"describing topic {name}", problem) from problem
        else:
            if all(partition.leader is not None for partition in description.partitions):
                counts[name] = len(description.partitions)
    return counts


def ensure_topics(
    admin: AdminClient,
    names: Iterable[str],
    partitions: int = -1,
    replication: int = -1,
    config: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Creates the missing ones and returns the partition count of each; existing topics stay as they are.

    ``partitions`` and ``replication`` of -1 mean the brokers' own defaults. Raises ``SinkError``.
    """
    topics = sorted(set(names))
    counts = partition_counts(admin, topics)
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
    """What one request may ask for, of topics with so many partitions (-1: the brokers' default)."""
    return _parts(topics, max(1, min(_TOGETHER, _PARTITIONS_TOGETHER // max(1, partitions))))


def _parts(items: list[_T], size: int = _TOGETHER) -> Iterator[list[_T]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def ensure_control_topic(admin: AdminClient, prefix: str, buckets: int, replication: int = -1) -> str:
    """The control topic with at least one partition a bucket; it grows, so a bucket keeps its partition."""
    name = control_topic(prefix)
    have = ensure_topics(admin, [name], buckets, replication, _CONTROL_CONFIG)[name]
    if have < buckets:
        answers = admin.create_partitions([NewPartitions(name, buckets)], request_timeout=_REQUEST_SECONDS)
        _settle(f"adding partitions to {name}", answers[name], KafkaError.INVALID_PARTITIONS)
        _ready(admin, {name: buckets})
    return name


def _ready(admin: AdminClient, least: Mapping[str, int]) -> dict[str, int]:
    """Waits until every broker asked knows the topics: creation is answered before it has spread."""
    deadline = time.monotonic() + _READY_SECONDS
    counts: dict[str, int] = {}
    waiting = dict(least)
    while True:
        ready = {name: n for name, n in partition_counts(admin, waiting).items() if n >= waiting[name]}
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
    try:
        answer.result()
    except KafkaException as problem:
        if problem.args[0].code() not in fine:
            raise _failed(what, problem) from problem


def _failed(what: str, problem: KafkaException) -> SinkError:
    return sink_error(what, client_error(problem), "the admin client")
