"""The tables that the table ids of a dump stand for.

A server gives a table a new id whenever it opens the table again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from incsnap.binlog import event_classes
from incsnap.binlog.event_classes import Events
from incsnap.binlog.segments import IdTable
from incsnap.errors import BinlogError

#: Table id of a rows event without rows, which old servers write at the end of a statement.
_DUMMY = 0xFFFFFF


class TableIds:
    """The number of the table of each table id, from the table maps read so far."""

    def __init__(self, ids: IdTable) -> None:
        self._ids = ids
        self._number_of: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """Forget all table ids. A server that was restarted counts them from one again."""
        self._number_of = {_DUMMY: -1}

    def tables(self, events: Events, file: str) -> tuple[npt.NDArray[np.int32], int]:
        """Return the number (`IdTable.table`) of each event's table, and for how many events the numbers are valid.

        An event gets -1 if its table is excluded, or if it is no table map or rows event. The numbers are valid up to
        the first table map that gives a known id to another table: call again with the events from there on. Raise
        BinlogError, with `file`, if no table map for the id of a rows event was read.
        """
        table = np.full(len(events), -1, np.int32)
        known = self._number_of
        maps = np.flatnonzero(events.classes == event_classes.MAP)
        count = len(events)
        if len(maps):
            data, decide = events.data, self._ids.table
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
        rows = np.flatnonzero(events.classes[:count] == event_classes.ROWS)
        try:
            table[rows] = [known[table_id] for table_id in events.table_ids(rows)]
        except KeyError as unknown:
            raise BinlogError(f"{file}: rows of table id {unknown} without a table map") from None
        return table, count
