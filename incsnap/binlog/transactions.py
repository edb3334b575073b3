"""Blocks of events into segments: transactions are put together, excluded tables fall away.

Runs of ordinary events (GTID, BEGIN, table map, rows, XID) are worked on as NumPy columns; everything else (DDL, file
changes, heartbeats, compressed and XA transactions) is rare and taken one event at a time between the runs
(``stream_reader.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from incsnap.binlog import runs
from incsnap.binlog.control_events import CHECKSUM, gtid_text
from incsnap.binlog.frames import Longs
from incsnap.binlog.runs import Events, NameColumns, read_names
from incsnap.binlog.segments import Map, Names, Segment, note_maps
from incsnap.errors import BinlogError, OffsetError
from incsnap.events import BinlogPosition, SchemaChange, StreamPosition, base_name, begun_anew

_NOTHING = np.zeros(0, np.int64)
_ZERO = np.zeros(1, np.int64)
#: A rows event of this table id holds no rows; old servers end a statement with it.
_DUMMY_TABLE_ID = 0xFFFFFF


@dataclass(slots=True)
class Open:
    """The transaction that has begun and not ended."""

    source: int
    number: int
    server: int
    ts_us: int
    pos: int
    thread: int = -1
    #: Of an XA transaction before XA PREPARE: its rows are held, none is in a segment.
    xid: str = ""
    #: BEGIN or XA START was seen: a statement is then part of it, not a transaction of its own.
    begun: bool = False
    #: Rows events of included tables so far, those delivered before a restart or a reconnection among them.
    rows_done: int = 0
    #: Of these, how many are still to be sent again.
    skip: int = 0
    maps: dict[int, Map] = field(default_factory=dict)


class Transactions:
    """The state between blocks. ``add`` gives segments; ``position`` is how far one server's log was read."""

    def __init__(self, start: StreamPosition, names: Names, *, queries: bool = False) -> None:
        self.names = names
        #: Keep the texts of statements (ROWS_QUERY events) that change included tables?
        self._queries = queries
        self.position = start.at
        #: Where the reading is: jumps back to a file's beginning when a dump begins.
        self.file = start.file
        self.pos = start.pos
        self.server_uuid = start.server_uuid
        self.checksum = 0
        self.open: Open | None = None
        self._table_of_id: dict[int, int] = {_DUMMY_TABLE_ID: -1}
        #: The transaction that must come first in a dump, and how many of its rows events are known already.
        self._resume: tuple[str, int] | None = (start.open_gtid, start.events_done) if start.open_gtid else None

    def stream_begins(self, *, checksum: bool, server_uuid: str) -> None:
        """A new connection: the server sends the open transaction again, from its beginning.

        Of another binlog nothing is known until its first rotate event names the file it begins with. Transactions in
        the files before that one are delivered: the server chose it by the delivered set.
        """
        if server_uuid != self.server_uuid:
            if self.server_uuid:  # divided into other events there
                self.open = self._resume = None
            self.server_uuid = server_uuid
            self.file, self.pos = "", 0
            self.position = BinlogPosition("", 0, server_uuid)
        self.checksum = CHECKSUM if checksum else 0
        self.forget_table_ids()
        if self.open is not None:
            self._resume = (self.name_of(self.open), self.open.rows_done)
            self.open = None

    def file_begins(self, file: str, pos: int) -> None:
        """What follows is of that file. Of another base name the server began its binlog anew, with the old files
        still in its index: numbers of the two have no order."""
        self.advance()
        if self.position.file and base_name(file) != base_name(self.position.file):
            self.server_uuid = begun_anew(self.server_uuid)
            self.position = BinlogPosition("", 0, self.server_uuid)
        self.file, self.pos = file, pos

    def forget_table_ids(self) -> None:
        """A server that restarts counts from one again."""
        self._table_of_id = {_DUMMY_TABLE_ID: -1}

    def advance(self) -> None:
        here = BinlogPosition(self.file, self.pos, self.server_uuid)
        if self.position < here:
            self.position = here

    def name_of(self, opened: Open) -> str:
        return gtid_text(self.names.sources[opened.source], opened.number)

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
        """Parts in which a table id means one table, with each event's table and place; ``pos`` moves behind them."""
        while len(events):
            table, count = self._tables(events)
            run = events.between(0, count)
            begin_at, end_at = run.places(self.pos, fixed)
            if fixed is None:
                self.pos = int(end_at[-1])
            yield run, table[:count], begin_at
            events = events.between(count, len(events))

    def kept(self, run: Events, table: npt.NDArray[np.int32]) -> Longs:
        """The events of included tables, and the texts of their statements where these are wanted."""
        return runs.with_texts(run, table) if self._queries else np.flatnonzero(table >= 0)

    def _tables(self, events: Events) -> tuple[npt.NDArray[np.int32], int]:
        """The number of each map's and rows event's table, for as many events as no table id changes its meaning."""
        table = np.full(len(events), -1, np.int32)
        known = self._table_of_id
        maps = np.flatnonzero(events.classes == runs.MAP)
        count = len(events)
        if len(maps):
            data, decide = events.data, self.names.table
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
            raise BinlogError(f"{self.file}: rows of table id {unknown} without a table map") from None
        return table, count

    def _segment(self, run: Events, table: npt.NDArray[np.int32], begin_at: Longs) -> Segment | None:
        begins = np.flatnonzero(run.classes == runs.NAME)
        finishes = np.flatnonzero(run.classes == runs.FINISH)
        columns = read_names(run, begins, self.names)
        pos = begin_at[begins]
        opened = self.open
        starts = begins
        if opened is not None:
            starts = np.concatenate((_ZERO, begins))
            columns = columns.behind(opened.source, opened.number, opened.server, opened.ts_us)
            pos = np.concatenate(([opened.pos], pos))
        self._check(run, starts, finishes, begin_at)
        if not len(starts):
            return None
        pieces = len(starts)
        thread = np.full(pieces, -1)
        if opened is not None:
            thread[0] = opened.thread
        statements = np.flatnonzero(run.classes == runs.BEGIN)
        thread[np.searchsorted(starts, statements, "right") - 1] = run.threads[statements]
        kept = self.kept(run, table)
        if opened is None and self._resume is not None:
            opened = self._resumed(columns, int(pos[0]))
        if opened is not None and opened.skip:
            kept = self._skip(opened, run, kept, begin_at, int(starts[1]) if pieces > 1 else len(run))
        is_rows = run.classes[kept] == runs.ROWS
        payload, offsets = run.joined(kept)
        segment = Segment(
            file=self.file,
            payload=payload,
            offsets=offsets,
            positions=begin_at[kept],
            kinds=run.head["kind"][kept],
            tables=table[kept],
            rows_before=np.concatenate((_ZERO, np.cumsum(is_rows))),
            first=np.searchsorted(kept, np.append(starts, len(run))),
            source=columns.source,
            number=columns.number,
            server=columns.server,
            thread=thread,
            ts_us=columns.ts_us,
            pos=pos,
            continues=opened is not None,
            rows_done=opened.rows_done if opened is not None else 0,
            open=len(finishes) < pieces,
            maps=tuple(opened.maps.values()) if opened is not None else (),
            changes=(),
            server_uuid=self.server_uuid,
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
                f"{self.file}:{int(begin_at[0])}: the events there do not make whole transactions",
                "The server must log with gtid_mode=ON.",
            )

    def _resumed(self, columns: NameColumns, pos: int) -> Open:
        """The first transaction of a dump where one was open: it must be the same."""
        assert self._resume is not None
        gtid, done = self._resume
        self._resume = None
        opened = Open(
            int(columns.source[0]), int(columns.number[0]), int(columns.server[0]), int(columns.ts_us[0]), pos,
            rows_done=done, skip=done,
        )  # fmt: skip
        if self.name_of(opened) != gtid:
            raise OffsetError(
                f"the server sends {self.name_of(opened)} where the rest of {gtid} was expected",
                "The binlog of this server has another order, or lacks that transaction: was it another server before?"
                " Go back to that one, or start with a new checkpoint.location and read the tables again.",
            )
        return opened

    def _skip(self, opened: Open, run: Events, kept: Longs, begin_at: Longs, end: int) -> Longs:
        """Drop from the first piece what is known already, but remember its table maps."""
        own = kept[kept < end]
        is_rows = run.classes[own] == runs.ROWS
        rows = own[is_rows]
        known = min(opened.skip, len(rows))
        opened.skip -= known
        border = end if opened.skip else int(rows[known - 1]) + 1
        for event in own[~is_rows & (own < border)].tolist():
            found = Map(run.data[run.starts[event] : run.ends[event]], int(begin_at[event]))
            note_maps(opened.maps, [found])
        return kept[kept >= border]

    def _remember(self, segment: Segment, opened: Open | None, begun: bool) -> None:
        if not segment.open:
            self.open = None
            return
        last = segment.pieces - 1
        if last or opened is None:
            opened = Open(
                int(segment.source[last]), int(segment.number[last]), int(segment.server[last]),
                int(segment.ts_us[last]), int(segment.pos[last]),
            )  # fmt: skip
        events = len(segment.kinds)
        opened.maps = segment.maps_of_piece(last, events)
        opened.rows_done = segment.rows_of_piece_before(last, events)
        opened.thread = int(segment.thread[last])
        opened.begun = opened.begun or begun
        self.open = opened

    # -- single events -----------------------------------------------------------------------------------------------

    def piece_without_events(self, *, ends: bool, change: SchemaChange | None = None) -> Segment:
        """The open transaction goes on, or ends, by an event that is not kept."""
        opened = self.open
        assert opened is not None
        if ends:
            self.open = None
        return Segment(
            file=self.file,
            payload=b"",
            offsets=_ZERO,
            positions=_NOTHING,
            kinds=np.zeros(0, np.uint8),
            tables=np.zeros(0, np.int32),
            rows_before=_ZERO,
            first=np.zeros(2, np.int64),
            source=np.array([opened.source], np.int32),
            number=np.array([opened.number]),
            server=np.array([opened.server]),
            thread=np.array([opened.thread]),
            ts_us=np.array([opened.ts_us]),
            pos=np.array([opened.pos]),
            continues=True,
            rows_done=opened.rows_done,
            open=not ends,
            maps=tuple(opened.maps.values()),
            changes=() if change is None else ((0, change),),
            server_uuid=self.server_uuid,
        )
