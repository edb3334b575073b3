"""The parts of a batch, one per source task, and the order to read a chunk.

Spark pickles each part for its task. All contents of a part follow from the two offsets of its batch, so a repeated
batch has the same parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import Charsets
from incsnap.envelope.seam import Seam
from incsnap.events import StreamPosition
from incsnap.snapshot.offset import PlannedRead, TopicLayout
from incsnap.tables import TableDefaults
from incsnap.tasks.blocks import BlockRow
from incsnap.tasks.slice_files import SliceFile, SliceFiles, slice_of
from incsnap.tasks.transaction_metadata import Border


@dataclass(eq=False)
class BatchPart(InputPartition):
    """The input of one source task in one batch. Its subclasses say what the task does."""

    digest = ""  #: Digest of the batch's end.
    place = ""  #: The batch's beginning and end, as the control record has them.

    batch: int  #: number of the batch
    layout: TopicLayout  #: buckets, and partitions of topics


@dataclass(eq=False)
class SlicePart(BatchPart):
    """The input of a task that decodes a slice of the binlog and encodes its records."""

    order: int  #: number of the slice among the batch's slices
    where: Slice | SliceFile  #: the slice, or the file that it is in
    charsets: Charsets  #: character sets of the tables' columns
    border: Border  #: whether the first and last transactions are complete; it matters if transactions are counted
    defaults: TableDefaults = ()  #: column defaults, if schemas are written
    seam: Seam | None = None  #: records that another engine has sent; None for none
    sent_rows: int = 0  #: number of rows of the slice's first rows event that another engine has sent

    @property
    def slice(self) -> Slice:
        """Return the slice, read from its file if it is in one.

        Raise IncsnapError if the file is gone or was changed.
        """
        return slice_of(self.where)

    def travel_by(self, files: SliceFiles) -> None:
        """Write the slice into a file if it is large enough. The part then has only the file's name."""
        self.where = files.put(self.slice)


@dataclass(eq=False)
class ReadyPart(BatchPart):
    """A part with rows of `blocks.SCHEMA` that need no work.

    The rows are releases, held tables, notifications, and records that planning has written down.
    """

    rows: tuple[BlockRow, ...]  #: the rows


class ChunkOrder(NamedTuple):
    """An order to read a chunk between its two watermarks, and to write its window beside the checkpoint."""

    layout: TopicLayout  #: buckets, and partitions of topics
    end: StreamPosition  #: end of the batch that planned the chunk; the source block of the rows shows it
    read: PlannedRead  #: window, chunk and low watermark
