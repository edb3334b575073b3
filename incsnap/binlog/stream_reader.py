"""The reader of a replication stream: it turns blocks of binlog events into segments (`incsnap.binlog.segments`).

`event_classes.classify` gives each event of a block a class. A run of ordinary events (GTID, BEGIN, table map, rows,
XID) goes to `incsnap.binlog.transactions` as NumPy columns. Every other event stands between two runs, and this module
reads each of them alone: statements, new files, heartbeats, compressed transactions and XA PREPARE.

Example: a block holds an INSERT (transaction 41), an ALTER TABLE (42) and another INSERT (43). The numbers are
positions in `binlog.000001`. `StreamReader.add` yields three segments:

    157 GTID 41 | 234 BEGIN | 285 TABLE_MAP | 335 WRITE_ROWS | 375 XID | 406 GTID 42       a run
        segment 0: transaction 41 with the events at 285 and 335; transaction 42 begins and stays open
    483 QUERY "ALTER TABLE orders ADD note INT"                                            read alone
        segment 1: transaction 42 ends; `changes` has the statement, with its position 483
    560 GTID 43 | 637 BEGIN | 688 TABLE_MAP | 738 WRITE_ROWS | 778 XID                     a run
        segment 2: transaction 43 with the events at 688 and 738

`StreamReader.position` is 157 while `add` yields these segments, and 809, the end of the block, when `add` has ended.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import numpy as np

from incsnap.binlog import event_classes
from incsnap.binlog.capture_options import CHANGES, CaptureOptions
from incsnap.binlog.event_classes import Events, classify
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol.frames import Block, inflated_blocks
from incsnap.binlog.protocol.long_event import let_go
from incsnap.binlog.protocol.query_event import Query, read_execute_load_query, read_query
from incsnap.binlog.rollbacks import note_savepoint, refuse_undone_rows
from incsnap.binlog.segments import IdTable, Segment
from incsnap.binlog.transactions import TransactionBuilder
from incsnap.binlog.xa_transactions import XaTransactions
from incsnap.ddl.online_changes import after_change
from incsnap.ddl.online_names import TRIGGERS
from incsnap.ddl.statements import ROW_STATEMENTS, first_word, schema_change
from incsnap.ddl.table_statements import table_statements
from incsnap.errors import BinlogError, shorten
from incsnap.events import BinlogPosition, Origin, SchemaChange, StreamPosition
from incsnap.gtid import GtidSet

_log = logging.getLogger(__name__)
#: Errors of the functions that read a single event, if a field of the event points outside the event.
_UNREADABLE = (IndexError, KeyError, ValueError, OverflowError, struct.error)


class StreamReader:
    """A reader of one binlog stream: blocks go in, segments come out.

    `position` is the binlog position up to which the stream was read. In one binlog `position` never goes back.
    """

    def __init__(
        self,
        start: StreamPosition,
        ids: IdTable,
        damaged: str = "fail",
        options: CaptureOptions = CHANGES,
        prepared: PreparedTransactions | None = None,
        file_begins: Callable[[GtidSet], None] = lambda _: None,
    ) -> None:
        """Create a reader that begins at `start`.

        `damaged` says what to do about a rows event with a wrong checksum: `fail`, `warn` or `skip`. The reader never
        leaves out another kind of event: transactions, tables and positions would be guesses then. `prepared` holds the
        XA transactions that are prepared at `start` (None: there are none). The reader calls `file_begins` at the
        beginning of each file, with the GTIDs of all earlier files.
        """
        self._state = TransactionBuilder(start, ids, queries=options.queries)
        self.place = self._state.place
        self._xa = XaTransactions(self._state, prepared or PreparedTransactions())
        self._damaged = damaged
        self._concerns = options.concerns
        self._charsets = options.charsets
        self._file_begins = file_begins
        #: Tables of tools for online schema changes, at `position`; None: they are not recognised.
        self._online = options.online
        self._watches = options.watches
        if self._online is not None:
            ids.leave_out(self._online.names())
        #: Databases of which `_left_out` has warned.
        self._warned: set[str] = set()

    @property
    def position(self) -> BinlogPosition:
        """Return the binlog position up to which the stream was read."""
        return self.place.position

    def stream_begins(self, *, checksum: bool, server_uuid: str = "") -> None:
        """Begin to read a new connection.

        On the same server the stream continues after the last segment. On another server the stream continues after
        the last whole transaction (see `Buffer.drop_open`).
        """
        self._state.stream_begins(checksum=checksum, server_uuid=server_uuid)

    def add(self, block: Block) -> Iterator[Segment]:
        """Yield the segments of a block.

        `position` never passes a segment that was not yielded yet. After the last segment it is the end of the block.
        Raise BinlogError, with file and position, if an event cannot be read.
        """
        rest = block
        try:
            while len(rest.starts):
                rest = yield from self._through_format(rest)
        except _UNREADABLE as error:
            raise BinlogError(f"{self.place}: an event at or after this position is damaged: {error!r}") from error
        self.place.advance()

    def _through_format(self, block: Block) -> Generator[Segment, None, Block]:
        """Yield the segments of a block up to a format description, which says whether checksums follow.

        Return the rest of the block.
        """
        events = classify(block, self._state.checksum)
        self._leave_out_damaged(block, events)
        formats = np.flatnonzero(events.head["kind"] == kinds.FORMAT_DESCRIPTION)
        end = int(formats[0]) + 1 if len(formats) else len(events)
        yield from self._events(events.between(0, end))
        return Block(block.data, block.starts[end:], block.ends[end:])

    def _events(self, events: Events) -> Iterator[Segment]:
        begin = 0
        for odd in np.flatnonzero(events.classes == event_classes.OTHER).tolist():
            yield from self._run(events.between(begin, odd))
            yield from self._odd(events, odd)
            begin = odd + 1
        yield from self._run(events.between(begin, len(events)))

    def _run(self, events: Events) -> Iterator[Segment]:
        if self._state.open is not None and self._state.open.xid:
            self._xa.add(events)
        else:
            yield from self._state.add_run(events)

    def _leave_out_damaged(self, block: Block, events: Events) -> None:
        place = self.place
        for event in event_classes.damaged(block, events).tolist():
            pos = int(events.between(0, event).end_positions(place.pos)[-1]) if event else place.pos
            what = f"{place.named(pos)}: the event there is damaged: its length or checksum is wrong"
            whole = int(events.head["size"][event]) == int(block.ends[event] - block.starts[event])
            if self._damaged == "fail" or not whole or events.classes[event] != event_classes.ROWS:
                raise BinlogError(
                    what,
                    "The binlog file or the connection is damaged. Start again; if that does not help, start with a new"
                    " checkpoint.location and signal execute-snapshot for the tables.",
                )
            if self._damaged == "warn":
                _log.warning("%s; its rows are left out", what)
            events.classes[event] = event_classes.SILENT
            # The wrong bytes may be the event's end, from which later positions are counted. So write the right end.
            events.head["end"][event] = (pos + int(events.head["size"][event])) & 0xFFFFFFFF

    def _odd(self, events: Events, odd: int) -> Iterator[Segment]:
        """Read the event number `odd`, which belongs to no run, and yield its segments."""
        state = self._state
        kind = int(events.head["kind"][odd])
        if kind in (kinds.HEARTBEAT, kinds.HEARTBEAT_V2):
            self._heartbeat(kind, events, odd)
            return
        if kind == kinds.ROTATE:
            self.place.file_begins(*kinds.read_rotate(events.body(odd)))
            return
        at = end = self.place.pos
        # The server invents some events for this dump. They have no position in the file, and their end is 0.
        if events.at is not None or events.head["end"][odd]:
            [at], end = events.between(odd, odd + 1).positions(end)
            at = int(at)
        if kind == kinds.QUERY:
            yield from self._query(events, odd, at)
        elif kind == kinds.EXECUTE_LOAD_QUERY:
            self._left_out(read_execute_load_query(events.body(odd)).session.database, at)
        elif kind == kinds.TRANSACTION_PAYLOAD:
            yield from self._payload(events, odd, at)
        elif kind == kinds.PREVIOUS_GTIDS:
            self._file_begins(GtidSet.decode(events.body(odd)))
        elif kind == kinds.XA_PREPARE:
            yield from self._xa.prepare(events.body(odd), at)
        elif kind == kinds.FORMAT_DESCRIPTION:
            whole = events.data[events.starts[odd] : events.ends[odd] + state.checksum]
            state.format_begins(checksum=kinds.has_checksum(whole))
            self.place.note_begun(kinds.time_of(whole))
        else:
            self._refuse(kind, int.from_bytes(events.data[events.starts[odd] + 17 : events.starts[odd] + 19], "little"))
        self.place.move_to(end)

    def _heartbeat(self, kind: int, events: Events, odd: int) -> None:
        place = self.place
        if kind == kinds.HEARTBEAT_V2:
            file, pos = kinds.read_heartbeat(events.body(odd))
        else:
            file = events.body(odd).decode("utf-8", "replace")
            pos = int(events.head["end"][odd])
            if file == place.file:  # the header has 32 bits only: take the nearest position ahead
                pos = int(events.between(odd, odd + 1).end_positions(place.pos)[0])
        place.heartbeat(file, pos)

    def _query(self, events: Events, odd: int, at: int) -> Iterator[Segment]:
        state = self._state
        query = read_query(events.body(odd), self._charsets)
        opened = state.open
        if opened is None:
            raise BinlogError(
                f"{self.place.named(at)}: the statement {shorten(query.sql)!r} has no GTID", "Set gtid_mode=ON."
            )
        opened.row["thread"] = query.thread
        verb = first_word(query.sql)
        if verb == "XA":
            yield from self._xa.statement(query.sql, at)
            return
        change = self._change(query, events, odd, at)
        if not opened.begun:
            yield state.fragment_without_events(ends=True, change=change)
        elif verb == "ROLLBACK":
            refuse_undone_rows(opened, query.sql, f"{self.place.named(at)} ({state.name_of(opened)})")
            if len(query.sql.split(None, 2)) == 1:
                yield state.fragment_without_events(ends=True)
        elif verb == "SAVEPOINT":
            note_savepoint(opened, query.sql)
        elif verb in ROW_STATEMENTS:
            self._left_out(query.session.database, at)
        elif change is not None:
            yield state.fragment_without_events(ends=False, change=change)

    def _change(self, query: Query, events: Events, odd: int, at: int) -> SchemaChange | None:
        """Return the change that the statement makes, with its origin. Return None if the job does not need the change.

        CREATE DATABASE gives a change without tables.
        """
        state, opened, session = self._state, self._state.open, query.session
        assert opened is not None
        change = schema_change(query.sql, session.database, exact=query.exact, sql_mode=session.sql_mode)
        if change is None and any(
            each.type == "DATABASE" for each in table_statements(query.sql, "", session.sql_mode)
        ):
            change = SchemaChange(frozenset(), "", query.sql)
        if change is None and query.exact and self._online is not None and TRIGGERS in query.sql:
            change = SchemaChange(frozenset(), "", query.sql)
        if change is None:
            return None
        change = replace(change, session=session, has_xid=query.has_xid, in_transaction=opened.begun)
        if not (self._is_of_a_tool(change) or self._concerns(change)):
            return None
        # As in Debezium, a statement that is a whole transaction has no thread.
        thread = query.thread if opened.begun else None
        server = int(events.head["server"][odd])
        origin = Origin(state.name_of(opened), self.place.file, at, opened.ts_us, server, thread)
        return replace(change, origin=origin)

    def _is_of_a_tool(self, change: SchemaChange) -> bool:
        """Return True if the statement changes the tables of tools for online schema changes. Leave them out from here
        on."""
        if self._online is None:
            return False
        before = self._online
        self._online, _ = after_change(before, change, self._watches)
        if self._online is before:
            return False
        self._state.ids.leave_out(self._online.names())
        return True

    def _left_out(self, database: str, at: int) -> None:
        """Log, once for each database, that a change was logged as a statement and is left out.

        `database` is the session's default database. The table may be in another one.
        """
        if database not in self._warned:
            self._warned.add(database)
            _log.warning(
                "%s: a change by a session in %s was logged as a statement and is left out; every session must keep"
                " binlog_format=ROW",
                self.place.named(at),
                f"database {database!r}" if database else "no database",
            )

    def _payload(self, events: Events, odd: int, at: int) -> Iterator[Segment]:
        """Inflate a compressed transaction block by block, and yield the segments of its events."""

        def inflated() -> Iterator[bytes]:
            body = memoryview(events.data)[events.starts[odd] + kinds.HEADER : events.ends[odd]]
            for block in kinds.read_payload(body):
                let_go(events.data)
                yield block

        for block in inflated_blocks(inflated(), self.place.named(at)):
            yield from self._events(replace(classify(block, 0), at=np.full(len(block.starts), at)))

    def _refuse(self, kind: int, flags: int) -> None:
        where = str(self.place)
        if kind == kinds.ANONYMOUS_GTID:
            raise BinlogError(
                f"{where}: a transaction without GTID", "Set gtid_mode=ON (and enforce_gtid_consistency=ON)."
            )
        if kind == kinds.INCIDENT:
            raise BinlogError(
                f"{where}: the server reports that events are missing in its binlog",
                "Start with a new checkpoint.location and signal execute-snapshot for the tables.",
            )
        if not flags & kinds.IGNORABLE_FLAG:
            raise BinlogError(f"{where}: unknown event type {kind}", "Use a newer incsnap.")
