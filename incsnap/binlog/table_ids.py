"""What the table ids of a dump mean: a server counts them up, and gives a table another whenever it is opened anew."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from incsnap.binlog import runs
from incsnap.binlog.runs import Events
from incsnap.binlog.segments import Names
from incsnap.errors import BinlogError

#: A rows event of this table id holds no rows; old servers end a statement with it.
_DUMMY = 0xFFFFFF


class TableIds:
    """As the maps that were read so far tell them."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._number_of: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """A server that restarts counts from one again."""
        self._number_of = {_DUMMY: -1}

    def tables(self, events: Events, file: str) -> tuple[npt.NDArray[np.int32], int]:
        """The number of each map's and rows event's table (``Names``), -1 for every other event, for as many events as
        no table id changes its meaning. ``file``: for the message of a ``BinlogError``."""
        table = np.full(len(events), -1, np.int32)
        known = self._number_of
        maps = np.flatnonzero(events.classes == runs.MAP)
        count = len(events)
        if len(maps):
            data, decide = events.data, self._names.table
            ids = events.table_ids(maps)
            places = zip((events.starts[maps] + 25).tolist(), events.ends[maps].tolist(), strict=True)
            numbers = [decide(data[begin:end]) for begin, end in places]
            for nth, (table_id, number) in enumerate(zip(ids, numbers, strict=True)):
                if known.get(table_id, number) != number and maps[nth] > 0:
                    count = int(maps[nth])
                    maps, numbers = maps[:nth], numbers[:nth]
                    break
                known[table_id] = number
            table[maps] = numbers
        rows = np.flatnonzero(events.classes[:count] == runs.ROWS)
        try:
            table[rows] = [known[table_id] for table_id in events.table_ids(rows)]
        except KeyError as unknown:
            raise BinlogError(f"{file}: rows of table id {unknown} without a table map") from None
        return table, count
