"""The rows of a slice, table by table: which events belong to a table, and the rows that they hold.

There is no Python object for a row or a rows event: events are grouped and decoded as whole columns, a table at a time.
Only table maps are looked at one by one, at 0.3 µs each, because they repeat the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.control_events import HEADER
from incsnap.binlog.protocol.few_rows import FewRows, few_rows
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.protocol.row_images import RowImages, decode_rows
from incsnap.binlog.protocol.table_map import TABLE_ID_BYTES, TableMap, completed, table_maps
from incsnap.binlog.protocol.unreadable import STRICT
from incsnap.binlog.slices import Slice
from incsnap.columns.images import ImageLayout
from incsnap.columns.packets import Packets
from incsnap.config.settings import FailureHandling
from incsnap.errors import BinlogError, DefinitionUnknown
from incsnap.tables import TableId, TableShape

#: Pairs of the server: (collation id, character set). A tuple, because it must be hashable and picklable.
Charsets = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """The rows events of one table and one shape in a slice. They are decoded on demand."""

    events: Longs  #: index of each event in the slice, ascending, which is binlog order
    table_map: TableMap  #: map by which the rows are decoded; equal bytes give the same object while the map is cached
    slice_: Slice  #: slice that holds the events
    packets: Packets  #: payload of the slice, for decoding

    @property
    def shape(self) -> TableShape:
        """Return the table's columns and key when these events were written."""
        return self.table_map.shape

    @property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """Return the type of each event."""
        kinds: npt.NDArray[np.uint8] = self.slice_.kinds[self.events]
        return kinds

    @property
    def sizes(self) -> Longs:
        """Return the bytes of each event, header included."""
        sizes: Longs = self.slice_.offsets[self.events + 1] - self.slice_.offsets[self.events]
        return sizes

    def walked(self, layout: ImageLayout, most: int) -> FewRows | None:
        """Return the place of each value, by the fast reader for tables with few rows (see `few_rows`).

        Return None if there are more than `most` row images, or if an event is unusual: call `decode` then. `layout` is
        the layout of the table map's columns.
        """
        begins, ends = self._bodies()
        bodies = zip(begins.tolist(), ends.tolist(), self.kinds.tolist(), strict=True)
        return few_rows(self.slice_.payload, bodies, layout, most)

    def _bodies(self) -> tuple[Longs, Longs]:
        """Return the first byte and the end of each event's body in the slice."""
        offsets = self.slice_.offsets
        return offsets[self.events] + HEADER, offsets[self.events + 1]

    def of_kinds(self, kinds: Collection[int]) -> TableRows:
        """Return only the events of these types."""
        return replace(self, events=self.events[np.isin(self.kinds, list(kinds))])

    def decode(self, needed: Set[int] | None = None, handling: FailureHandling = STRICT) -> RowImages:
        """Decode the row images. For the arguments and errors see `decode_rows`."""
        slice_, events = self.slice_, self.events
        return decode_rows(
            self.packets,
            *self._bodies(),
            self.kinds,
            self.table_map,
            needed,
            handling,
            lambda event: slice_.place(int(events[event])),
        )


def table_rows(slice_: Slice, charsets: Charsets) -> list[TableRows]:
    """Return the rows of every table in a slice, tables in the order of their first table map with rows.

    If a table's shape changes within the slice, each shape has an item of its own, in the order of the events. A shape
    to which the table returns has two items. Table maps without rows are skipped: the server writes them for tables
    that a trigger or a foreign key might change.

    Raise BinlogError, with the place, if rows have no table map or a damaged one. Raise DefinitionUnknown if rows have
    no column names and the slice has no definition of their table, or a wrong one. Rows of a table whose definition has
    no columns are left out.
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
def _table_maps(charsets: Charsets) -> Callable[[bytes], TableMap]:
    """Return the cache of table maps for a server. The worker process keeps it between batches."""
    return table_maps(dict(charsets))


def _groups(slice_: Slice, maps: Longs, known: Callable[[bytes], TableMap]) -> tuple[list[TableMap], Longs]:
    """Return one table map for each table and shape, and the group of each table map of the slice.

    The group is an index into the returned maps. It is -1 for events that are not in `maps`, and for tables that are
    left out. `maps` are the indexes of the table maps that have rows, ascending.
    """
    groups: list[TableMap] = []
    group_of_map = np.full(len(slice_), -1, np.int64)
    described: dict[bytes, TableMap] = {}
    #: Table -> map of its present shape, and the map's group.
    current: dict[TableId, tuple[TableMap, int]] = {}
    payload, definitions = slice_.payload, {each.id: each for each in slice_.definitions}
    bodies = zip((slice_.offsets[maps] + HEADER).tolist(), slice_.offsets[maps + 1].tolist(), strict=True)
    for at, (begin, end) in zip(maps.tolist(), bodies, strict=True):
        description = payload[begin + TABLE_ID_BYTES : end]
        table_map = described.get(description)
        if table_map is None:
            try:
                table_map = known(description)
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
    """Return True if both maps describe one shape.

    Their flags may differ. Their events must stay together, or they would lose their order.
    """
    return left is right or (left.shape, left.wire) == (right.shape, right.wire)


def _completed(table_map: TableMap, definition: TableShape | None, place: str) -> TableMap:
    """Return the map with the column names of `definition`.

    Raise DefinitionUnknown if there is no definition, or if it does not fit the rows at `place`.
    """
    where = f"{place}: rows of {table_map.shape.id} were written with binlog_row_metadata=MINIMAL"
    if definition is None:
        raise DefinitionUnknown(f"{where}, and what its columns were called is not known")
    try:
        return _completed_map(table_map, definition)
    except ValueError as difference:
        raise DefinitionUnknown(f"{where}, and by another definition than is known: {difference}") from None


def misfit(table_map: bytes, definition: TableShape, charsets: Charsets) -> str:
    """Return how a table map without column names differs from a definition of its table; "" if they agree.

    The planner calls this before it decides by which definition rows are decoded. `table_map` is the map's body without
    the table id.
    """
    try:
        _completed_map(_table_maps(charsets)(table_map), definition)
    except ValueError as difference:
        return str(difference)
    return ""


#: Equal arguments give the same object here too, because later caches use its identity.
_completed_map = lru_cache(maxsize=4096)(completed)


def _map_in_force(slice_: Slice) -> Longs:
    """Return the index of each event's table map: the last one before the event with the same table id.

    Raise BinlogError if a rows event has none.
    """
    ids, numbers = slice_.table_ids(), np.arange(len(slice_))
    # Sorted by id and then in binlog order, this is the last map before each event.
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
