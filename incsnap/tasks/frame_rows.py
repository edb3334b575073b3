"""The task of a DataFrame of changes: turns a part of a batch into rows, and de-duplicates rows of windows.

The job for Kafka has one shuffle, by bucket, and its sink tasks discard overtaken rows after it. A Spark source has no
shuffle of its own. If a batch releases parts of windows, or windows are held during the batch, one task therefore does
the whole batch, as its only bucket. Otherwise each slice has its own task, because nothing has to be compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
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
from incsnap.tasks.described_rows import DescribedRows
from incsnap.tasks.frame_columns import FrameColumns
from incsnap.tasks.partitions import BatchPart, ReadyPart, SlicePart
from incsnap.tasks.slice_records import change_blocks


@dataclass(eq=False)
class FramePart(InputPartition):
    """The input of one task of a DataFrame of changes: slices of the binlog to decode, and rows that need no decoding.

    The task decodes the slices, discards overtaken rows of windows, and returns rows of the DataFrame.
    """

    batch: int  #: number of the batch
    digest: str  #: of the batch's end, as Spark's log has it
    reached: GtidSet  #: transactions that this batch or an earlier one has sent some event of
    slices: tuple[tuple[SlicePart, int], ...]  #: each with the number of its first event in the batch
    rows: tuple[blocks.BlockRow, ...]  #: rows of `ReadyPart`


def frame_parts(parts: list[BatchPart], end: Offset, digest: str) -> list[FramePart]:
    """Return the tasks' parts of the batch that ends at `end`. `digest`: of the batch's end, as Spark's log has it."""
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
    """Yield the part's rows as record batches of `schema`. Described rows have the columns of DESCRIBED_ROWS.

    A repeated task yields the same. `older`: see `FrameColumns`.
    """
    assert settings.frame is not None
    columns, only = FrameColumns(settings.frame, schema, older, part.batch, part.reached), settings.frame.table
    described = DescribedRows(part.batch) if settings.frame.described else None
    topics = () if only is None else topics_of(settings, only)
    for topic, table, records in _delivered(part, settings, buffers):
        # Other tables may be in the slice. The signal table is captured too, and a pattern of the settings is
        # case-sensitive where Spark's names are not. A truncation comes with its topic and without a table.
        if only is None or table == str(only) or (not table and topic in topics):
            yield described.of(records) if described else columns.of(topic, table, records)


def _delivered(part: FramePart, settings: Settings, buffers: WindowBuffers) -> Iterator[tuple[str, str, Any]]:
    """Yield (topic, table, records) of the part, without overtaken rows of windows."""
    if not part.rows:
        for topic, table, records in _changes(part, settings):
            _, kept = sent((), records)
            if len(kept):
                yield topic, table, kept
        return
    rows = [*part.rows]
    for number, (topic, table, records) in enumerate(_changes(part, settings)):
        # Orders after the batch's releases and holds, and before what planning has written down.
        rows.append(blocks.events(part.batch, 0, 1 << 32 | number, topic, table, records))
    received = gather(blocks.to_arrow([row], part.digest) for row in rows)
    assert received is not None
    if received.held_tables is not None:
        # The keys are written before a row is yielded, because later batches discard rows by them. A replay writes the
        # same.
        buffers.write_discards(received.batch, received.bucket, received.overtaken())
    yield from Delivery(received, buffers).by_table()


def _changes(part: FramePart, settings: Settings) -> Iterator[tuple[str, str, Any]]:
    """Yield (topic, table, records) of the part's slices, table by table."""
    now_us = time.time_ns() // 1000
    for each, first in part.slices:
        changes = change_blocks(
            each.slice, each.charsets, each.layout, settings, now_us, each.border, each.defaults, first
        )
        for _, topic, table, records in changes:
            runs = table if isinstance(table, tuple) else [blocks.Run(topic, str(table or ""), len(records))]
            for run, of_table in blocks.by_run(records, runs):
                yield run.topic, run.table, of_table
