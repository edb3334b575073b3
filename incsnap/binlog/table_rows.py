"""The rows of a slice, table by table: which events are whose, and what is in them.

No Python object a row or a rows event: events are grouped and decoded as whole columns, a table at a time. Only table
maps are looked at one by one (0.3 µs each: they are the same bytes again and again).
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.control_events import HEADER
from incsnap.binlog.protocol.few_rows import FewRows, few_rows
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.protocol.row_images import RowImages, decode_rows
from incsnap.binlog.protocol.table_map import TABLE_ID_BYTES, TableMap, TableMaps, completed
from incsnap.binlog.protocol.unreadable import STRICT
from incsnap.binlog.slices import Slice
from incsnap.columns.images import ImageLayout
from incsnap.columns.packets import Packets
from incsnap.config.settings import FailureHandling
from incsnap.errors import BinlogError, DefinitionUnknown
from incsnap.tables import TableId, TableShape

Charsets = tuple[tuple[int, str], ...]
"""(collation id, character set) pairs of the server: hashable, and it pickles."""


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """The rows events of one table, all of one shape, in a slice; ``events``: their numbers in the slice, ascending,
    which is binlog order. They are decoded when they are asked for."""

    events: Longs
    _table_map: TableMap
    _slice: Slice
    _packets: Packets

    @property
    def shape(self) -> TableShape:
        """What the table looked like when these events were written."""
        return self._table_map.shape

    @property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """The type of each event."""
        kinds: npt.NDArray[np.uint8] = self._slice.kinds[self.events]
        return kinds

    @property
    def sizes(self) -> Longs:
        """Bytes of each event."""
        sizes: Longs = self._slice.offsets[self.events + 1] - self._slice.offsets[self.events]
        return sizes

    @property
    def table_map(self) -> TableMap:
        """The map that they are read by. Equal bytes of one give the same object, as long as they are known."""
        return self._table_map

    @property
    def packets(self) -> Packets:
        return self._packets

    def walked(self, layout: ImageLayout, most: int) -> FewRows | None:
        """Where their values lie, if there are at most so many images and all is as it must be. ``layout``: of the
        table map's columns."""
        begins, ends = self._bodies()
        bodies = zip(begins.tolist(), ends.tolist(), self.kinds.tolist(), strict=True)
        return few_rows(self._slice.payload, bodies, layout, most)

    def _bodies(self) -> tuple[Longs, Longs]:
        """Where each event's body begins and ends in the slice."""
        offsets = self._slice.offsets
        return offsets[self.events] + HEADER, offsets[self.events + 1]

    def of_kinds(self, kinds: Collection[int]) -> TableRows:
        """The events of these types alone."""
        return replace(self, events=self.events[np.isin(self.kinds, list(kinds))])

    def decode(self, needed: Set[int] | None = None, handling: FailureHandling = STRICT) -> RowImages:
        """Their row images; what ``needed`` and ``handling`` mean and what is raised: see ``decode_rows``."""
        slice_, events = self._slice, self.events
        return decode_rows(
            self._packets,
            *self._bodies(),
            self.kinds,
            self._table_map,
            needed,
            handling,
            lambda event: slice_.place(int(events[event])),
        )


def table_rows(slice_: Slice, charsets: Charsets) -> list[TableRows]:
    """Return the rows of every table in a slice, tables in the order of their first table map with rows.

    A table whose shape changes within the slice appears once for each shape that it has one after another (twice with a
    shape that it goes back to): an event of an earlier shape never follows one of a later. A table map without rows is
    not looked at: the server writes one for each table that a statement might change, by a trigger or a foreign key.

    Raise ``BinlogError``, naming the place, for rows without a table map or with one that cannot be read. Raise
    ``DefinitionUnknown`` for rows whose map has no names, if their table has no definition in the slice, or one that is
    not of these rows. Rows of a table whose definition in the slice has no columns are left out.
    """
    rows = np.flatnonzero(slice_.is_rows)
    map_of_rows = _map_in_force(slice_)[rows]
    table_maps, group_of_map = _groups(slice_, np.unique(map_of_rows), _table_maps(charsets))
    group = group_of_map[map_of_rows]
    rows, group = rows[group >= 0], group[group >= 0]
    order = np.argsort(group, kind="stable")
    rows = rows[order]
    borders = np.searchsorted(group[order], np.arange(len(table_maps) + 1)).tolist()
    packets = Packets.of(slice_.payload)
    return [
        TableRows(rows[begin:end], table_map, slice_, packets)
        for table_map, (begin, end) in zip(table_maps, pairwise(borders), strict=True)
        if end > begin
    ]


