"""What a source task gives to the shuffle: blocks as rows, in order."""

from __future__ import annotations

from collections.abc import Iterator

from incsnap.config.settings import Settings
from incsnap.tasks import blocks
from incsnap.tasks.partitions import BatchPart, ReadyPart, SlicePart
from incsnap.tasks.slice_records import change_blocks


def part_rows(part: BatchPart, settings: Settings, now_us: int) -> Iterator[blocks.BlockRow]:
    """The rows of whatever a task is given. ``now_us``: see ``slice_rows``."""
    if isinstance(part, ReadyPart):
        yield from part.rows
    elif isinstance(part, SlicePart):
        yield from slice_rows(part, settings, now_us)


def slice_rows(part: SlicePart, settings: Settings, now_us: int) -> Iterator[blocks.BlockRow]:
    """A row for each block of the slice. ``now_us``: when its records are written, in microseconds since 1970."""
    made = change_blocks(part.slice, part.charsets, part.layout, settings, now_us, part.border, part.defaults)
    for number, (bucket, topic, table, records) in enumerate(made):
        # Behind the releases and held tables of the batch; slices in order, blocks of a slice in order.
        order = (part.order + 1) << 32 | number
        if table is None:
            yield blocks.notes(part.batch, bucket, order, topic, records)
        elif isinstance(table, tuple):
            yield blocks.tables(part.batch, bucket, order, table, records)
        else:
            yield blocks.events(part.batch, bucket, order, topic, str(table), records)
