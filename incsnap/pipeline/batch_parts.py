"""What the tasks of one batch do, as a function of the two offsets: slices, chunk reads, releases, holds,
notifications.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from incsnap.binlog.tail import Tail
from incsnap.config.settings import Settings
from incsnap.envelope.partitioner import bucket_of, partition
from incsnap.envelope.records import RECORDS
from incsnap.pipeline import blocks
from incsnap.pipeline.changes import Charsets
from incsnap.pipeline.naming import topic_of
from incsnap.pipeline.parts import BatchPart, ChunkPart, ReadyPart, SlicePart
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.offset import Layout, Offset

#: A slice smaller than this is not worth a task of its own (about 10 ms).
_SLICE_BYTES = 1 << 20


def batch_parts(
    settings: Settings, parallelism: int, charsets: Charsets, tail: Tail, start: Offset, end: Offset
) -> list[BatchPart]:
    """One part a task. Chunks come first: they wait for the server while slices use the processor."""
    if end.batch == start.batch:
        return []
    batch, layout = end.batch, end.layout
    reads = end.reads()
    parts: list[BatchPart] = [
        ChunkPart(batch, layout, reads[first::parallelism], end.stream) for first in range(min(parallelism, len(reads)))
    ]
    slices = tail.slices(start.stream, end.stream, parallelism)
    if sum(len(piece.payload) for piece in slices) < _SLICE_BYTES:
        slices = tail.slices(start.stream, end.stream, 1)
    parts.extend(SlicePart(batch, layout, order, piece, charsets) for order, piece in enumerate(slices))
    if rows := _ready(settings, end):
        parts.append(ReadyPart(batch, layout, tuple(rows)))
    return parts


def _ready(settings: Settings, end: Offset) -> list[blocks.Row]:
    batch, buckets = end.batch, range(end.layout.buckets)
    rows: list[blocks.Row] = []
    number = count()
    for planned in end.releases():
        window = planned.window
        assert window.reading is not None
        what = blocks.Release(
            window.reading.file, str(window.table), topic_of(settings, window.table), tuple(planned.discards)
        )
        rows.extend(blocks.release(batch, bucket, next(number), what) for bucket in buckets)
    if held := sorted(str(table) for table in end.held_tables()):
        rows.extend(blocks.hold(batch, bucket, next(number), held) for bucket in buckets)
    topic = settings.notifications.sink_topic
    if topic and "sink" in settings.notifications.channels and end.snapshot.notifications:
        bucket, records = _notes(settings.topic_prefix, topic, end.layout, end.snapshot.notifications)
        rows.append(blocks.notes(batch, bucket, next(number), topic, records))
    return rows


def _notes(
    prefix: str, topic: str, layout: Layout, notifications: Sequence[Notification]
) -> tuple[int, pa.RecordBatch]:
    """All in one partition, so that a reader sees them in order. Debezium's key is the notification's id."""
    keys = _json({"id": note.id} for note in notifications)
    values = _json(note.value(prefix) for note in notifications)
    partitions = partition(keys, layout.partitions[topic])
    partitions[:] = 0
    none = pa.nulls(len(keys), pa.binary())
    records = pa.RecordBatch.from_arrays([pa.array(partitions, pa.int32()), keys, values, none, none], schema=RECORDS)
    return int(bucket_of(topic, partitions[:1], layout.buckets)[0]), records


def _json(values: Iterable[dict[str, Any]]) -> pa.Array:
    return pa.array([json.dumps(value, separators=(",", ":")).encode() for value in values], pa.binary())
