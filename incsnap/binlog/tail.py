"""The tail: a thread that keeps reading the binlog, and the questions a planner asks about what it read.

The thread fills a buffer; ``advance`` says where the next batch can end, ``slices`` gives the bytes between two
positions, ``forget`` frees them. A full buffer stops the thread, and TCP then stops the server; it never stops while
nothing that could be handed out lies ahead, so a transaction larger than memory flows through in parts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from incsnap.binlog.buffer import Buffer
from incsnap.binlog.buffer_position import Advance, BufferPlace, Contents, Cut, TailCondition
from incsnap.binlog.capture_options import CHANGES, CaptureOptions
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import BinlogStream, ConnectionLost, LogSource
from incsnap.binlog.protocol.frames import Block
from incsnap.binlog.reconnecting import stay_connected
from incsnap.binlog.segments import Names
from incsnap.binlog.slices import Slice
from incsnap.binlog.slicing import cut_slices
from incsnap.binlog.statement_search import StatementSearch
from incsnap.binlog.stream_reader import StreamReader
from incsnap.binlog.tail_connections import TailConnections
from incsnap.errors import BinlogError, IncsnapError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId

_log = logging.getLogger(__name__)

#: Read on regardless of memory while less than this lies ahead: room for a table map and its first rows event.
_ALWAYS_AHEAD = 64 * 1024
_REPLAY_PATIENCE_SECONDS = 60.0


class Tail:
    """One replication connection from ``start`` on. Thread-safe; ``close`` it, or use it as a context manager.

    ``connect`` opens a PyMySQL connection with REPLICATION SLAVE. ``included`` is asked once per version of a table;
    the signal table counts as included. ``queue_bytes`` bounds what is kept besides the batches handed out and not
    forgotten. ``reconnect_seconds``: how long the server may be away before ``ServerUnreachable``. After a failover, or
    where the server has begun its binlog anew, the stream goes on from the other one: ``end.server_uuid`` tells,
    positions begin anew. The last three: StreamReader.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        server_id: int,
        start: StreamPosition,
        included: Callable[[TableId], bool],
        signal_table: TableId | None,
        queue_bytes: int,
        heartbeat_seconds: float = 0.05,
        reconnect_seconds: float = 300.0,
        damaged: str = "fail",
        options: CaptureOptions = CHANGES,
        prepared: PreparedTransactions | None = None,
    ) -> None:
        self._signal_table = signal_table
        self._queue_bytes = queue_bytes
        self._reconnect_seconds = reconnect_seconds
        self._names = Names(lambda table: table == signal_table or included(table))
        self.prepared = prepared or PreparedTransactions()
        self._connections = TailConnections(connect, server_id, heartbeat_seconds, self)
        self._reader = StreamReader(start, self._names, damaged, options, self.prepared, self._connections.file_begins)
        self._search = PreparedSearch(connect, server_id, self._names.included, self.prepared, damaged, self.is_closed)
        self._statements = StatementSearch(connect, server_id, options.concerns, self.is_closed)
        self._buffer = Buffer(start, self._names, options)
        self._changed = threading.Condition()
        self._closed = False
        self._stalled = False
        self._woken = False
        #: Connections that were made.
        self._made = 0
        self._replaying = False
        self._failure: IncsnapError | None = None
        self._stream: BinlogStream | None = None
        self._thread = threading.Thread(target=self._run, name="incsnap-binlog-tail", daemon=True)
        self._thread.start()

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- questions ---------------------------------------------------------------------------------------------------

    def advance(
        self,
        start: StreamPosition,
        max_bytes: int,
        max_events: int,
        until: tuple[str, int] | None = None,
        wait_seconds: float = 0.0,
    ) -> Advance:
        """Where the batch that begins at ``start`` can end: whole transactions within the limits, or the part of a
        larger one that is within them.

        Without ``until``: as soon as there are rows events or schema changes. With it: as soon as the end is at or past
        that file and position, or the limits are reached. In any case after ``wait_seconds`` or when ``wake`` is
        called; then ``end`` still holds what was read of other tables, and the newest position, so that windows close
        on an idle server.
        """
        deadline = time.monotonic() + wait_seconds
        buffer = self._buffer
        with self._changed:
            while True:
                place = buffer.place_of(start)
                if place is not None:
                    cut = buffer.cut(place, max_bytes, max_events, inside=self._stalled)
                    end = self._dated(start, buffer.position_of(start, cut))
                    moved = cut.end != cut.start
                    late = self._woken or time.monotonic() >= deadline
                    if self._failure is not None and not moved:
                        raise self._failure
                    if until is None:
                        contents = buffer.contents(cut.start, cut.end)
                        enough = bool(contents.events or contents.changes)
                    else:
                        enough = end.reached(*until)
                    if enough or late or (moved and (cut.full or self._stalled or self._failure is not None)):
                        return self._handed_out(end, cut)
                elif self._failure is not None:
                    raise self._failure
                elif time.monotonic() >= deadline:
                    raise BinlogError(f"the tail has not come to {start.file}:{start.pos} yet")
                self._wait(deadline, until, max_bytes)

    def condition(self) -> TailCondition:
        """How the tail is doing now."""
        with self._changed:
            return TailCondition(self._stream is not None, max(0, self._made - 1), self._buffer.cost, self._replaying)

    def wake(self) -> None:
        """Ends a wait in ``advance``, or the next one: there is something else to be done."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def changes_behind(
        self, position: StreamPosition, until: tuple[str, int], wait_seconds: float
    ) -> tuple[SchemaChange, ...] | None:
        """Statements that changed tables from ``position`` on, which was handed out, at least up to ``until``; None
        while the tail has not read that far, waiting at most that long. A tail that waits for memory reads no further.
        """
        deadline = time.monotonic() + wait_seconds
        buffer = self._buffer
        with self._changed:
            while not buffer.newest.reached(*until):
                left = deadline - time.monotonic()
                if left <= 0 or self._stalled or self._failure is not None or self._closed:
                    return None
                self._changed.wait(left)
            place = buffer.place_of(position)
            return None if place is None else buffer.changes_behind(place)

    def all_changes_behind(
        self, position: StreamPosition, until: tuple[str, int], wait_seconds: float
    ) -> tuple[SchemaChange, ...] | None:
        """The same, also where memory is full before: then the binlog is read once more, for its statements alone."""
        changes = self.changes_behind(position, until, wait_seconds)
        if changes is None and self._stalled:
            _log.info("looking for statements from %s:%d to %s:%d", position.file, position.pos, *until)
            return self._statements.behind(position, until)
        return changes

    def slices(self, start: StreamPosition, end: StreamPosition, parts: int, *, whole: bool = False) -> list[Slice]:
        """The kept events between two positions in at most ``parts`` slices; none where there are no events. ``whole``:
        no transaction is divided between slices.

        The same positions always give the same slices. After a restart the tail must have been started at ``start``;
        the call then waits until ``end`` was read again, and fails after 60 seconds without any progress.
        """
        with self._changed:
            first, last = self._replayed(start), self._replayed(end)
            stretches = self._buffer.stretches(first, last)
        return cut_slices(stretches, self._names, parts, whole=whole)

    def contents(self, start: StreamPosition, end: StreamPosition) -> Contents:
        """What lies between two positions that ``slices`` can be asked for."""
        with self._changed:
            first, last = self._replayed(start), self._replayed(end)
            return self._buffer.contents(first, last)

    def forget(self, end: StreamPosition) -> None:
        """Free everything before ``end``: it will not be asked for again."""
        with self._changed:
            self._buffer.forget(end)
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread and its connection; may be called twice."""
        with self._changed:
            self._closed = True
            if self._stream is not None:
                self._stream.abort()
            self._changed.notify_all()
        self._thread.join()

    def _dated(self, start: StreamPosition, end: StreamPosition) -> StreamPosition:
        return end if end.at == start.at else replace(end, begun=self._reader.begun(end.at))

    def _handed_out(self, end: StreamPosition, cut: Cut) -> Advance:
        buffer = self._buffer
        contents = buffer.contents(cut.start, cut.end)
        signals: list[Slice] = []
        if self._signal_table is not None and self._signal_table in contents.tables:
            signals = cut_slices(buffer.stretches(cut.start, cut.end), self._names, 1, self._signal_table)
        buffer.remember(end, cut.end)
        buffer.hand_out(cut.end)
        self._woken = False
        self._changed.notify_all()
        size = contents.bytes, contents.events
        return Advance(
            end,
            contents.tables,
            contents.changes,
            tuple(signals),
            *size,
            contents.last_ts_us,
            cut.full,
            contents.marks,
            contents.unnamed,
        )

    def _wait(self, deadline: float, until: tuple[str, int] | None, max_bytes: int) -> None:
        """Until it is worth cutting again. A cut looks at every segment, so not after each of thousands."""
        buffer = self._buffer
        work, cost = buffer.work, buffer.cost
        while (remaining := deadline - time.monotonic()) > 0:
            self._changed.wait(remaining)
            if self._failure is not None or self._stalled or self._closed or self._woken:
                return
            if until is None and buffer.work != work:
                return
            if until is not None and (buffer.newest.reached(*until) or buffer.cost - cost >= max_bytes // 4):
                return

    def _replayed(self, position: StreamPosition) -> BufferPlace:
        last_progress = time.monotonic()
        newest = self._buffer.newest
        try:
            while (place := self._buffer.place_of(position)) is None:
                if self._failure is not None:
                    raise self._failure
                self._replaying = True
                self._changed.notify_all()
                self._changed.wait(1.0)
                now = time.monotonic()
                if self._buffer.newest != newest:
                    newest, last_progress = self._buffer.newest, now
                elif now - last_progress > _REPLAY_PATIENCE_SECONDS:
                    raise BinlogError(
                        f"the binlog did not come to {position.file}:{position.pos} again",
                        "The server may have lost its last transactions; see its error log.",
                    )
        finally:
            self._replaying = False
        return place

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        read = partial(self._search.around, partial(self._connections.read, self._reader), self.reached)
        try:
            stay_connected(
                read,
                lambda: self._reader.position,
                lambda: self._made,
                self.is_closed,
                self._pause,
                self._reconnect_seconds,
            )
        except IncsnapError as failed:
            self._fail(failed)
        except Exception as defect:  # noqa: BLE001 - whatever it was, advance() must raise it instead of waiting for ever
            _log.exception("the binlog tail failed")
            self._fail(BinlogError(f"reading the binlog failed at {self._reader.position}: {defect!r}"))

    def _fail(self, failed: IncsnapError) -> None:
        with self._changed:
            self._failure = failed
            self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)

    # -- what the connections bring ----------------------------------------------------------------------------------

    def reached(self) -> GtidSet:
        with self._changed:
            return self._buffer.reached()

    def is_closed(self) -> bool:
        return self._closed

    def connected(self, stream: BinlogStream, source: LogSource, *, exchanged: bool) -> None:
        with self._changed:
            if self._closed:
                raise ConnectionLost("closed")
            self._stream = stream
            self._made += 1
            if exchanged:
                self._buffer.drop_open()
            self._reader.stream_begins(checksum=source.checksum, server_uuid=source.server_uuid)
            self._buffer.newest = self._reader.position
            self._changed.notify_all()

    def received(self, block: Block) -> None:
        for segment in self._reader.add(block):
            with self._changed:
                self._buffer.append(segment)
            self._make_room()
        with self._changed:
            self._buffer.newest = self._reader.position
            self._changed.notify_all()

    def disconnected(self) -> None:
        with self._changed:
            self._stream = None

    def _make_room(self) -> None:
        """Back-pressure: wait while the buffer is full and something to hand out lies ahead."""
        enough = max(_ALWAYS_AHEAD, self._queue_bytes // 4)
        buffer = self._buffer
        with self._changed:
            while buffer.cost >= self._queue_bytes and buffer.ahead >= enough and not (self._closed or self._replaying):
                self._stalled = True
                self._changed.notify_all()
                self._changed.wait()
            self._stalled = False
            if self._closed:
                raise ConnectionLost("closed")
