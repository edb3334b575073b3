"""The control topic: which batch a bucket has committed last, kept where a transaction can keep it.

Twice, for two reasons. As the committed offset of the group ``incsnap-<prefix>-<job>`` on the bucket's partition: one
round trip reads it. And as a record on the compacted topic itself, because brokers forget the offsets of a group
without members after ``offsets.retention.minutes`` (7 days): a job that was stopped for longer still finds its number.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.refusals import ClientError

_log = logging.getLogger(__name__)
#: Records from the end of the partition that are looked at first; the newest of a job are nearly always among them.
_FIRST_LOOK = 1_000


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """The last batch that a bucket has committed: its number and the digest of its end ("" if written without)."""

    batch: int
    digest: str = ""
    #: The beginning and the end of the batch (``planner.delivered_place``); None where only the offset was read, or
    #: where an older release wrote the record.
    place: Mapping[str, Any] | None = None


def control_topic(prefix: str) -> str:
    return f"{prefix}.incsnap-control"


def group_of(prefix: str, job_id: str) -> str:
    return f"incsnap-{prefix}-{job_id}"


def transactional_id(prefix: str, bucket: int) -> str:
    return f"incsnap-{prefix}-{bucket}"


def control_record(job_id: str, bucket: int, batch: int, digest: str, place: str = "") -> tuple[bytes, bytes]:
    """Return key and value: compaction keeps the newest batch number of each job in the bucket's partition.

    ``place`` is JSON: the beginning and the end of the batch; "" where they are not known.
    """
    value = json.dumps({"job": job_id, "bucket": bucket, "batch": batch, "digest": digest})
    return job_id.encode(), (f'{value[:-1]}, "place": {place}}}' if place else value).encode()


def committed_batch(
    settings: ClientSettings, prefix: str, job_id: str, bucket: int, seconds: float
) -> CommittedBatch | None:
    """The last batch that the bucket has committed for this job; ``None`` when there is none.

    Call it after ``init_transactions``: no transaction of the bucket is open then. Raises ``ClientError``.
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
            "The brokers have forgotten the offset of group %s, bucket %d; its record on %s says batch %d",
            group, bucket, partition.topic, recorded.batch,
        )  # fmt: skip
    return recorded


def committed_numbers(
    settings: ClientSettings, prefix: str, job_id: str, buckets: int, seconds: float
) -> dict[int, int]:
    """Return the last batch of the job by bucket, of the buckets whose offsets the brokers have not forgotten.

    Raise ``ClientError``.
    """
    group = group_of(prefix, job_id)
    partitions = [TopicPartition(control_topic(prefix), bucket) for bucket in range(buckets)]
    consumer = Consumer(settings.for_consumer(group))
    try:
        answers = consumer.committed(partitions, timeout=seconds)
    except KafkaException as problem:
        raise client_error(problem) from problem
    finally:
        consumer.close()
    return {each.partition: each.offset for each in answers if each.error is None and each.offset >= 0}


def recorded_batch(
    settings: ClientSettings, prefix: str, job_id: str, bucket: int, seconds: float, first_look: int = _FIRST_LOOK
) -> CommittedBatch | None:
    """Return the last batch that the bucket has committed for this job, from the records of the control topic.

    Read back from the partition's end, ten times further each time. Raise ``ClientError``.
    """
    topic = control_topic(prefix)
    hasty = {"enable.partition.eof": "true", "fetch.wait.max.ms": "10"}
    consumer = Consumer({**settings.for_consumer(group_of(prefix, job_id)), **hasty})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, bucket), timeout=seconds)
        look = first_look
        while high > low:
            start = max(low, high - look)
            committed = _last_of(consumer, TopicPartition(topic, bucket, start), job_id, seconds)
            if committed is not None or start == low:
                return committed
            look *= 10
        return None
    except KafkaException as problem:
        raise client_error(problem) from problem
    finally:
        consumer.close()


def _last_of(consumer: Consumer, start: TopicPartition, job_id: str, seconds: float) -> CommittedBatch | None:
    consumer.assign([start])
    key, newest = job_id.encode(), None
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)  # consume(n) would wait for n, or out its time
        if message is None:
            continue
        error = message.error()
        if error is None:
            value = message.value()
            if message.key() == key and value is not None:
                content = json.loads(value)
                newest = CommittedBatch(int(content["batch"]), content.get("digest", ""), content.get("place"))
        elif error.code() == KafkaError._PARTITION_EOF:
            return newest
        else:
            raise client_error(error)
    raise ClientError(KafkaError._TIMED_OUT, f"{start.topic} could not be read in time", retriable=True)


# A consumer that knows its coordinator answers in 1 ms, a new one in 10-20 ms; Spark's Python workers live on between
# batches. It never subscribes, so it is no member of the group.
@lru_cache(maxsize=4)
def _consumer(_bootstrap_servers: str, settings: tuple[tuple[str, str], ...]) -> Consumer:
    return Consumer(dict(settings))


def client_error(problem: KafkaException | KafkaError) -> ClientError:
    error = problem.args[0] if isinstance(problem, KafkaException) else problem
    return ClientError(error.code(), error.str(), fatal=error.fatal(), retriable=error.retriable())
