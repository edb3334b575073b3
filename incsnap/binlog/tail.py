"""The tail: a thread reads the binlog into a buffer, and the planner takes batches from it.

`advance` finds the end of the next batch, `slices` returns the events between two positions, and `forget` frees them.
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
from incsnap.binlog.segments import IdTable
from incsnap.binlog.shared_buffer import SharedBuffer
from incsnap.binlog.slices import Slice
from incsnap.binlog.slicing import cut_slices
from incsnap.binlog.statement_search import statements_behind
from incsnap.binlog.stream_reader import StreamReader
from incsnap.binlog.tail_thread import TailThread
from incsnap.errors import BinlogError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.tables import TableId

_log = logging.getLogger(__name__)


class Tail:
    """A reader that follows the binlog from `start` on.

    It is thread-safe. Call `close`, or use it as a context manager. `connect` opens a PyMySQL connection with
    REPLICATION SLAVE. `included` is called once per version of a table; the signal table is always included.
    `queue_bytes` bounds the memory besides batches that were handed out and not forgotten. If the server is away for
    more than `reconnect_seconds`, calls raise ServerUnreachable.

    After a failover, or if the server has begun its binlog anew, the stream continues in the other binlog:
    `server_uuid` of the positions changes. For `damaged`, `options` and `prepared` see StreamReader.
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
        self._ids = IdTable(lambda table: table == signal_table or included(table))
        self.prepared = prepared or PreparedTransactions()
        self._buffer = Buffer(start, self._ids, options)
        self._shared = SharedBuffer(self._buffer, queue_bytes)
        closed = self._shared.is_closed
        self._statements_behind = partial(statements_behind, connect, server_id, options, closed=closed)
        self._thread = TailThread(
            self._shared,
            partial(StreamReader, start, self._ids, damaged, options, self.prepared),
            PreparedSearch(connect, server_id, self._ids.included, self.prepared, damaged, closed),
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
        """Return the next batch, which begins at `start`: whole transactions within the limits, or a part of a larger
        one.

        A rows event is never divided. `max_rows=None` means no limit of rows, and rows are not counted then. Without
        `until`, return when there are rows events or statements. With `until`, return when the end has reached that
        file and position, or when a limit is reached. In any case return after `wait_seconds`, or when `wake` is
        called. The batch may then have no events. Its `end` still moves past transactions of excluded tables, so that
        the windows of snapshots can close on a server where only other tables change.

        Raise BinlogError if the stream does not come to `start` in `wait_seconds`. Raise the error that ended the
        reading when everything before it was returned.
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
                        raise BinlogError(f"the tail has not reached {start.file}:{start.pos} yet")
                self._shared.wait_for_more(deadline, until, max_bytes)

    def _is_worth_a_batch(self, end: StreamPosition, cut: Cut, until: tuple[str, int] | None, deadline: float) -> bool:
        """Return True if the batch should be made now, up to `end`.

        Raise the error that ended the reading if `cut` is empty.
        """
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
        """Return the present state of the connection and the buffer."""
        with self._shared.changed:
            connected = self._thread.is_connected
            disconnects = self._thread.connections - connected
            return TailCondition(connected, disconnects, self._buffer.cost, self._shared.replaying)

    def wake(self) -> None:
        """End the wait in `advance`, or the next one, because the caller has other work."""
        with self._shared.changed:
            self._shared.woken = True
            self._shared.changed.notify_all()

    def changes_behind(
        self, position: StreamPosition, until: tuple[str, int], wait_seconds: float
    ) -> tuple[SchemaChange, ...] | None:
        """Return the statements that changed tables from `position` on, at least up to `until`.

        Return None if the tail has not read that far after `wait_seconds`. A tail that waits for memory reads no
        further.
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
        """Return the same statements as `changes_behind`, even if memory is full before `until`.

        In that case the binlog is read once more, for its statements alone.
        """
        changes = self.changes_behind(position, until, wait_seconds)
        if changes is None and self._shared.stalled:
            _log.info("Looking for statements from %s:%d to %s:%d", position.file, position.pos, *until)
            return self._statements_behind(position, until)
        return changes

    def slices(self, start: StreamPosition, end: StreamPosition, parts: int, *, whole: bool = False) -> list[Slice]:
        """Return the kept events between two positions in at most `parts` slices, or no slice if there are no events.

        `whole`: no transaction is divided between slices. The same positions always give the same slices. After a
        restart the tail must begin at `start`. The call then waits until the stream was read up to `end`, and raises
        BinlogError after 60 seconds without progress.
        """
        with self._shared.changed:
            first, last = self._shared.replayed(start), self._shared.replayed(end)
            stretches = self._buffer.stretches(first, last)
        return cut_slices(stretches, self._ids, parts, whole=whole)

    def contents(self, start: StreamPosition, end: StreamPosition) -> Contents:
        """Return a summary of the events between two positions, as for `slices`."""
        with self._shared.changed:
            first, last = self._shared.replayed(start), self._shared.replayed(end)
            return self._buffer.contents(first, last)

    def unnamed_maps(self, start: StreamPosition, end: StreamPosition) -> dict[TableId, set[bytes]]:
        """Return the table maps without column names between two positions, by table.

        The planner compares its definitions with them. Each map is given as its body without the table id.
        """
        with self._shared.changed:
            first, last = self._shared.replayed(start), self._shared.replayed(end)
            return self._buffer.unnamed_maps(first, last)

    def forget(self, end: StreamPosition) -> None:
        """Free everything before `end`. The caller will not ask for it again."""
        with self._shared.changed:
            self._buffer.forget(end)
            self._shared.changed.notify_all()

    def close(self) -> None:
        """End the thread and its connection. A second call does nothing."""
        self._thread.close()

    def _dated(self, start: StreamPosition, end: StreamPosition) -> StreamPosition:
        """Return `end` with the time at which its file was begun."""
        return end if end.at == start.at else replace(end, begun=self._thread.reader.place.begun(end.at))

    def _handed_out(self, end: StreamPosition, cut: Cut) -> Advance:
        """Return the batch up to `end`, and note in the buffer that it was handed out."""
        buffer = self._buffer
        contents = buffer.contents(cut.start, cut.end)
        signals: list[Slice] = []
        if self._signal_table is not None and self._signal_table in contents.tables:
            signals = cut_slices(buffer.stretches(cut.start, cut.end), self._ids, 1, self._signal_table)
        buffer.remember(end, cut.end)
        buffer.hand_out(cut.end)
        self._shared.woken = False
        self._shared.changed.notify_all()
        return Advance(**vars(contents), end=end, signals=tuple(signals), full=cut.full)
