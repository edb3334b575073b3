"""The builder of segments: it groups the events of a run by transaction and leaves out excluded tables.

A run has ordinary events only (GTID, BEGIN, table map, rows, XID) and is handled as NumPy columns. Other events are
rare. `incsnap.binlog.stream_reader` reads them one by one between the runs, and reports them by the methods of
`TransactionBuilder`.

Example: a run of 15 events. Table `shop.orders` has the number 0, and table `shop.x_log` is excluded:

    event     GTID BEGIN MAP ROWS XID | GTID BEGIN MAP ROWS XID | GTID BEGIN MAP MAP ROWS
    position   157   234 285  335 375 |  406   483 534  583 623 |  654   731 782 832  881
    class        6     4   2    3   5 |    6     4   2    3   5 |    6     4   2   2    3
    table       -1    -1   0    0  -1 |   -1    -1  -1   -1  -1 |   -1    -1   0  -1    0

    starts   [0, 5, 10]       index of each GTID event: three fragments
    finishes [4, 9]           index of each XID event: the third transaction stays open
    kept     [2, 3, 12, 14]   index of each event that goes into the segment

The open transaction is then remembered as `OpenTransaction(rows_done=1, maps={90: the map at 782})`. 90 is its table
id. The next run begins inside this transaction. The docstring of `incsnap.binlog.segments` shows the segments of both
runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from incsnap.binlog import event_classes
from incsnap.binlog.event_classes import Events, read_gtids
from incsnap.binlog.protocol.control_events import CHECKSUM, gtid_text
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.reading_place import ReadingPlace
from incsnap.binlog.segments import IdTable, Map, Segment, TransactionArray, note_maps
from incsnap.errors import BinlogError, OffsetError
from incsnap.events import SchemaChange, StreamPosition

_ZERO = np.zeros(1, np.int64)


@dataclass(slots=True)
class OpenTransaction:
    """A transaction that has begun and not ended."""

    row: TransactionArray  #: the transaction itself, an array of one element
    #: Name of an XA transaction that is not prepared yet; its events are held, and none is in a segment. "": no XA
    #: transaction.
    xid: str = ""
    #: BEGIN or XA START was read: a statement is then part of the transaction, not a transaction of its own.
    begun: bool = False
    #: Rows events of included tables so far, including those that were read before a restart or a reconnection.
    rows_done: int = 0
    #: How many of `rows_done` the server has still to send again.
    skip: int = 0
    maps: dict[int, Map] = field(default_factory=dict)  #: newest table map of each table id
    #: Name of each SAVEPOINT, in lower case -> rows events before it.
    savepoints: dict[str, int] = field(default_factory=dict)

    @property
    def rows_seen(self) -> int:
        """Return how many rows events of included tables this connection has brought of the transaction."""
        return self.rows_done - self.skip

    @property
    def ts_us(self) -> int:
        """Return the original commit time, in µs since 1970."""
        return int(self.row["ts_us"][0])


class TransactionBuilder:
    """The state between two blocks: the reading place, the open transaction and the tables of the table ids."""

    def __init__(self, start: StreamPosition, ids: IdTable, *, queries: bool = False) -> None:
        self.ids = ids
        self.place = ReadingPlace(start)
        #: Whether to keep the texts (ROWS_QUERY events) of statements that change included tables.
        self._queries = queries
        #: Bytes of the checksum after each event: 4 or 0.
        self.checksum = 0
        self.open: OpenTransaction | None = None
        #: Table id -> number of the table, from the table maps read so far.
        self._numbers = event_classes.NO_TABLE_IDS.copy()
        #: GTID of the transaction that must come first in a dump, and how many of its rows events were read already.
        self._resume: tuple[str, int] | None = (start.open_gtid, start.events_done) if start.open_gtid else None

    def name_of(self, opened: OpenTransaction) -> str:
        """Return the GTID of the transaction as MySQL writes it."""
        return gtid_text(self.ids.sources[opened.row["source"][0]], int(opened.row["number"][0]))

    # -- what the events between the runs say ------------------------------------------------------------------------

    def stream_begins(self, *, checksum: bool, server_uuid: str) -> None:
        """Begin to read a new connection.

        The same server sends the open transaction again, from its beginning. For another server the open transaction is
        forgotten.
        """
        # another server divides it into other events
        if server_uuid != self.place.server_uuid and self.place.server_uuid:
            self.open = self._resume = None
        self.place.server_begins(server_uuid)
        self.format_begins(checksum=checksum)
        if self.open is not None:
            self._resume = (self.name_of(self.open), self.open.rows_done)
            self.open = None

    def format_begins(self, *, checksum: bool) -> None:
        """Begin a file, or the log of a server that was restarted.

        A restarted server counts table ids from one again.
        """
        self.checksum = CHECKSUM if checksum else 0
        self._numbers = event_classes.NO_TABLE_IDS.copy()

    # -- runs of ordinary events -------------------------------------------------------------------------------------

    def add_run(self, events: Events) -> Iterator[Segment]:
        """Yield the segments of a run. The run may be empty."""
        for run, table, begin_at in self.runs(events):
            segment = self._segment(run, table, begin_at)
            if segment is not None:
                yield segment

    def runs(self, events: Events) -> Iterator[tuple[Events, npt.NDArray[np.int32], Longs]]:
        """Divide `events` so that each table id means one table within a part. Move the reading place after each part.

        Yield for each part: its events, the number of each event's table, and the position of each event.
        """
        while len(events):
            table, count = event_classes.table_numbers(events, self._numbers, self.ids, self.place.file)
            run = events.between(0, count)
            begin_at, end = run.positions(self.place.pos)
            self.place.move_to(end)
            yield run, table[:count], begin_at
            events = events.between(count, len(events))

    def kept(self, run: Events, table: npt.NDArray[np.int32]) -> Longs:
        """Return the indexes of the events to keep: those of included tables and, if asked for, the texts of their
        statements."""
        return event_classes.with_texts(run, table) if self._queries else np.flatnonzero(table >= 0)

    def _segment(self, run: Events, table: npt.NDArray[np.int32], begin_at: Longs) -> Segment | None:
        begins = np.flatnonzero(run.classes == event_classes.GTID)
        finishes = np.flatnonzero(run.classes == event_classes.FINISH)
        transactions = read_gtids(run, begins, begin_at[begins], self.ids)
        opened, starts = self.open, begins
        if opened is not None:
            starts = np.concatenate((_ZERO, begins))
            transactions = np.concatenate((opened.row, transactions))
        self._check(run, starts, finishes, begin_at)
        if not len(starts):
            return None
        fragments = len(starts)
        statements = np.flatnonzero(run.classes == event_classes.BEGIN)
        transactions["thread"][np.searchsorted(starts, statements, "right") - 1] = run.threads[statements]
        kept = self.kept(run, table)
        if opened is None and self._resume is not None:
            opened = self._resumed(transactions[:1])
        if opened is not None and opened.skip:
            kept = self._skip(opened, run, kept, begin_at, int(starts[1]) if fragments > 1 else len(run))
        is_rows = run.classes[kept] == event_classes.ROWS
        payload, offsets = run.joined(kept)
        segment = Segment(
            file=self.place.file,
            payload=payload,
            offsets=offsets,
            positions=begin_at[kept],
            kinds=run.head["kind"][kept],
            tables=table[kept],
            rows_before=np.concatenate((_ZERO, np.cumsum(is_rows))),
            first=np.searchsorted(kept, np.append(starts, len(run))),
            transactions=transactions,
            continues=opened is not None,
            rows_done=opened.rows_done if opened is not None else 0,
            open=len(finishes) < fragments,
            maps=tuple(opened.maps.values()) if opened is not None else (),
            server_uuid=self.place.server_uuid,
        )
        begun = bool(len(statements)) and bool(statements[-1] >= starts[-1])
        self._remember(segment, opened, begun)
        return segment

    def _check(self, run: Events, starts: Longs, finishes: Longs, begin_at: Longs) -> None:
        """Raise BinlogError if transactions overlap, or if events stand outside of a transaction."""
        ended = len(finishes)
        first = int(starts[0]) if len(starts) else len(run)
        good = (
            ended <= len(starts) <= ended + 1
            and bool((finishes >= starts[:ended]).all())
            and bool((finishes[: len(starts) - 1] < starts[1:]).all())
            and not bool((run.classes[:first] > event_classes.SILENT).any())
        )
        if not good:
            raise BinlogError(
                f"{self.place.named(int(begin_at[0]))}: the events do not form whole transactions",
                "The server must log with gtid_mode=ON.",
            )

    def _resumed(self, first: TransactionArray) -> OpenTransaction:
        """Return the open transaction again, for the first transaction of a dump.

        Raise OffsetError if it is another one.
        """
        assert self._resume is not None
        gtid, done = self._resume
        self._resume = None
        opened = OpenTransaction(first.copy(), rows_done=done, skip=done)
        if self.name_of(opened) != gtid:
            raise OffsetError(
                f"the server sends {self.name_of(opened)} where the rest of {gtid} was expected",
                "The binlog of this server has another order or lacks the transaction. If the job read another server"
                " before, go back to it; else start with a new checkpoint.location and snapshot the tables.",
            )
        return opened

    def _skip(self, opened: OpenTransaction, run: Events, kept: Longs, begin_at: Longs, end: int) -> Longs:
        """Return `kept` without the events of the first fragment that were read before.

        Remember the table maps among them.
        """
        own = kept[kept < end]
        is_rows = run.classes[own] == event_classes.ROWS
        rows = own[is_rows]
        known = min(opened.skip, len(rows))
        opened.skip -= known
        border = end if opened.skip else int(rows[known - 1]) + 1
        for event in own[~is_rows & (own < border)].tolist():
            table_map = Map(run.data[run.starts[event] : run.ends[event]], int(begin_at[event]))
            note_maps(opened.maps, [table_map])
        return kept[kept >= border]

    def _remember(self, segment: Segment, opened: OpenTransaction | None, begun: bool) -> None:
        if not segment.open:
            self.open = None
            return
        last, events = segment.fragments - 1, len(segment.kinds)
        row = segment.transactions[last:].copy()  # a copy, because a segment is never changed
        if last or opened is None:
            opened = OpenTransaction(row)
        opened.row = row
        opened.maps = segment.maps_of_fragment(last, events)
        opened.rows_done = segment.rows_of_fragment_before(last, events)
        opened.begun = opened.begun or begun
        self.open = opened

    # -- single events -----------------------------------------------------------------------------------------------

    def fragment_without_events(self, *, ends: bool, change: SchemaChange | None = None) -> Segment:
        """Return a segment for an event that is not kept, such as a statement or the end of an XA transaction.

        The segment has one fragment without events. The open transaction continues, or ends if `ends`. `change` is the
        change of tables that a statement makes.
        """
        opened = self.open
        assert opened is not None
        if ends:
            self.open = None
        return Segment(
            file=self.place.file,
            transactions=opened.row.copy(),
            continues=True,
            rows_done=opened.rows_done,
            open=not ends,
            maps=tuple(opened.maps.values()),
            changes=() if change is None else ((0, change),),
            server_uuid=self.place.server_uuid,
        )
