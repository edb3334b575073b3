"""Topics as they are and as the job needs them: create what is missing, leave alone what is there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from incsnap.errors import SinkError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import client_error, control_topic
from incsnap.kafka.refusals import sink_error

#: One record a bucket and batch, of which only a job's newest matters: small segments, so that compaction comes soon.
_CONTROL_CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "3600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
_REQUEST_SECONDS = 15.0
_READY_SECONDS = 30.0


def admin_client(settings: ClientSettings) -> AdminClient:
    return AdminClient(dict(settings.for_admin()))


def partition_counts(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """Partitions of those topics that exist. A topic counts only when each partition has a leader."""
    counts: dict[str, int] = {}
    wanted = sorted(set(names))
    if not wanted:
        return counts
    for name, answer in admin.describe_topics(TopicCollection(wanted), request_timeout=_REQUEST_SECONDS).items():
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
    wanted = sorted(set(names))
    counts = partition_counts(admin, wanted)
    missing = [
        NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(config or {}))
        for name in wanted
        if name not in counts
    ]
    if missing:
        for name, answer in admin.create_topics(missing, request_timeout=_REQUEST_SECONDS).items():
            _settle(f"creating topic {name}", answer, KafkaError.TOPIC_ALREADY_EXISTS)
        counts |= _ready(admin, {topic.topic: 1 for topic in missing})
    return counts


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
    while True:
        counts = partition_counts(admin, least)
        if all(counts.get(name, 0) >= count for name, count in least.items()):
            return counts
        if time.monotonic() > deadline:
            late = ", ".join(sorted(name for name, count in least.items() if counts.get(name, 0) < count))
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
