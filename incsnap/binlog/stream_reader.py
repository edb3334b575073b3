"""The whole reading of a block: ordinary runs go to ``transactions.py``, every odd event is dealt with here."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from incsnap.binlog import runs
from incsnap.binlog.capture_options import CHANGES, CaptureOptions
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol.frames import PAD, Block
from incsnap.binlog.protocol.long_event import let_go
from incsnap.binlog.protocol.query_event import Query, read_execute_load_query, read_query
from incsnap.binlog.rollbacks import note_savepoint, refuse_undone_rows
from incsnap.binlog.runs import Events, classify
from incsnap.binlog.segments import Names, Segment
from incsnap.binlog.transactions import TransactionBuilder
from incsnap.binlog.xa_transactions import XaTransactions
from incsnap.ddl.statements import ROW_STATEMENTS, first_word, schema_change
from incsnap.ddl.table_statements import table_statements
from incsnap.errors import BinlogError, shorten
from incsnap.events import BinlogPosition, Origin, SchemaChange, StreamPosition
from incsnap.gtid import GtidSet

_log = logging.getLogger(__name__)
_SIZE = struct.Struct("<I")
#: Of which it is remembered when they were begun: more than are under way.
_FILES = 1_000
#: What reading an event by hand raises where its fields lead out of it.
_UNREADABLE = (IndexError, KeyError, ValueError, OverflowError, struct.error)


class StreamReader:
    """Blocks of a dump in, segments out. ``position`` is how far the stream was read; in one binlog it never goes
    back."""

    def __init__(
        self,
        start: StreamPosition,
        names: Names,
        damaged: str = "fail",
        options: CaptureOptions = CHANGES,
        prepared: PreparedTransactions | None = None,
        file_begins: Callable[[GtidSet], None] = lambda _: None,
    ) -> None:
        """``damaged``: what is done about rows events whose checksum is wrong (fail, warn, skip). ``prepared``: what is
        prepared at ``start``; None where nothing is. ``file_begins`` is told what the log had before each file.

        No other event is ever left out: transactions, tables and positions would be guesses then.
        """
        self._state = TransactionBuilder(start, names, queries=options.queries)
        self._xa = XaTransactions(self._state, prepared or PreparedTransactions())
        self._damaged = damaged
        self._concerns = options.concerns
        self._charsets = options.charsets
        self._file_begins = file_begins
        #: When each file was begun, of the last ones that were read; ``events.StreamPosition.begun``.
        self._begun = {(start.server_uuid, start.file): start.begun} if start.begun else {}
        self._warned: set[str] = set()

    @property
    def position(self) -> BinlogPosition:
        return self._state.place.position

    def begun(self, at: BinlogPosition) -> int:
        """When the server began the file of a place that was read, or of the start; 0 where that is not known."""
        return self._begun.get((at.server_uuid, at.file), 0)

    @property
    def server_uuid(self) -> str:
        """Says whose binlog is read (``events.begun_anew``), "" before the first connection of a start without one."""
        return self._state.place.server_uuid

    def stream_begins(self, *, checksum: bool, server_uuid: str = "") -> None:
        """A new connection; what follows goes on where the segments so far end, on another server where the last whole
        transaction ends (``Buffer.drop_open``).
        """
        self._state.stream_begins(checksum=checksum, server_uuid=server_uuid)

    def add(self, block: Block) -> Iterator[Segment]:
        """The segments of a block. ``position`` covers those already yielded, and at the end the whole block.

        BinlogError, naming file and position, where it holds what cannot be read.
        """
        try:
            yield from self._events(block, None)
        except _UNREADABLE as error:
            raise BinlogError(f"{self._state.place}: an event at or behind that place is damaged: {error!r}") from error
        self._state.place.advance()

    def _events(self, block: Block, fixed: tuple[int, int] | None) -> Iterator[Segment]:
        state = self._state
        checksum = 0 if fixed else state.checksum
        events = classify(block, checksum)
        if not fixed:
            self._leave_out_damaged(block, events, 0)
        begin = 0
        for odd in np.flatnonzero(events.classes == runs.OTHER).tolist():
            yield from self._run(events.between(begin, odd), fixed)
            yield from self._odd(events, odd, fixed)
            begin = odd + 1
            if not fixed and checksum != state.checksum:  # a format description turned checksums on or off
                yield from self._events(Block(block.data, block.starts[begin:], block.ends[begin:]), None)
                return
            if not fixed and events.head["kind"][odd] == kinds.FORMAT_DESCRIPTION:
                self._leave_out_damaged(block, events, begin)
        yield from self._run(events.between(begin, len(events)), fixed)

    def _run(self, events: Events, fixed: tuple[int, int] | None) -> Iterator[Segment]:
        if self._state.open is not None and self._state.open.xid:
            self._xa.add(events, fixed)
        else:
            yield from self._state.add_run(events, fixed)

    def _leave_out_damaged(self, block: Block, events: Events, begin: int) -> None:
        place = self._state.place
        for event in runs.damaged(block, events, begin).tolist():
            before = events.between(begin, event)
            pos = int(before.end_positions(place.pos)[-1]) if event > begin else place.pos
            what = f"{place.named(pos)}: the event there is damaged: its length or checksum is wrong"
            whole = int(events.head["size"][event]) == int(block.ends[event] - block.starts[event])
            if self._damaged == "fail" or not whole or events.classes[event] != runs.ROWS:
                raise BinlogError(
                    what,
                    "The binlog file or the connection is damaged. Start again; if that does not help, start with a new"
                    " checkpoint.location and signal execute-snapshot for the tables.",
                )
            if self._damaged == "warn":
                _log.warning("%s; its rows are left out", what)
            events.classes[event] = runs.SILENT
            # Its end may be what is wrong; positions behind it are counted from there.
            events.head["end"][event] = (pos + int(events.head["size"][event])) & 0xFFFFFFFF

    def _odd(self, events: Events, odd: int, fixed: tuple[int, int] | None) -> Iterator[Segment]:
        state = self._state
        kind = int(events.head["kind"][odd])
        if kind in (kinds.HEARTBEAT, kinds.HEARTBEAT_V2):
            self._heartbeat(kind, events, odd)
            return
        if kind == kinds.ROTATE:
            state.place.file_begins(*kinds.read_rotate(events.body(odd)))
            return
        # Events that the server makes up for this dump have no place in the file.
        if fixed is None and events.head["end"][odd]:
            end = int(events.between(odd, odd + 1).end_positions(state.place.pos)[0])
            place = (end - int(events.head["size"][odd]), end)
        else:
            place = fixed or (state.place.pos, state.place.pos)
        if kind == kinds.QUERY:
            yield from self._query(events, odd, place)
        elif kind == kinds.EXECUTE_LOAD_QUERY:
            self._left_out(read_execute_load_query(events.body(odd)).session.database, place[0])
        elif kind == kinds.TRANSACTION_PAYLOAD:
            yield from self._payload(events, odd, place)
        elif kind == kinds.PREVIOUS_GTIDS:
            self._file_begins(GtidSet.decode(events.body(odd)))
        elif kind == kinds.XA_PREPARE:
            yield from self._xa.prepare(events.body(odd), place)
        elif kind == kinds.FORMAT_DESCRIPTION:
            whole = events.data[events.starts[odd] : events.ends[odd] + state.checksum]
            state.format_begins(checksum=kinds.has_checksum(whole))
            self._begun[state.place.server_uuid, state.place.file] = kinds.time_of(whole)
            if len(self._begun) > _FILES:
                del self._begun[next(iter(self._begun))]
        else:
            self._refuse(kind, int.from_bytes(events.data[events.starts[odd] + 17 : events.starts[odd] + 19], "little"))
        if fixed is None:
            state.place.move_to(place[1])

    def _heartbeat(self, kind: int, events: Events, odd: int) -> None:
        place = self._state.place
        if kind == kinds.HEARTBEAT_V2:
            file, pos = kinds.read_heartbeat(events.body(odd))
        else:
            file = events.body(odd).decode("utf-8", "replace")
            pos = int(events.head["end"][odd])
            if file == place.file:  # 32 bits only: the nearest place ahead
                pos = int(events.between(odd, odd + 1).end_positions(place.pos)[0])
        place.heartbeat(file, pos)

    def _query(self, events: Events, odd: int, place: tuple[int, int]) -> Iterator[Segment]:
        state, at = self._state, place[0]
        query = read_query(events.body(odd), self._charsets)
        opened = state.statement_comes(query.thread)
        if opened is None:
            raise BinlogError(
                f"{state.place.named(at)}: the statement {shorten(query.sql)!r} has no GTID", "Set gtid_mode=ON."
            )
        verb = first_word(query.sql)
        if verb == "XA":
            yield from self._xa.statement(query.sql, place)
            return
        change = self._change(query, events, odd, at)
        if not opened.begun:
            yield state.fragment_without_events(ends=True, change=change)
        elif verb == "ROLLBACK":
            refuse_undone_rows(opened, query.sql, f"{state.place.named(at)} ({state.name_of(opened)})")
            if len(query.sql.split(None, 2)) == 1:
                yield from self._finish(at)
        elif verb == "SAVEPOINT":
            note_savepoint(opened, query.sql)
        elif verb in ROW_STATEMENTS:
            self._left_out(query.session.database, at)
        elif change is not None:
            yield state.fragment_without_events(ends=False, change=change)

    def _change(self, query: Query, events: Events, odd: int, at: int) -> SchemaChange | None:
        """Return what the statement changed, and where it stands; None if that is of no interest. A new database is a
        change of no table."""
        state, opened, session = self._state, self._state.open, query.session
        assert opened is not None
        change = schema_change(query.sql, session.database, exact=query.exact, sql_mode=session.sql_mode)
        if change is None and any(
            each.type == "DATABASE" for each in table_statements(query.sql, "", session.sql_mode)
        ):
            change = SchemaChange(frozenset(), "", query.sql)
        if change is None:
            return None
        change = replace(change, session=session)
        if not self._concerns(change):
            return None
        # Debezium tells no thread of a statement that is a transaction of its own.
        thread = query.thread if opened.begun else None
        server = int(events.head["server"][odd])
        origin = Origin(state.name_of(opened), state.place.file, at, opened.ts_us, server, thread)
        return replace(change, origin=origin)

    def _left_out(self, database: str, at: int) -> None:
        """``database``: that of the session, which need not be the table's."""
        where = f"database {database!r}" if database else "no database"
        self._warn_once(
            f"statement of {database}",
            f"{self._state.place.named(at)}: a change by a session in {where} was logged as a statement and is left"
            " out; every session must keep binlog_format=ROW",
        )

    def _finish(self, at: int) -> Iterator[Segment]:
        if self._state.open is None:
            raise BinlogError(f"{self._state.place.named(at)}: a transaction ends that never began")
        yield self._state.fragment_without_events(ends=True)

    def _payload(self, events: Events, odd: int, place: tuple[int, int]) -> Iterator[Segment]:
        """The events of a compressed transaction, inflated and read a block at a time."""
        pending: list[bytes] = []
        have, need = 0, kinds.HEADER
        for inflated in kinds.read_payload(events.body_view(odd)):
            let_go(events.data)
            pending.append(inflated)
            have += len(inflated)
            if have < need:  # do not join again and again while a large event comes in
                continue
            rest = b"".join(pending)
            starts = []
            at, end = 0, len(rest)
            following = end
            while at + kinds.HEADER <= end:
                following = at + _SIZE.unpack_from(rest, at + 9)[0]
                if following > end:
                    break
                if following < at + kinds.HEADER:
                    where = self._state.place.named(place[0])
                    raise BinlogError(f"{where}: a compressed event is shorter than its header")
                starts.append(at)
                at = following
            if starts:
                places = np.array([*starts, at])
                yield from self._events(Block(rest[:at] + PAD, places[:-1], places[1:]), place)
            pending, have = [rest[at:]], end - at
            need = max(following - at, kinds.HEADER)
        if have:
            raise BinlogError(f"{self._state.place.named(place[0])}: a compressed transaction is cut off")

    def _refuse(self, kind: int, flags: int) -> None:
        where = str(self._state.place)
        if kind == kinds.ANONYMOUS_GTID:
            raise BinlogError(
                f"{where}: a transaction without GTID", "Set gtid_mode=ON (and enforce_gtid_consistency=ON)."
            )
        if kind == kinds.INCIDENT:
            raise BinlogError(
                f"{where}: the server notes that events are missing in its binlog",
                "Start with a new checkpoint.location and signal execute-snapshot for the tables.",
            )
        if not flags & kinds.IGNORABLE_FLAG:
            raise BinlogError(f"{where}: an event of the unknown type {kind}", "Use a newer incsnap.")

    def _warn_once(self, what: str, message: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            _log.warning("%s", message)
