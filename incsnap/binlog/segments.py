"""The segment: the kept events of one stretch of the stream, as columns, with the transactions that they belong to.

A *kept event* is a table map or rows event of an included table, or the text of a statement. A *fragment* is the share
of one segment in a transaction. Only the first fragment of a segment may continue a transaction of the segment before.
Only the last fragment may leave its transaction open.

Example: transaction 41 inserts a row into `shop.orders`, transaction 42 a row into the excluded table `shop.x_log`, and
transaction 43 rows into both tables. A block ends inside transaction 43, so there are two segments:

                  segment 0                                segment 1
    kinds         [19, 30, 19, 30] (19: map, 30: rows)     [30]
    positions     [285, 335, 782, 881]                     [961]
    offsets       [0, 46, 82, 128, 164]                    [0, 36]
    rows_before   [0, 0, 1, 1, 2]                          [0, 1]
    first         [0, 2, 2, 4]                             [0, 1]
    transactions  41 at 157, 42 at 406, 43 at 654          43 at 654
    continues     False                                    True, with rows_done=1, maps=(the map at 782,)
    open          True                                     False

Transaction 42 has a fragment without events (`first[1] == first[2]`): its GTID counts as delivered too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.control_events import ROWS, ROWS_QUERY, gtid_text
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.protocol.table_map import tells_names
from incsnap.binlog.xa_parts import XaMark
from incsnap.errors import BinlogError
from incsnap.events import BinlogPosition, SchemaChange
from incsnap.gtid import GtidSet, Interval, Source
from incsnap.tables import TableId

#: Whether an event type is that of a rows event, by its number.
IS_ROWS = np.zeros(256, bool)
IS_ROWS[list(ROWS)] = True

#: The table number of a statement text (ROWS_QUERY), which belongs to no table.
NO_TABLE = -3
#: The key of the statement text among the maps in force. A text is valid until the next text of its transaction.
_QUERY_IN_FORCE = -1

#: Memory in bytes of a segment, a fragment and an event, besides the payload. Without these numbers a queue of
#: transactions of excluded tables would have no bound.
_SEGMENT_COST = 2_000
_FRAGMENT_COST = 64
_EVENT_COST = 21


#: A transaction. `source`: index in `IdTable.sources`. `number`: the GTID's number. `server`: id of the server that
#: first ran the transaction. `thread`: id of the connection, -1 if the log does not have it. `ts_us`: original commit
#: time, in µs since 1970. `pos`: position of its GTID event, in 64 bits.
TRANSACTION = np.dtype(
    [("source", "<i4"), ("number", "<i8"), ("server", "<i8"), ("thread", "<i8"), ("ts_us", "<i8"), ("pos", "<i8")]
)
#: An array of `TRANSACTION`.
TransactionArray = npt.NDArray[np.void]


class Map(NamedTuple):
    """A TABLE_MAP event, or the text of a statement (ROWS_QUERY)."""

    event: bytes  #: header and body, as in the payload
    pos: int  #: position in the file, in 64 bits

    @property
    def is_query(self) -> bool:
        """Whether this is the text of a statement."""
        return self.event[4] == ROWS_QUERY


_ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Segment:
    """The kept events of one stretch of the stream, as columns, and the fragments of transactions that they belong to.

    See the module's docstring for the terms and an example. By default a segment has one fragment and no event.
    """

    #: Binlog file of all events of the segment: a transaction never spans two files.
    file: str
    payload: bytes = b""  #: the kept events, joined: header and body of each, without checksum
    #: Kept event i is `payload[offsets[i]:offsets[i + 1]]`.
    offsets: Longs = field(default_factory=lambda: _ZERO)
    #: position of each kept event in `file`
    positions: Longs = field(default_factory=lambda: _ZERO[1:])
    #: event type of each kept event
    kinds: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    #: number of each kept event's table in `IdTable.tables`; NO_TABLE for a text
    tables: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    #: Rows events of the segment before kept event i; one more element than events.
    rows_before: Longs = field(default_factory=lambda: _ZERO)

    #: Fragment j has the kept events `first[j]` to `first[j + 1]`, and belongs to `transactions[j]`.
    first: Longs = field(default_factory=lambda: np.zeros(2, np.int64))
    transactions: TransactionArray  #: transaction of each fragment

    #: Whether the first fragment continues a transaction of the segment before.
    continues: bool
    rows_done: int  #: rows events of that transaction in earlier segments
    #: Whether the last fragment leaves its transaction open.
    open: bool
    #: Table maps of the continued transaction that its further rows events may refer to.
    maps: tuple[Map, ...]
    #: (fragment, statement) for each statement that changed tables.
    changes: tuple[tuple[int, SchemaChange], ...] = ()
    #: XA PREPARE, XA COMMIT or XA ROLLBACK at the end of the segment, which is then the end of one transaction.
    marks: tuple[XaMark, ...] = ()
    #: File and position of the XA COMMIT that makes the events visible. Then `file` and `positions` are those of XA
    #: PREPARE.
    visible_at: tuple[str, int] | None = None
    #: Name of the binlog (see `events.begun_anew`); "": unknown.
    server_uuid: str = ""

    @property
    def fragments(self) -> int:
        """Return the number of fragments."""
        return len(self.transactions)

    @property
    def complete(self) -> int:
        """Return the number of fragments that end their transaction."""
        return self.fragments - self.open

    @property
    def cost(self) -> int:
        """Return how many bytes of memory the segment takes."""
        statements = sum(len(change.sql) for _, change in self.changes)
        events = len(self.payload) + _EVENT_COST * len(self.kinds)
        return events + statements + _SEGMENT_COST + _FRAGMENT_COST * self.fragments

    def rows_of_fragment_before(self, fragment: int, event: int) -> int:
        """Return how many rows events the fragment's transaction has before kept event `event`, earlier segments
        included."""
        before = self.rows_done if fragment == 0 and self.continues else 0
        return before + int(self.rows_before[event] - self.rows_before[self.first[fragment]])

    def maps_of_fragment(self, fragment: int, event: int) -> dict[int, Map]:
        """Return the newest map of each table id in the fragment's transaction before kept event `event`.

        The ids are in the order in which they first appeared.
        """
        maps: dict[int, Map] = {}
        if fragment == 0 and self.continues:
            note_maps(maps, self.maps)
        first = int(self.first[fragment])
        for number in (first + np.flatnonzero(~IS_ROWS[self.kinds[first:event]])).tolist():
            note_maps(maps, [self.map_at(number)])
        return maps

    def at(self, pos: int) -> BinlogPosition:
        """Return the binlog position for the byte `pos` of the segment's file.

        The events of an XA transaction all have the position of the XA COMMIT.
        """
        file, pos = self.visible_at or (self.file, pos)
        return BinlogPosition(file, pos, self.server_uuid)

    def without_open(self) -> Segment:
        """Return a copy without the last fragment, so that all transactions end."""
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
        """Return kept event `event` as a Map."""
        return Map(self.payload[self.offsets[event] : self.offsets[event + 1]], int(self.positions[event]))


class Stretch(NamedTuple):
    """The part of a segment between two places."""

    number: int  #: number of the segment in the stream
    segment: Segment
    fragment: int  #: first fragment of the stretch; all later ones belong to it
    event: int  #: first kept event of the stretch
    end: int  #: end of its kept events, exclusive


def note_maps(maps: dict[int, Map], newer: Iterable[Map]) -> None:
    """Put the newest map of each table id, and the newest statement text, into `maps`.

    The table id is the six bytes after the 19-byte header.
    """
    for each in newer:
        maps[_QUERY_IN_FORCE if each.is_query else int.from_bytes(each.event[19:25], "little")] = each


class IdTable:
    """The numbers that segments use for GTID sources and tables. Numbers are never changed or removed.

    A table has a second number for table maps without column names (`binlog_row_metadata=MINIMAL`). So a segment's
    column of table numbers distinguishes these rows at no cost.
    """

    def __init__(self, included: Callable[[TableId], bool]) -> None:
        self.included = included
        self.sources: list[Source] = []
        self._source_numbers: dict[Source, int] = {}
        self.tables: list[TableId] = []
        #: Numbers that stand for maps without column names; empty with `binlog_row_metadata=FULL`.
        self.unnamed: set[int] = set()
        self._table_numbers: dict[tuple[TableId, bool], int] = {}
        #: Names in lower case of tables that are left out, although they are included.
        self._left_out: frozenset[str] = frozenset()
        #: Body of a table map after its table id -> number of the table; -1: excluded.
        self._decided: dict[bytes, int] = {}

    def source(self, source: Source) -> int:
        """Return the number of a GTID source. A new source gets the next number."""
        number = self._source_numbers.get(source)
        if number is None:
            number = self._source_numbers[source] = len(self.sources)
            self.sources.append(source)
        return number

    def table(self, description: bytes) -> int:
        """Return the number of the table that a map describes, or -1 if the table is excluded.

        `description` is the map's body after the table id. The table's name is read once for each version of the
        table.
        """
        number = self._decided.get(description)
        if number is None:
            if len(self._decided) > 100_000:  # tables that were created and dropped for months
                self._decided.clear()
            number = self._decided[description] = self._decide(_table_named(description), description)
        return number

    def leave_out(self, names: frozenset[str]) -> None:
        """Leave out the tables with these names, in lower case, from the next table map on, and no others."""
        if names != self._left_out:
            self._left_out = names
            self._decided.clear()

    def numbers_of(self, table: TableId) -> frozenset[int]:
        """Return the numbers of `table`. The set is empty if the stream has not brought the table yet."""
        known = (self._table_numbers.get((table, named)) for named in (True, False))
        return frozenset(number for number in known if number is not None)

    def _decide(self, table: TableId, description: bytes) -> int:
        if not self.included(table) or table.folded in self._left_out:
            return -1
        key = table, tells_names(description)
        number = self._table_numbers.get(key)
        if number is None:
            number = self._table_numbers[key] = len(self.tables)
            self.tables.append(table)
            if not key[1]:
                # A new set, because the planner's thread may iterate over the old one now.
                self.unnamed = self.unnamed | {number}
        return number

    def gtid(self, segment: Segment, fragment: int) -> str:
        """Return the GTID of a fragment's transaction as MySQL writes it."""
        named = segment.transactions[fragment]
        return gtid_text(self.sources[named["source"]], int(named["number"]))

    def gtids(self, parts: Iterable[tuple[Segment, int, int]]) -> GtidSet:
        """Return the transactions of all `parts` as a set.

        A part is (segment, first fragment, end of its fragments).
        """
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
    """Return the table's name, from the body of a map after the table id. Raise BinlogError if the name is empty.

    The bytes are: flags (2 bytes), then database and table, each as length, text and 0.
    """
    length = description[2]
    database = description[3 : 3 + length]
    at = 4 + length
    table = description[at + 1 : at + 1 + description[at]]
    if not database or not table:
        raise BinlogError("a table map event without a name")
    return TableId(database.decode("utf-8", "replace"), table.decode("utf-8", "replace"))
