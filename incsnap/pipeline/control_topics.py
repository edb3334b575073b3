"""Topics of records that are no rows of a table, and how such a record gets into a block: always partition 0, so that a
reader sees all of them in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.config.settings import Settings
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.records import RECORDS
from incsnap.envelope.topic_names import INVALID


def transaction_topic(settings: Settings) -> str:
    """``<topic.prefix>.<topic.transaction>``"""
    return INVALID.sub("_", settings.topic_delimiter.join((settings.topic_prefix, settings.transaction_topic)))


def schema_topic(settings: Settings) -> str:
    """``<topic.prefix>``"""
    return INVALID.sub("_", settings.topic_prefix)


def control_topics(settings: Settings) -> set[str]:
    """Those that this job may write to."""
    topics: set[str] = set()
    if settings.notifications.sink_topic and "sink" in settings.notifications.channels:
        topics.add(settings.notifications.sink_topic)
    if settings.transaction_metadata:
        topics.add(transaction_topic(settings))
    if settings.include_schema_changes:
        topics.add(schema_topic(settings))
    return topics


def home(topic: str, buckets: int) -> int:
    """The bucket of the topic's partition 0."""
    return int(bucket_of(topic, np.zeros(1, np.int32), buckets)[0])


def in_partition_0(keys: Sequence[bytes | None], values: Sequence[bytes]) -> Any:
    """RECORDS"""
    none = pa.nulls(len(values), pa.binary())
    columns = [pa.array([0] * len(values), pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    return pa.RecordBatch.from_arrays([*columns, none, none, none, none], schema=RECORDS)
