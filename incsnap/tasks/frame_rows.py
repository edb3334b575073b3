"""What a task of a DataFrame of changes does: a part of a batch becomes rows, those of windows de-duplicated.

Kafka's job has one shuffle, by bucket, behind which the sink's tasks discard the rows of windows that events have
overtaken. A source of Spark's has no shuffle of its own. So where a batch releases parts of windows, or windows are
held across it, one task does all of it, as the one bucket there is; else each slice has a task of its own, for its
events meet nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.config.topics import topics_of
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import Offset
from incsnap.snapshot.window import low_watermark_of
from incsnap.tasks import blocks
from incsnap.tasks.bucket import Delivery, gather, sent
from incsnap.tasks.frame_columns import FrameColumns
from incsnap.tasks.partitions import BatchPart, ReadyPart, SlicePart
from incsnap.tasks.slice_records import change_blocks


class FramePart(InputPartition):
    """``slices``: each with the number of its first event in the batch; ``rows``: those of ``ReadyPart``. ``reached``:
    transactions of which the batch or one before it has told something."""

    def __init__(
        self,
        batch: int,
        digest: str,
        reached: GtidSet,
        slices: tuple[tuple[SlicePart, int], ...],
        rows: tuple[blocks.BlockRow, ...],
    ) -> None:
        self.batch, self.digest, self.reached, self.slices, self.rows = batch, digest, reached, slices, rows


def frame_parts(parts: list[BatchPart], end: Offset, digest: str) -> list[FramePart]:
    """One a task, of the batch that ends at ``end``; ``digest``: of that, as it was dumped."""
    slices: list[tuple[SlicePart, int]] = []
    rows: list[blocks.BlockRow] = []
    first, batch, reached = 0, end.batch, low_watermark_of(end.stream)
    for part in parts:
        if isinstance(part, SlicePart):
            slices.append((part, first))
            first += len(part.slice)
        elif isinstance(part, ReadyPart):
            rows.extend(part.rows)
    if rows:
        return [FramePart(batch, digest, reached, tuple(slices), tuple(rows))]
    return [FramePart(batch, digest, reached, (each,), ()) for each in slices]


def frame_rows(
    part: FramePart, settings: Settings, buffers: WindowBuffers, schema: pa.Schema, older: GtidSet
) -> Iterator[Any]:
    """Batches of ``schema``; run again, it gives the same. ``older`` as in ``FrameColumns``."""
    assert settings.frame is not None
    columns, only = FrameColumns(settings.frame, schema, older, part.batch, part.reached), settings.frame.table
    topics = () if only is None else topics_of(settings, only)
    for topic, table, records in _delivered(part, settings, buffers):
        # The signal table is captured too, and Spark's names of tables know capitals, which the patterns of settings do
        # not. A truncation comes by its topic alone.
        if only is None or table == str(only) or (not table and topic in topics):
            yield columns.of(topic, table, records)


def _delivered(part: FramePart, settings: Settings, buffers: WindowBuffers) -> Iterator[tuple[str, str, Any]]:
    if not part.rows:
        for topic, table, records in _changes(part, settings):
            kept = sent(records)
            if len(kept):
                yield topic, table, kept
        return
    rows = [*part.rows]
    for number, (topic, table, records) in enumerate(_changes(part, settings)):
        make = blocks.events if table else _notes
        # Behind the releases and holds of the batch, before what planning has written down.
        rows.append(make(part.batch, 0, 1 << 32 | number, topic, table, records))
    received = gather(blocks.to_arrow([row], part.digest) for row in rows)
    assert received is not None
    if received.held_tables is not None:
        # Before a row leaves: what a later batch releases is discarded by them. A replay writes the same.
        buffers.write_discards(received.batch, received.bucket, received.overtaken())
    yield from Delivery(received, buffers).by_table()


def _notes(batch: int, bucket: int, order: int, topic: str, table: str, records: pa.RecordBatch) -> blocks.BlockRow:
    return blocks.notes(batch, bucket, order, topic, records)


def _changes(part: FramePart, settings: Settings) -> Iterator[tuple[str, str, Any]]:
    now_us = time.time_ns() // 1000
    for each, first in part.slices:
        changes = change_blocks(
            each.slice, each.charsets, each.layout, settings, now_us, each.border, each.defaults, first
        )
        for _, topic, table, records in changes:
            runs = table if isinstance(table, tuple) else [blocks.Run(topic, str(table or ""), len(records))]
            for run, of_table in blocks.by_run(records, runs):
                yield run.topic, run.table, of_table
