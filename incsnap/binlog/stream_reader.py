"""The whole reading of a block: ordinary runs go to ``transactions.py``, every odd event is dealt with here."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator

import numpy as np

from incsnap.binlog import control_events as kinds
from incsnap.binlog import runs
from incsnap.binlog.ddl import ROW_STATEMENTS, first_word, schema_change
from incsnap.binlog.frames import PAD, Block
from incsnap.binlog.runs import Events, classify
from incsnap.binlog.segments import Names, Segment
from incsnap.binlog.transactions import Transactions
from incsnap.errors import BinlogError, shorten
from incsnap.events import BinlogPosition, StreamPosition, file_number

_log = logging.getLogger(__name__)
_SIZE = struct.Struct("<I")


class StreamReader:
    """Blocks of a dump in, segments out. ``position`` is how far the stream was read; in one server's
    binlog it never goes back."""

    def __init__(self, start: StreamPosition, names: Names) -> None:
        self._state = Transactions(start, names)
        self._warned: set[str] = set()

    @property
    def position(self) -> BinlogPosition:
        return self._state.position

    @property
    def server_uuid(self) -> str:
        """The server whose binlog is read, "" before the first connection of a start without one."""
        return self._state.server_uuid

    def stream_begins(self, *, checksum: bool, server_uuid: str = "") -> None:
        """A new connection; what follows goes on where the segments so far end, on another server where the last whole
        transaction ends (``Buffer.drop_open``).
        """
        self._state.stream_begins(checksum=checksum, server_uuid=server_uuid)

    def add(self, block: Block) -> Iterator[Segment]:
        """The segments of a block. ``position`` covers those already yielded, and at the end the whole block."""
        yield from self._events(block, None)
        self._state.advance()

    def _events(self, block: Block, fixed: tuple[int, int] | None) -> Iterator[Segment]:
        state = self._state
        checksum = 0 if fixed else state.checksum
        events = classify(block, checksum)
        begin = 0
        for odd in np.flatnonzero(events.classes == runs.OTHER).tolist():
            yield from state.add_run(events.between(begin, odd), fixed)
            yield from self._odd(events, odd, fixed)
            begin = odd + 1
            if not fixed and checksum != state.checksum:  # a format description turned checksums on or off
                yield from self._events(Block(block.data, block.starts[begin:], block.ends[begin:]), None)
                return
        yield from state.add_run(events.between(begin, len(events)), fixed)

    def _odd(self, events: Events, odd: int, fixed: tuple[int, int] | None) -> Iterator[Segment]:
        state = self._state
        kind = int(events.head["kind"][odd])
        if kind in (kinds.HEARTBEAT, kinds.HEARTBEAT_V2):
            self._heartbeat(kind, events, odd)
            return
        if kind == kinds.ROTATE:
            state.advance()
            state.file, state.pos = kinds.read_rotate(events.body(odd))
            return
        # Events that the server makes up for this dump have no place in the file.
        if fixed is None and events.head["end"][odd]:
            end = int(events.between(odd, odd + 1).end_positions(state.pos)[0])
            place = (end - int(events.head["size"][odd]), end)
        else:
            place = fixed or (state.pos, state.pos)
        if kind == kinds.QUERY:
            yield from self._query(events, odd, place[0])
        elif kind == kinds.TRANSACTION_PAYLOAD:
            yield from self._payload(events.body(odd), place)
        elif kind == kinds.XA_PREPARE:
            self._warn_once("XA", "rows of XA transactions are sent at XA PREPARE, even if rolled back later")
            yield from self._finish(place[0])
        elif kind == kinds.FORMAT_DESCRIPTION:
            whole = events.data[events.starts[odd] : events.ends[odd] + state.checksum]
            state.checksum = kinds.CHECKSUM if kinds.has_checksum(whole) else 0
            state.forget_table_ids()
        else:
            self._refuse(kind, int.from_bytes(events.data[events.starts[odd] + 17 : events.starts[odd] + 19], "little"))
        if fixed is None:
            state.pos = place[1]

    def _heartbeat(self, kind: int, events: Events, odd: int) -> None:
        """The server stands here: it is idle, or it left out transactions that were delivered before."""
        state = self._state
        if kind == kinds.HEARTBEAT_V2:
            file, pos = kinds.read_heartbeat(events.body(odd))
        else:
            file = events.body(odd).decode("utf-8", "replace")
            pos = int(events.head["end"][odd])
            if file == state.file:  # 32 bits only: the nearest place ahead
                pos = int(events.between(odd, odd + 1).end_positions(state.pos)[0])
        if file_number(file) == file_number(state.file) and pos > state.pos:
            state.pos = pos
        elif file_number(file) > file_number(state.file):
            state.file, state.pos = file, pos

    def _query(self, events: Events, odd: int, at: int) -> Iterator[Segment]:
        state = self._state
        query = kinds.read_query(events.body(odd))
        opened = state.open
        if opened is None:
            raise BinlogError(
                f"{state.file}:{at}: the statement {shorten(query.sql)!r} has no GTID", "Set gtid_mode=ON."
            )
        opened.thread = query.thread
        verb = first_word(query.sql)
        words = query.sql.split(None, 2)
        if verb == "XA" and len(words) > 1 and words[1].upper() in ("START", "BEGIN"):
            opened.begun = True
            return
        change = schema_change(query.sql, query.database, exact=query.exact)
        if not opened.begun:
            yield state.piece_without_events(ends=True, change=change)
        elif verb == "ROLLBACK" and len(words) == 1:
            yield from self._finish(at)
        elif verb in ROW_STATEMENTS:
            self._warn_once(
                "statement",
                f"{state.file}:{at}: a change of database {query.database!r} was logged as a statement and is left out;"
                " every session must keep binlog_format=ROW",
            )
        elif change is not None:
            yield state.piece_without_events(ends=False, change=change)

    def _finish(self, at: int) -> Iterator[Segment]:
        if self._state.open is None:
            raise BinlogError(f"{self._state.file}:{at}: a transaction ends that never began")
        yield self._state.piece_without_events(ends=True)

    def _payload(self, body: bytes, place: tuple[int, int]) -> Iterator[Segment]:
        """The events of a compressed transaction, inflated and read a block at a time."""
        rest = b""
        for inflated in kinds.read_payload(body):
            rest += inflated
            starts = []
            at, end = 0, len(rest)
            while at + kinds.HEADER <= end:
                following = at + _SIZE.unpack_from(rest, at + 9)[0]
                if following > end:
                    break
                if following < at + kinds.HEADER:
                    raise BinlogError(f"{self._state.file}:{place[0]}: a compressed event is shorter than its header")
                starts.append(at)
                at = following
            if starts:
                places = np.array([*starts, at])
                yield from self._events(Block(rest[:at] + PAD, places[:-1], places[1:]), place)
                rest = rest[at:]
        if rest:
            raise BinlogError(f"{self._state.file}:{place[0]}: a compressed transaction is cut off")

    def _refuse(self, kind: int, flags: int) -> None:
        where = f"{self._state.file}:{self._state.pos}"
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
