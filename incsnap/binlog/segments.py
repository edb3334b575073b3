"""A segment: what one block of the stream left behind, in columns.

It holds the table maps and rows events of included tables, joined; for each of them where it begins, and for each
transaction (or the part of it that fell into this block) its name and place. A *fragment* is what one segment has of a
transaction; only a segment's first fragment may continue a transaction, only its last may leave one open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from incsnap.binlog.prepared import XaMark
from incsnap.binlog.protocol.control_events import ROWS, ROWS_QUERY, gtid_text
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.protocol.table_map import tells_names
from incsnap.errors import BinlogError
from incsnap.events import BinlogPosition, SchemaChange
from incsnap.gtid import GtidSet, Interval, Source
from incsnap.tables import TableId

IS_ROWS = np.zeros(256, bool)
IS_ROWS[list(ROWS)] = True

#: The table number of a kept statement text (ROWS_QUERY), which belongs to no table.
NO_TABLE = -3
#: The key of the statement text among the maps in force: it holds until the next one of its transaction.
_QUERY_IN_FORCE = -1

#: What a segment and a transaction cost in memory besides their bytes, so that a queue of nothing but excluded tables'
#: transactions is bounded too.
_SEGMENT_COST = 2_000
_FRAGMENT_COST = 64
_EVENT_COST = 21


#: A transaction. ``source``: a number that ``Names`` gave; ``thread``: -1 where the log does not say; ``ts_us``: its
#: original commit, in microseconds since 1970; ``pos``: where its GTID event begins, in 64 bits.
TRANSACTION = np.dtype(
    [("source", "<i4"), ("number", "<i8"), ("server", "<i8"), ("thread", "<i8"), ("ts_us", "<i8"), ("pos", "<i8")]
)
#: An array of ``TRANSACTION``.
TransactionArray = npt.NDArray[np.void]


class Map(NamedTuple):
    """A TABLE_MAP event (or a statement's text, where those are kept) as it stands in the payload, and its 64-bit
    position."""

    event: bytes
    pos: int

    @property
    def is_query(self) -> bool:
        return self.event[4] == ROWS_QUERY


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    #: Binlog file of all events in here: a transaction never spans files.
    file: str
    payload: bytes
    #: Kept event i is ``payload[offsets[i]:offsets[i + 1]]``; it begins at ``positions[i]`` of the file.
    offsets: Longs
    positions: Longs
    kinds: npt.NDArray[np.uint8]
    tables: npt.NDArray[np.int32]
    #: Rows events before kept event i; one more entry than events.
    rows_before: Longs

    #: Fragment j is the kept events ``first[j]`` to ``first[j + 1]``, and of the transaction ``transactions[j]``.
    first: Longs
    transactions: TransactionArray

    #: Does the first fragment continue a transaction, of which this many rows events came before?
    continues: bool
    rows_done: int
    #: Does the last fragment leave its transaction open?
    open: bool
    #: The table maps of the continued transaction that may still be referred to.
    maps: tuple[Map, ...]
    #: Statements that changed tables, each with its fragment.
    changes: tuple[tuple[int, SchemaChange], ...]
    #: What the segment, which is the end of one transaction then, says of a prepared one.
    marks: tuple[XaMark, ...] = ()
    #: File and position of what makes the events here visible, where ``file`` and ``positions`` are of an XA PREPARE.
    visible_at: tuple[str, int] | None = None
    #: The server whose binlog this is, "" where it is not known.
    server_uuid: str = ""

    @property
    def fragments(self) -> int:
        return len(self.transactions)

    @property
    def complete(self) -> int:
        """Fragments at whose end a transaction ends."""
        return self.fragments - self.open

    @property
    def cost(self) -> int:
        """Return how many bytes of memory the segment takes."""
        statements = sum(len(change.sql) for _, change in self.changes)
        events = len(self.payload) + _EVENT_COST * len(self.kinds)
        return events + statements + _SEGMENT_COST + _FRAGMENT_COST * self.fragments

    def rows_of_fragment_before(self, fragment: int, event: int) -> int:
        """Rows events of the fragment's transaction before that event, those of earlier segments included."""
        before = self.rows_done if fragment == 0 and self.continues else 0
        return before + int(self.rows_before[event] - self.rows_before[self.first[fragment]])

    def maps_of_fragment(self, fragment: int, event: int) -> dict[int, Map]:
        """The newest map of each table in the fragment's transaction before that event, oldest table first."""
        maps: dict[int, Map] = {}
        if fragment == 0 and self.continues:
            note_maps(maps, self.maps)
        first = int(self.first[fragment])
        for number in (first + np.flatnonzero(~IS_ROWS[self.kinds[first:event]])).tolist():
            note_maps(maps, [self.map_at(number)])
        return maps

    def at(self, pos: int) -> BinlogPosition:
        file, pos = self.visible_at or (self.file, pos)
        return BinlogPosition(file, pos, self.server_uuid)

    def without_open(self) -> Segment:
        """Without the last fragment: only transactions that end."""
        last = self.fragments - 1
        events = int(self.first[last])
        return replace(
            self,
            payload=self.payload[: self.offsets[events]],
            offsets=self.offsets[: events + 1],
            positions=self.positions[:events],
            kinds=self.kinds[:events],
            tables=self.tables[:events],
            rows_before=self.rows_before[: events + 1],
            first=self.first[: last + 1],
            transactions=self.transactions[:last],
            open=False,
            changes=tuple((fragment, change) for fragment, change in self.changes if fragment < last),
        )

    def map_at(self, event: int) -> Map:
        return Map(self.payload[self.offsets[event] : self.offsets[event + 1]], int(self.positions[event]))


class Stretch(NamedTuple):
    """What lies of a segment between two places: its fragments from ``fragment`` on, of their kept events those from
    ``event`` up to ``end``. ``number``: the segment's among those that are buffered."""

    number: int
    segment: Segment
    fragment: int
    event: int
    end: int


def note_maps(maps: dict[int, Map], newer: Iterable[Map]) -> None:
    """Keep the newest map of each table id (the six bytes after the 19-byte header), and the newest statement text."""
    for each in newer:
        maps[_QUERY_IN_FORCE if each.is_query else int.from_bytes(each.event[19:25], "little")] = each


class Names:
    """The numbers under which segments know GTID sources and tables. Only ever added to.

    A table whose maps tell no names (``binlog_row_metadata=MINIMAL``) has a number of its own for these, so that its
    rows are told from others by the column of numbers that is there anyhow.
    """

    def __init__(self, included: Callable[[TableId], bool]) -> None:
        self.included = included
        self.sources: list[Source] = []
        self._source_numbers: dict[Source, int] = {}
        self.tables: list[TableId] = []
        #: Numbers of tables with maps that tell no names; empty with ``binlog_row_metadata=FULL``.
        self.unnamed: set[int] = set()
        self._table_numbers: dict[tuple[TableId, bool], int] = {}
        #: Body of a table map behind its table id -> number of the table; -1: not included.
        self._decided: dict[bytes, int] = {}

    def source(self, source: Source) -> int:
        number = self._source_numbers.get(source)
        if number is None:
            number = self._source_numbers[source] = len(self.sources)
            self.sources.append(source)
        return number

    def table(self, description: bytes) -> int:
        """The number of the table that a map describes, -1 where it is not included. ``description``: the map's bytes
        behind the table id; the name in it is read once per version of the table."""
        number = self._decided.get(description)
        if number is None:
            if len(self._decided) > 100_000:  # shapes of tables made and dropped for months
                self._decided.clear()
            number = self._decided[description] = self._decide(_table_named(description), description)
        return number

    def numbers_of(self, table: TableId) -> frozenset[int]:
        """None for a table not met yet."""
        known = (self._table_numbers.get((table, named)) for named in (True, False))
        return frozenset(number for number in known if number is not None)

    def _decide(self, table: TableId, description: bytes) -> int:
        if not self.included(table):
            return -1
        key = table, tells_names(description)
        number = self._table_numbers.get(key)
        if number is None:
            number = self._table_numbers[key] = len(self.tables)
            self.tables.append(table)
            if not key[1]:
                # Another set, not a longer one: the planner's thread looks at it meanwhile.
                self.unnamed = self.unnamed | {number}
        return number

    def gtid(self, segment: Segment, fragment: int) -> str:
        named = segment.transactions[fragment]
        return gtid_text(self.sources[named["source"]], int(named["number"]))

    def gtids(self, parts: Iterable[tuple[Segment, int, int]]) -> GtidSet:
        """The transactions of fragments ``begin`` to ``end`` of each segment as a set, without an object for each."""
        numbers: dict[int, list[Longs]] = {}
        for segment, begin, end in parts:
            named = segment.transactions[begin:end]
            for source in set(named["source"].tolist()):
                numbers.setdefault(source, []).append(named["number"][named["source"] == source])
        intervals: dict[Source, list[Interval]] = {}
        for source, some in numbers.items():
            own = np.sort(np.concatenate(some))
            last = np.flatnonzero(np.append(np.diff(own) > 1, True))
            first = np.append(0, last[:-1] + 1)
            intervals[self.sources[source]] = list(zip(own[first].tolist(), own[last].tolist(), strict=True))
        return GtidSet(intervals)


def _table_named(description: bytes) -> TableId:
    """Flags (2 bytes), then database and table, each as length, text, 0."""
    length = description[2]
    database = description[3 : 3 + length]
    at = 4 + length
    table = description[at + 1 : at + 1 + description[at]]
    if not database or not table:
        raise BinlogError("a table map event without a name")
    return TableId(database.decode("utf-8", "replace"), table.decode("utf-8", "replace"))
