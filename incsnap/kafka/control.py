"""The control topic: the last batch that each bucket has committed, stored inside the bucket's transaction.

The number is stored twice. As the committed offset of the group `incsnap-<prefix>-<job>` on the bucket's partition it
is read in one round trip. As a record on the compacted control topic it survives longer. Brokers forget the offsets of
a group without members after `offsets.retention.minutes` (7 days), and a job may be stopped longer.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.refusals import ClientError

_log = logging.getLogger(__name__)
#: Records to read first, from the end of the partition. The newest record of a job is nearly always among them.
_FIRST_LOOK = 1_000
#: Errors of a partition without a leader, or a group without a coordinator. Both find another broker within seconds.
_MOVING = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """The last batch that a bucket has committed."""

    batch: int  #: number of the batch
    digest: str = ""  #: digest of the batch's end; "" if it was written without
    #: Beginning and end of the batch (`planner.delivered_place`). None if only the offset was read, or if an older
    #: release wrote the record.
    place: Mapping[str, Any] | None = None


def control_topic(prefix: str) -> str:
    """Return the name of the prefix's control topic."""
    return f"{prefix}.incsnap-control"


def group_of(prefix: str, job_id: str) -> str:
    """Return the consumer group whose offsets hold the batch numbers of a job."""
    return f"incsnap-{prefix}-{job_id}"


def transactional_id(prefix: str, bucket: int) -> str:
    """Return the transactional id of a bucket's producer."""
    return f"incsnap-{prefix}-{bucket}"


def control_record(job_id: str, bucket: int, batch: int, digest: str, place: str = "") -> tuple[bytes, bytes]:
    """Return key and value of the record with a batch number.

    Compaction keeps the newest record of each job in the bucket's partition. `place` is JSON of the beginning and the
    end of the batch, or "" if they are unknown.
    """
    value = json.dumps({"job": job_id, "bucket": bucket, "batch": batch, "digest": digest})
    return job_id.encode(), (f'{value[:-1]}, "place": {place}}}' if place else value).encode()


def committed_batch(
    settings: ClientSettings, prefix: str, job_id: str, bucket: int, seconds: float
) -> CommittedBatch | None:
    """Return the last batch that the bucket has committed for this job, or None if there is none.

    Call it after `init_transactions`, when the bucket has no open transaction. Raise ClientError if Kafka cannot be
    asked.
    """
    group = group_of(prefix, job_id)
    partition = TopicPartition(control_topic(prefix), bucket)
    consumer = _consumer(settings.bootstrap_servers, tuple(sorted(settings.for_consumer(group).items())))
    try:
        (committed,) = consumer.committed([partition], timeout=seconds)
    except KafkaException as problem:
        _consumer.cache_clear()
        raise client_error(problem) from problem
    if committed.error is not None:
        raise client_error(committed.error)
    if committed.offset != OFFSET_INVALID:
        return CommittedBatch(int(committed.offset), committed.metadata or "")
    recorded = recorded_batch(settings, prefix, job_id, bucket, seconds)
    if recorded is not None:
        _log.warning(
            "The brokers have dropped the offset of group %s, bucket %d; the control record on %s says batch %d",
            group, bucket, partition.topic, recorded.batch,
        )  # fmt: skip
    return recorded


def committed_numbers(
    settings: ClientSettings, prefix: str, job_id: str, buckets: int, seconds: float, *, fenced: bool = True
) -> dict[int, int]:
    """Return the last batch of the job for each bucket, without buckets whose offsets the brokers have forgotten.

    `fenced` says that the buckets have no open transaction. Pass False if one may be open: with True the brokers would
    answer only after its end, and a dead job's transaction ends by its time-out. Raise ClientError if Kafka cannot be
    asked.
    """
    group = group_of(prefix, job_id)
    partitions = [TopicPartition(control_topic(prefix), bucket) for bucket in range(buckets)]
    isolation = "read_committed" if fenced else "read_uncommitted"
    consumer = Consumer({**settings.for_consumer(group), "isolation.level": isolation})
    with closing(consumer), client_errors():
        answers = consumer.committed(partitions, timeout=seconds)
    return {each.partition: each.offset for each in answers if each.error is None and each.offset >= 0}


def recorded_batch(
    settings: ClientSettings, prefix: str, job_id: str, bucket: int, seconds: float, first_look: int = _FIRST_LOOK
) -> CommittedBatch | None:
    """Return the last batch that the bucket has committed for this job, from the records of the control topic.

    Read backwards from the partition's end, ten times further each time. Raise ClientError if Kafka cannot be read.
    """
    topic = control_topic(prefix)
    hasty = {"enable.partition.eof": "true", "fetch.wait.max.ms": "10"}
    consumer = Consumer({**settings.for_consumer(group_of(prefix, job_id)), **hasty})
    with closing(consumer), client_errors():
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, bucket), timeout=seconds)
        look = first_look
        while high > low:
            start = max(low, high - look)
            committed = _last_of(consumer, TopicPartition(topic, bucket, start), job_id, seconds)
            if committed is not None or start == low:
                return committed
            look *= 10
    return None


def _last_of(consumer: Consumer, start: TopicPartition, job_id: str, seconds: float) -> CommittedBatch | None:
    """Return the job's last batch in the records from `start` on, or None. Raise ClientError if that takes too long."""
    key, newest = job_id.encode(), None
    for message in records_from(consumer, start, None, seconds):
        value = message.value()
        if message.key() == key and value is not None:
            content = json.loads(value)
            newest = CommittedBatch(int(content["batch"]), content.get("digest", ""), content.get("place"))
    return newest


def records_from(consumer: Consumer, start: TopicPartition, end: int | None, seconds: float) -> Iterator[Message]:
    """Yield the records of a partition from the offset in `start` on.

    With an `end` the function yields at least all records before that offset. Without one it yields all records that a
    reader can see now. The consumer must report the end of a partition (`enable.partition.eof`). Raise ClientError if
    Kafka refuses, or if reading takes longer than `seconds`.
    """
    consumer.assign([start])
    try:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)  # consume(n) would wait for n records or for its whole time-out
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message
            elif error.code() != KafkaError._PARTITION_EOF:
                raise client_error(error)
            elif end is None:
                return
            if end is not None and (message.offset() or 0) >= (end if error is not None else end - 1):
                return
    finally:
        consumer.unassign()
    raise ClientError(KafkaError._TIMED_OUT, f"{start.topic} could not be read in time", retriable=True)


# A consumer that knows its coordinator answers in 1 ms, a new one in 10 to 20 ms. So it is kept: Spark's Python workers
# live on between batches. It never subscribes, so it is no member of the group.
@lru_cache(maxsize=4)
def _consumer(_bootstrap_servers: str, settings: tuple[tuple[str, Any], ...]) -> Consumer:
    return Consumer(dict(settings))


def client_error(problem: KafkaException | KafkaError) -> ClientError:
    """Return an error of confluent-kafka as ClientError."""
    error = problem.args[0] if isinstance(problem, KafkaException) else problem
    retriable = error.retriable() or error.code() in _MOVING
    return ClientError(error.code(), error.str(), fatal=error.fatal(), retriable=retriable)


@contextmanager
def client_errors() -> Iterator[None]:
    """Translate errors of confluent-kafka: a KafkaException in the block is raised as a ClientError."""
    try:
        yield
    except KafkaException as problem:
        raise client_error(problem) from problem
