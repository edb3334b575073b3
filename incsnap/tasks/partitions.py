"""The parts of a batch, one per source task, and the order to read a chunk.

Spark pickles each part for its task. All contents of a part follow from the two offsets of its batch, so a repeated
batch has the same parts.
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
    """A part of batch `batch`: the work of one source task. `layout`: buckets, and partitions of topics."""

    digest = ""  #: Digest of the batch's end.
    place = ""  #: The batch's beginning and end, as the control record has them.

    def __init__(self, batch: int, layout: TopicLayout) -> None:
        self.batch = batch
        self.layout = layout


class SlicePart(BatchPart):
    """A part whose task decodes a slice of the binlog.

    `order`: number of the slice among the batch's slices. `border`: whether the slice's first and last transactions are
    complete; it matters if transactions are counted. `defaults`: column defaults, if schemas are written.
    """

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
        """Return the slice, read from its file if it is in one.

        Raise IncsnapError if the file is gone or was changed.
        """
        return slice_of(self._where)

    def travel_by(self, files: SliceFiles) -> None:
        """Write the slice into a file if it is large enough. The part then has only the file's name."""
        self._where = files.put(self.slice)


class ReadyPart(BatchPart):
    """A part with rows of `blocks.SCHEMA` that need no work.

    The rows are releases, held tables, notifications, and records that planning has written down.
    """

    def __init__(self, batch: int, layout: TopicLayout, rows: tuple[BlockRow, ...]) -> None:
        super().__init__(batch, layout)
        self.rows = rows


class ChunkOrder(NamedTuple):
    """An order to read a chunk between its two watermarks, and to write its window beside the checkpoint."""

    layout: TopicLayout  #: buckets, and partitions of topics
    end: StreamPosition  #: end of the batch that planned the chunk; the source block of the rows shows it
    read: PlannedRead  #: window, chunk and low watermark
