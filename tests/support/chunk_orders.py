"""Orders to read a chunk, for tests of code that passes orders on."""

from __future__ import annotations

from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import PlannedRead, TopicLayout
from incsnap.snapshot.window import Chunk, Window
from incsnap.tables import TableId
from incsnap.tasks.partitions import ChunkOrder

_TABLE = TableId("d", "t")


def order(name: str, rows: int, lost: int = 0, doublings: int = 0) -> ChunkOrder:
    """Return an order for the window `name`."""
    window = Window(name, 1, _TABLE, "s", None, ("9",), rows, 1, lost=lost, doublings=doublings)
    read = PlannedRead(window, Chunk(_TABLE, ("k",), None, ("9",), "", "PRIMARY"), GtidSet())
    return ChunkOrder(TopicLayout(1, {"t": 1}), StreamPosition(GtidSet(), "", 0), read)
