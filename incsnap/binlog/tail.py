"""The tail: the questions that a planner asks about the binlog, which a thread keeps reading.

``advance`` says where the next batch can end, ``slices`` gives the bytes between two positions, ``forget`` frees them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from incsnap.binlog.buffer import Buffer
from incsnap.binlog.buffer_position import Advance, Contents, Cut, TailCondition
from incsnap.binlog.capture_options import CHANGES, CaptureOptions
from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.segments import Names
from incsnap.binlog.shared_buffer import SharedBuffer
from incsnap.binlog.slices import Slice
from incsnap.binlog.slicing import cut_slices
from incsnap.binlog.statement_search import StatementSearch
from incsnap.binlog.stream_reader import StreamReader
from incsnap.binlog.tail_thread import TailThread
from incsnap.errors import BinlogError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.tables import TableId

_log = logging.getLogger(__name__)


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
        self._names = Names(lambda table: table == signal_table or included(table))
        self.prepared = prepared or PreparedTransactions()
        self._buffer = Buffer(start, self._names, options)
        self._shared = SharedBuffer(self._buffer, queue_bytes)
        closed = self._shared.is_closed
        self._statements = StatementSearch(connect, server_id, options, closed)
        self._thread = TailThread(
            self._shared,
            partial(StreamReader, start, self._names, damaged, options, self.prepared),
            PreparedSearch(connect, server_id, self._names.included, self.prepared, damaged, closed),
            connect,
            server_id,
            heartbeat_seconds,
            reconnect_seconds,
        )

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def advance(
        self,
        start: StreamPosition,
        max_bytes: int,
        max_rows: int | None = None,
        until: tuple[str, int] | None = None,
        wait_seconds: float = 0.0,
    ) -> Advance:
        """Where the batch that begins at ``start`` can end: whole transactions within the limits, or the part of a
        larger one that is within them. A rows event is never divided. ``max_rows``: None for no limit of rows, which
        are not counted then.

        Without ``until``: as soon as there are rows events or schema changes. With it: as soon as the end is at or past
        that file and position, or the limits are reached. In any case after ``wait_seconds`` or when ``wake`` is
        called; then ``end`` still holds what was read of other tables, and the newest position, so that windows close
        on an idle server.
        """
        deadline = time.monotonic() + wait_seconds
        with self._shared.changed:
            while True:
                place = self._buffer.place_of(start)
                if place is not None:
                    cut = self._buffer.cut(place, max_bytes, max_rows, inside=self._shared.stalled)
                    end = self._dated(start, self._buffer.position_of(start, cut))
                    if self._is_worth_a_batch(end, cut, until, deadline):
                        return self._handed_out(end, cut)
                else:
                    self._shared.raise_failure()
                    if time.monotonic() >= deadline:
                        raise BinlogError(f"the tail has not come to {start.file}:{start.pos} yet")
                self._shared.wait_for_more(deadline, until, max_bytes)

    def _is_worth_a_batch(self, end: StreamPosition, cut: Cut, until: tuple[str, int] | None, deadline: float) -> bool:
        """Whether the batch is made now, up to where it can end; the failure is raised where that is nowhere."""
        shared = self._shared
        late = shared.woken or time.monotonic() >= deadline
        moved = cut.end != cut.start
        if not moved:
            shared.raise_failure()
        if late or (moved and (cut.full or shared.stalled or shared.failure is not None)):
            return True
        if until is not None:
            return end.reached(*until)
        contents = self._buffer.contents(cut.start, cut.end)
        return bool(contents.events or contents.changes)

    def condition(self) -> TailCondition:
        """How the tail is doing now."""
        with self._shared.changed:
            thread = self._thread
            return TailCondition(thread.is_connected, thread.reconnects, self._buffer.cost, self._shared.replaying)

    def wake(self) -> None:
        """Ends a wait in ``advance``, or the next one: there is something else to be done."""
        with self._shared.changed:
            self._shared.woken = True
            self._shared.changed.notify_all()

    def changes_behind(
        self, position: StreamPosition, until: tuple[str, int], wait_seconds: float
    ) -> tuple[SchemaChange, ...] | None:
        """Statements that changed tables from ``position`` on, which was handed out, at least up to ``until``; None
        while the tail has not read that far, waiting at most that long. A tail that waits for memory reads no further.
        """
        deadline = time.monotonic() + wait_seconds
        with self._shared.changed:
            if not self._shared.wait_until_read(until, deadline):
                return None
            place = self._buffer.place_of(position)
            return None if place is None else self._buffer.changes_behind(place)

    def all_changes_behind(
        self, position: StreamPosition, until: tuple[str, int], wait_seconds: float
    ) -> tuple[SchemaChange, ...] | None:
        """The same, also where memory is full before: then the binlog is read once more, for its statements alone."""
        changes = self.changes_behind(position, until, wait_seconds)
        if changes is None and self._shared.stalled:
            _log.info("looking for statements from %s:%d to %s:%d", position.file, position.pos, *until)
            return self._statements.behind(position, until)
        return changes

    def slices(self, start: StreamPosition, end: StreamPosition, parts: int, *, whole: bool = False) -> list[Slice]:
        """The kept events between two positions in at most ``parts`` slices; none where there are no events. ``whole``:
        no transaction is divided between slices.

        The same positions always give the same slices. After a restart the tail must have been started at ``start``;
        the call then waits until ``end`` was read again, and fails after 60 seconds without any progress.
        """
        with self._shared.changed:
            first, last = self._shared.replayed(start), self._shared.replayed(end)
            stretches = self._buffer.stretches(first, last)
        return cut_slices(stretches, self._names, parts, whole=whole)

    def contents(self, start: StreamPosition, end: StreamPosition) -> Contents:
        """What lies between two positions that ``slices`` can be asked for."""
        with self._shared.changed:
            first, last = self._shared.replayed(start), self._shared.replayed(end)
            return self._buffer.contents(first, last)

    def unnamed_maps(self, start: StreamPosition, end: StreamPosition) -> dict[TableId, set[bytes]]:
        """Return the table maps without names between two positions, behind their table ids, by table."""
        with self._shared.changed:
            first, last = self._shared.replayed(start), self._shared.replayed(end)
            return self._buffer.unnamed_maps(first, last)

    def forget(self, end: StreamPosition) -> None:
        """Free everything before ``end``: it will not be asked for again."""
        with self._shared.changed:
            self._buffer.forget(end)
            self._shared.changed.notify_all()

    def close(self) -> None:
        """End the thread and its connection; may be called twice."""
        self._thread.close()

    def _dated(self, start: StreamPosition, end: StreamPosition) -> StreamPosition:
        return end if end.at == start.at else replace(end, begun=self._thread.begun(end.at))

    def _handed_out(self, end: StreamPosition, cut: Cut) -> Advance:
        buffer = self._buffer
        contents = buffer.contents(cut.start, cut.end)
        signals: list[Slice] = []
        if self._signal_table is not None and self._signal_table in contents.tables:
            signals = cut_slices(buffer.stretches(cut.start, cut.end), self._names, 1, self._signal_table)
        buffer.remember(end, cut.end)
        buffer.hand_out(cut.end)
        self._shared.woken = False
        self._shared.changed.notify_all()
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
