"""The output of a source task: blocks as rows for the shuffle, in order."""

from __future__ import annotations

from collections.abc import Iterator

from incsnap.config.settings import Settings
from incsnap.tasks import blocks
from incsnap.tasks.partitions import SlicePart
from incsnap.tasks.slice_records import change_blocks


def slice_rows(part: SlicePart, settings: Settings, now_us: int) -> Iterator[blocks.BlockRow]:
    """Yield one row for each block of the slice. `now_us`: the time of the records, in microseconds since 1970."""
    made = change_blocks(
        part.slice,
        part.charsets,
        part.layout,
        settings,
        now_us,
        part.border,
        part.defaults,
        seam=part.seam,
        sent_rows=part.sent_rows,
    )
    for number, (bucket, topic, table, records) in enumerate(made):
        # Orders after the batch's releases and held tables, then by slice, then by block within the slice.
        order = (part.order + 1) << 32 | number
        if isinstance(table, tuple):
            yield blocks.tables(part.batch, bucket, order, table, records)
        else:
            yield blocks.events(part.batch, bucket, order, topic, str(table or ""), records)
