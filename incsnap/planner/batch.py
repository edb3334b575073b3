"""The parts of one batch, one for each task. They follow from the batch's two offsets.

A part is a slice of the binlog, or rows that are ready: releases of windows, tables with held windows, notifications,
and records that planning has written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pyarrow as pa

from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import Charsets
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.control_records import ControlFiles
from incsnap.config.settings import Settings
from incsnap.config.topics import ControlTopic, notification_topic, topics_of, transaction_topic
from incsnap.envelope.control_records import bucket_of_partition_0, in_partition_0
from incsnap.envelope.control_schemas import NOTIFICATION_VALUE
from incsnap.envelope.seam import Seam
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableDefaults, TableShape
from incsnap.tasks import blocks
from incsnap.tasks.formats import struct_formats
from incsnap.tasks.partitions import BatchPart, ReadyPart, SlicePart
from incsnap.tasks.transaction_metadata import WHOLE, Border, ending

#: Bytes. A batch with fewer is not divided: a task of its own (about 10 ms) is not worth a smaller slice.
_SLICE_BYTES = 1 << 20


#: Order of the records that planning has written down. They come after all slices.
_LAST = 1 << 62


def batch_parts(
    settings: Settings,
    parallelism: int,
    charsets: Charsets,
    tail: Tail,
    control: ControlFiles,
    defaults: TableDefaults,
    start: Offset,
    end: Offset,
    definitions: tuple[TableShape, ...] = (),
    seam: Seam | None = None,
) -> list[BatchPart]:
    """Return the parts of the batch between two offsets, one for each task.

    `end` must be of another batch than `start`. The binlog is divided into at most `parallelism` slices. `definitions`
    are those of tables whose rows do not name their columns. `seam`: the records that another engine has sent.
    """
    batch, layout = end.batch, end.layout
    parts: list[BatchPart] = []
    whole = settings.transaction_metadata
    slices = tail.slices(start.stream, end.stream, parallelism, whole=whole)
    if sum(len(slice_.payload) for slice_ in slices) < _SLICE_BYTES:
        slices = tail.slices(start.stream, end.stream, 1, whole=whole)
    borders = _borders(slices, start, end) if whole else [WHOLE] * len(slices)
    sent_rows = seam.rows_at(start.stream) if seam is not None else 0
    parts.extend(
        SlicePart(
            batch,
            layout,
            order,
            slice_.with_definitions(definitions),
            charsets,
            border,
            defaults,
            seam,
            0 if order else sent_rows,
        )
        for order, (slice_, border) in enumerate(zip(slices, borders, strict=True))
    )
    rows = _ready_rows(settings, end)
    if whole:
        rows += _transaction_end(settings, slices, start, end, len(rows), seam)
    for number, topic in enumerate(end.control):
        records = control.read(batch, topic)
        rows.append(blocks.control(batch, bucket_of_partition_0(topic, layout.buckets), _LAST + number, topic, records))
    if rows:
        parts.append(ReadyPart(batch, layout, tuple(rows)))
    return parts


def _borders(slices: Sequence[Slice], start: Offset, end: Offset) -> list[Border]:
    """Return for each slice how it lies in transactions of other batches.

    Only the first slice may continue a transaction. Only the last slice may leave a transaction open.
    """
    counted = start.counted if _continues(slices, start) else None
    last = len(slices) - 1
    open_gtid = end.stream.open_gtid
    return [
        Border(
            None if nth else counted, nth == last and open_gtid != "" and slice_.transactions.gtids()[-1] == open_gtid
        )
        for nth, slice_ in enumerate(slices)
    ]


def _continues(slices: Sequence[Slice], start: Offset) -> bool:
    """Whether the first slice continues the transaction that `start` lies in."""
    open_gtid = start.stream.open_gtid
    return open_gtid != "" and bool(slices) and slices[0].transactions.gtids()[0] == open_gtid


def _transaction_end(
    settings: Settings, slices: Sequence[Slice], start: Offset, end: Offset, number: int, seam: Seam | None
) -> list[blocks.BlockRow]:
    """Return the record that ends a transaction whose events all came in earlier batches; [] if there is no such
    transaction."""
    open_gtid, counted, topic = start.stream.open_gtid, start.counted, transaction_topic(settings)
    if (
        topic is None
        or counted is None
        or not counted.total
        or end.stream.open_gtid == open_gtid
        or _continues(slices, start)
    ):
        return []
    made = ending(settings, topic, open_gtid, counted, end.layout.buckets, seam)
    return [] if made is None else [blocks.control(end.batch, made[0], number, topic.name, made[1])]


def _ready_rows(settings: Settings, end: Offset) -> list[blocks.BlockRow]:
    """Return the rows that need no decoding: releases, tables with held windows, and notifications."""
    batch, buckets = end.batch, range(end.layout.buckets)
    rows: list[blocks.BlockRow] = []
    number = count()
    for planned in end.releases():
        window = planned.window
        assert window.result is not None
        order = blocks.ReleaseOrder(
            window.result.file,
            str(window.table),
            # The first topic is that of rows; "" if a transform drops all rows of the table.
            (*topics_of(settings, window.table), "")[0],
            (planned.discards.start, planned.discards.stop),
            (planned.parts.start, planned.parts.stop),
        )
        rows.extend(blocks.release(batch, bucket, next(number), order) for bucket in buckets)
    if held := sorted(str(table) for table in end.snapshot.held_tables()):
        rows.extend(blocks.held_tables(batch, bucket, next(number), held) for bucket in buckets)
    topic = notification_topic(settings)
    if topic is not None and end.snapshot.notifications:
        bucket, records = _notes(settings, topic, end.layout, end.snapshot.notifications)
        rows.append(blocks.control(batch, bucket, next(number), topic.name, records))
    return rows


def _notes(
    settings: Settings, topic: ControlTopic, layout: TopicLayout, notifications: Sequence[Notification]
) -> tuple[int, pa.RecordBatch]:
    """Return the bucket and the records of notifications. The key is the notification's id, as in Debezium."""
    key_format, value_format = struct_formats(settings)
    keys = [
        key_format.struct(f"{topic.name}-key", topic.key_schema, topic.key({"id": note.id})) for note in notifications
    ]
    values = [
        value_format.struct(f"{topic.name}-value", NOTIFICATION_VALUE, note.value(settings.topic_prefix))
        for note in notifications
    ]
    return bucket_of_partition_0(topic.name, layout.buckets), in_partition_0(keys, values)
