"""What one source task is given: a slice of the binlog, or rows that are ready; and what a reader of chunks is given.

Spark pickles each part to a task. Everything in a part follows from the two offsets of its batch alone, so a batch that
is run again is given the same parts.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import Charsets
from incsnap.events import StreamPosition
from incsnap.snapshot.offset import PlannedRead, TopicLayout
from incsnap.tables import TableDefaults
from incsnap.tasks.blocks import BlockRow
from incsnap.tasks.slice_files import SliceFile, SliceFiles, slice_of
from incsnap.tasks.transaction_metadata import Border


class BatchPart(InputPartition):
    """What a task does for batch ``batch``; ``layout`` says where its records go."""

    #: Of the batch's end.
    digest = ""
    #: The batch's beginning and end, as the control record has them.
    place = ""

    def __init__(self, batch: int, layout: TopicLayout) -> None:
        self.batch = batch
        self.layout = layout


class SlicePart(BatchPart):
    """Decode a slice of binlog packets. ``order`` is its place among the slices of the batch; ``border``: how it lies
    in its transactions, where these are counted; ``defaults``: of columns, where schemas are written."""

    def __init__(
        self,
        batch: int,
        layout: TopicLayout,
        order: int,
        slice_: Slice,
        charsets: Charsets,
        border: Border,
        defaults: TableDefaults = (),
    ) -> None:
        super().__init__(batch, layout)
        self.defaults = defaults
        self.border = border
        self.order = order
        self.charsets = charsets
        self._where: Slice | SliceFile = slice_

    @property
    def slice(self) -> Slice:
        return slice_of(self._where)

    def travel_by(self, files: SliceFiles) -> None:
        """Puts the slice into a file, where it is worth one."""
        self._where = files.put(self.slice)


class ReadyPart(BatchPart):
    """Rows of ``blocks.SCHEMA`` that need no work: releases, held tables, notifications and what planning has
    written down."""

    def __init__(self, batch: int, layout: TopicLayout, rows: tuple[BlockRow, ...]) -> None:
        super().__init__(batch, layout)
        self.rows = rows


class ChunkOrder(NamedTuple):
    """Read a chunk between its two watermarks, and write its window beside the checkpoint.

    ``end`` is where the batch ends in which it was asked for: what a read event says of its source.
    """

    layout: TopicLayout
    end: StreamPosition
    read: PlannedRead