@lru_cache(maxsize=4)
def _table_maps(charsets: Charsets) -> TableMaps:
    """Kept by the worker between batches, for each server it has met."""
    return TableMaps(dict(charsets))


def _groups(slice_: Slice, maps: Longs, known: TableMaps) -> tuple[list[TableMap], Longs]:
    """Return one table map for each table and shape that it has one after another. Also return, for each event of the
    slice, the index into these: -1 where the event is none of ``maps``, or its rows are left out. ``maps``: the numbers
    of the table maps that have rows, ascending."""
    groups: list[TableMap] = []
    group_of_map = np.full(len(slice_), -1, np.int64)
    described: dict[bytes, TableMap] = {}
    #: By table: the map of the shape that it has now, and its group.
    current: dict[TableId, tuple[TableMap, int]] = {}
    payload, definitions = slice_.payload, {each.id: each for each in slice_.definitions}
    bodies = zip((slice_.offsets[maps] + HEADER).tolist(), slice_.offsets[maps + 1].tolist(), strict=True)
    for at, (begin, end) in zip(maps.tolist(), bodies, strict=True):
        description = payload[begin + TABLE_ID_BYTES : end]
        table_map = described.get(description)
        if table_map is None:
            try:
                table_map = known.of(payload[begin:end])
            except BinlogError as error:
                raise BinlogError(f"{slice_.place(at)}: {error.message}", error.hint) from None
            if not table_map.named:
                definition = definitions.get(table_map.shape.id)
                if definition is None or definition.columns:
                    table_map = _completed(table_map, definition, slice_.place(at))
            described[description] = table_map
        if not table_map.named:
            continue
        running = current.get(table_map.shape.id)
        if running is None or not _alike(running[0], table_map):
            running = current[table_map.shape.id] = (table_map, len(groups))
            groups.append(table_map)
        group_of_map[at] = running[1]
    return groups, group_of_map


def _alike(left: TableMap, right: TableMap) -> bool:
    """Flags differ between maps of one shape; their events must not be torn apart, or they would lose their order."""
    return left is right or (left.shape, left.wire) == (right.shape, right.wire)


def _completed(table_map: TableMap, definition: TableShape | None, place: str) -> TableMap:
    """Return the map with what ``definition`` tells. Raise ``DefinitionUnknown`` where there is none, or one that is
    not of the rows at ``place``."""
    where = f"{place}: rows of {table_map.shape.id} were written with binlog_row_metadata=MINIMAL"
    if definition is None:
        raise DefinitionUnknown(f"{where}, and what its columns were called is not known")
    try:
        return _completed_map(table_map, definition)
    except ValueError as difference:
        raise DefinitionUnknown(f"{where}, and by another definition than is known: {difference}") from None


def misfit(table_map: bytes, definition: TableShape, charsets: Charsets) -> str:
    """Return what differs between a table map without names and a definition of its table; "" where nothing does.
    ``table_map``: the map behind its table id, as ``Names.table`` takes it."""
    try:
        _completed_map(_table_maps(charsets).of(bytes(TABLE_ID_BYTES) + table_map), definition)
    except ValueError as difference:
        return str(difference)
    return ""


#: One object for equal ones here too: what is made for a table map is found by it.
_completed_map = lru_cache(maxsize=4096)(completed)


def _map_in_force(slice_: Slice) -> Longs:
    """By event: the table map that it is read by, which is the last one before it of the same table id."""
    ids, numbers = slice_.table_ids(), np.arange(len(slice_))
    # Sorted by id, and in each id in binlog order, that is the last map seen.
    order = np.argsort(ids, kind="stable")
    latest = np.maximum.accumulate(np.where(slice_.is_rows[order], -1, numbers))
    lost = (latest < 0) | (ids[order[latest]] != ids[order])
    if lost.any():
        where = slice_.place(int(order[np.argmax(lost)]))
        raise BinlogError(
            f"{where}: a rows event has no table map before it", "Please report this with the binlog file."
        )
    map_of_event = np.empty(len(slice_), np.int64)
    map_of_event[order] = order[latest]
    return map_of_event
