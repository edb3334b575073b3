"""Blocks of events into segments: transactions are put together, excluded tables fall away.

Runs of ordinary events (GTID, BEGIN, table map, rows, XID) are worked on as NumPy columns; everything else (DDL, file
changes, heartbeats, compressed and XA transactions) is rare and taken one event at a time between the runs
(``stream_reader.py``), which says what it was by a method of ``TransactionBuilder``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from incsnap.binlog import runs
from incsnap.binlog.protocol.control_events import CHECKSUM, gtid_text
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.reading_place import ReadingPlace
from incsnap.binlog.runs import Events, read_names
from incsnap.binlog.segments import Map, Names, Segment, TransactionArray, note_maps
from incsnap.binlog.table_ids import TableIds
from incsnap.errors import BinlogError, OffsetError
from incsnap.events import SchemaChange, StreamPosition

_NOTHING = np.zeros(0, np.int64)
_ZERO = np.zeros(1, np.int64)


@dataclass(slots=True)
class Open:
    """The transaction that has begun and not ended; ``row``: the transaction itself, an array of one."""

    row: TransactionArray
    #: Of an XA transaction before XA PREPARE: its rows are held, none is in a segment.
    xid: str = ""
    #: BEGIN or XA START was seen: a statement is then part of it, not a transaction of its own.
    begun: bool = False
    #: Rows events of included tables so far, those delivered before a restart or a reconnection among them.
    rows_done: int = 0
    #: Of these, how many are still to be sent again.
    skip: int = 0
    maps: dict[int, Map] = field(default_factory=dict)
    #: Rows events before each SAVEPOINT, by its name in lower case.
    savepoints: dict[str, int] = field(default_factory=dict)

    @property
    def rows_seen(self) -> int:
        """Rows events of included tables that were read of it, those that are sent already among them."""
        return self.rows_done - self.skip

    @property
    def ts_us(self) -> int:
        return int(self.row["ts_us"][0])


class TransactionBuilder:
    """The state between blocks: where the reading stands (``place``), the open transaction, what table ids mean."""

    def __init__(self, start: StreamPosition, names: Names, *, queries: bool = False) -> None:
        self.names = names
        self.place = ReadingPlace(start)
        #: Keep the texts of statements (ROWS_QUERY events) that change included tables?
        self._queries = queries
        self._checksum = 0
        self._open: Open | None = None
        self._table_ids = TableIds(names)
        #: The transaction that must come first in a dump, and how many of its rows events are known already.
        self._resume: tuple[str, int] | None = (start.open_gtid, start.events_done) if start.open_gtid else None

    @property
    def checksum(self) -> int:
        """Bytes behind each event that are its checksum."""
        return self._checksum

    @property
    def open(self) -> Open | None:
        return self._open

    def name_of(self, opened: Open) -> str:
        return gtid_text(self.names.sources[opened.row["source"][0]], int(opened.row["number"][0]))

    # -- what the events between the runs say ------------------------------------------------------------------------

    def stream_begins(self, *, checksum: bool, server_uuid: str) -> None:
        """A new connection: the server sends the open transaction again, from its beginning."""
        if server_uuid != self.place.server_uuid and self.place.server_uuid:  # divided into other events there
            self._open = self._resume = None
        self.place.server_begins(server_uuid)
        self.format_begins(checksum=checksum)
        if self._open is not None:
            self._resume = (self.name_of(self._open), self._open.rows_done)
            self._open = None

    def format_begins(self, *, checksum: bool) -> None:
        """A format description: of a new file, or of a server that has restarted and counts table ids from one."""
        self._checksum = CHECKSUM if checksum else 0
        self._table_ids.forget()

    def statement_comes(self, thread: int) -> Open | None:
        """A statement of that thread; the transaction that it belongs to, None where none is open."""
        if self._open is not None:
            self._open.row["thread"] = thread
        return self._open

    def xa_begins(self, xid: str) -> None:
        """XA START in the open transaction."""
        assert self._open is not None
        self._open.begun, self._open.xid = True, xid

    # -- runs of ordinary events -------------------------------------------------------------------------------------

    def add_run(self, events: Events, fixed: tuple[int, int] | None) -> Iterator[Segment]:
        """``fixed``: begin and end of the payload event around these events, which have no positions of their own."""
        for run, table, begin_at in self.runs(events, fixed):
            segment = self._segment(run, table, begin_at)
            if segment is not None:
                yield segment

    def runs(
        self, events: Events, fixed: tuple[int, int] | None
    ) -> Iterator[tuple[Events, npt.NDArray[np.int32], Longs]]:
        """Parts in which a table id means one table, with each event's table and place; the reading moves behind
        them."""
        while len(events):
            table, count = self._table_ids.tables(events, self.place.file)
            run = events.between(0, count)
            begin_at, end_at = run.places(self.place.pos, fixed)
            if fixed is None:
                self.place.move_to(int(end_at[-1]))
            yield run, table[:count], begin_at
            events = events.between(count, len(events))

    def kept(self, run: Events, table: npt.NDArray[np.int32]) -> Longs:
        """The events of included tables, and the texts of their statements where these are wanted."""
        return runs.with_texts(run, table) if self._queries else np.flatnonzero(table >= 0)

    def _segment(self, run: Events, table: npt.NDArray[np.int32], begin_at: Longs) -> Segment | None:
        begins = np.flatnonzero(run.classes == runs.NAME)
        finishes = np.flatnonzero(run.classes == runs.FINISH)
        transactions = read_names(run, begins, begin_at[begins], self.names)
        opened, starts = self._open, begins
        if opened is not None:
            starts = np.concatenate((_ZERO, begins))
            transactions = np.concatenate((opened.row, transactions))
        self._check(run, starts, finishes, begin_at)
        if not len(starts):
            return None
        fragments = len(starts)
        statements = np.flatnonzero(run.classes == runs.BEGIN)
        transactions["thread"][np.searchsorted(starts, statements, "right") - 1] = run.threads[statements]
        kept = self.kept(run, table)
        if opened is None and self._resume is not None:
            opened = self._resumed(transactions[:1])
        if opened is not None and opened.skip:
            kept = self._skip(opened, run, kept, begin_at, int(starts[1]) if fragments > 1 else len(run))
        is_rows = run.classes[kept] == runs.ROWS
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
            changes=(),
            server_uuid=self.place.server_uuid,
        )
        begun = bool(len(statements)) and bool(statements[-1] >= starts[-1])
        self._remember(segment, opened, begun)
        return segment

    def _check(self, run: Events, starts: Longs, finishes: Longs, begin_at: Longs) -> None:
        """Transactions neither overlap nor have parts outside; nothing is guessed about a stream that breaks this."""
        ended = len(finishes)
        first = int(starts[0]) if len(starts) else len(run)
        good = (
            ended <= len(starts) <= ended + 1
            and bool((finishes >= starts[:ended]).all())
            and bool((finishes[: len(starts) - 1] < starts[1:]).all())
            and not bool((run.classes[:first] > runs.SILENT).any())
        )
        if not good:
            raise BinlogError(
                f"{self.place.named(int(begin_at[0]))}: the events there do not make whole transactions",
                "The server must log with gtid_mode=ON.",
            )

    def _resumed(self, first: TransactionArray) -> Open:
        """The first transaction of a dump where one was open: it must be the same."""
        assert self._resume is not None
        gtid, done = self._resume
        self._resume = None
        opened = Open(first.copy(), rows_done=done, skip=done)
        if self.name_of(opened) != gtid:
            raise OffsetError(
                f"the server sends {self.name_of(opened)} where the rest of {gtid} was expected",
                "The binlog of this server has another order, or lacks that transaction: was it another server before?"
                " Go back to that one, or start with a new checkpoint.location and read the tables again.",
            )
        return opened

    def _skip(self, opened: Open, run: Events, kept: Longs, begin_at: Longs, end: int) -> Longs:
        """Drop from the first fragment what is known already, but remember its table maps."""
        own = kept[kept < end]
        is_rows = run.classes[own] == runs.ROWS
        rows = own[is_rows]
        known = min(opened.skip, len(rows))
        opened.skip -= known
        border = end if opened.skip else int(rows[known - 1]) + 1
        for event in own[~is_rows & (own < border)].tolist():
            table_map = Map(run.data[run.starts[event] : run.ends[event]], int(begin_at[event]))
            note_maps(opened.maps, [table_map])
        return kept[kept >= border]

    def _remember(self, segment: Segment, opened: Open | None, begun: bool) -> None:
        if not segment.open:
            self._open = None
            return
        last, events = segment.fragments - 1, len(segment.kinds)
        row = segment.transactions[last:].copy()  # a segment is never changed
        if last or opened is None:
            opened = Open(row)
        opened.row = row
        opened.maps = segment.maps_of_fragment(last, events)
        opened.rows_done = segment.rows_of_fragment_before(last, events)
        opened.begun = opened.begun or begun
        self._open = opened

    # -- single events -----------------------------------------------------------------------------------------------

    def fragment_without_events(self, *, ends: bool, change: SchemaChange | None = None) -> Segment:
        """The open transaction goes on, or ends, by an event that is not kept."""
        opened = self._open
        assert opened is not None
        if ends:
            self._open = None
        return Segment(
            file=self.place.file,
            payload=b"",
            offsets=_ZERO,
            positions=_NOTHING,
            kinds=np.zeros(0, np.uint8),
            tables=np.zeros(0, np.int32),
            rows_before=_ZERO,
            first=np.zeros(2, np.int64),
            transactions=opened.row.copy(),
            continues=True,
            rows_done=opened.rows_done,
            open=not ends,
            maps=tuple(opened.maps.values()),
            changes=() if change is None else ((0, change),),
            server_uuid=self.place.server_uuid,
        )
