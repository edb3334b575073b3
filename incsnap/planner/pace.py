"""What one batch may take on, by what the batches before it took: binlog, rows of windows, new chunks.

Memory of one planner's life, never saved: what a batch was given is in its offset, and a replay is given the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from incsnap.checkpoint.progress import read_progress
from incsnap.config.snapshot_settings import SnapshotSettings
from incsnap.planner.output_bound import OutputBound
from incsnap.snapshot.offset import Offset
from incsnap.snapshot.pacing import QUIET, ReleaseBudget
from incsnap.snapshot.sizing import Limits

#: Seconds without a change after which nobody is thought to wait for one.
_QUIET_SECONDS = 2.0
#: Rows that the chunks planned in one batch should have together: with a small incremental.snapshot.chunk.size it
#: plans many. While somebody writes, fewer: each chunk needs its border, which the batch waits for (20 to 30 ms); not
#: for that of a chunk which has more rows by itself.
_BATCH_ROWS, _BATCH_ROWS_BESIDE = 50_000, 10_000
_MOST_CHUNKS = 64
#: A table of fewer rows is one of the small ones, of which many are read together.
_SMALL_ROWS = 1_000
#: Of these in flight. A batch waits for the server's answers about them, about a millisecond each, and sends to as many
#: topics.
_SMALL, _SMALL_BESIDE = 256, 64


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """The batch planned last. ``budget``: by which it was planned. ``output``: of all batches before it, where it is
    large enough to be measured."""

    began: float
    budget: ReleaseBudget
    binlog_bytes: int
    released_bytes: int
    output: int | None


class Pace:
    """The bounds of the next batch. ``readers``: chunks read at the same time. ``root``: where the job keeps its
    progress. ``query_seconds``: what one SELECT may take at most."""

    def __init__(self, settings: SnapshotSettings, root: str, readers: int, query_seconds: float = 600.0) -> None:
        self._root = root
        target_seconds = settings.latency_target_ms / 1000
        self._quiet_budget, self._budget_beside = ReleaseBudget(QUIET * target_seconds), ReleaseBudget(target_seconds)
        self._bound = OutputBound()
        self._under_way: _UnderWay | None = None
        self._written_at = 0.0
        self._threads_given = settings.threads is not None
        size = settings.chunk_size
        chunks = max(readers, min(_MOST_CHUNKS, _BATCH_ROWS // size)) if size else readers
        limits = Limits.configured(size, chunks)
        beside = max(1, _BATCH_ROWS_BESIDE // size) if size else 1
        # The ends of large tables need no border: as many as there may be windows.
        limits = replace(limits, parallelism=limits.windows, small_rows=_SMALL_ROWS, query_seconds=query_seconds)
        limits = replace(limits, first_windows=chunks)
        # Only a table's first chunk is worth the wait for its border: those behind it would keep its rows waiting
        # (two borders of 10,000 rows beside two readers: 60 ms, in the batch that sends the first rows).
        limits = replace(limits, boundary_rows=_BATCH_ROWS_BESIDE if size else limits.start_rows)
        self._limits = replace(limits, cuts=chunks, small_windows=_SMALL)
        self._limits_beside = replace(limits, cuts=beside, small_windows=_SMALL_BESIDE)

    @property
    def is_quiet(self) -> bool:
        """Has nobody written for a while?"""
        return time.monotonic() - self._written_at > _QUIET_SECONDS

    @property
    def reads_at_full_speed(self) -> bool:
        """May all readers be busy? Where nobody writes; and where their number was asked for, whatever that does to the
        stream."""
        return self.is_quiet or self._threads_given

    @property
    def binlog_bytes(self) -> int:
        return self._bound.bytes

    @property
    def release_bytes(self) -> int:
        return self._budget.bytes

    @property
    def _budget(self) -> ReleaseBudget:
        return self._quiet_budget if self.is_quiet else self._budget_beside

    @property
    def limits(self) -> Limits:
        return self._limits if self.reads_at_full_speed else self._limits_beside

    def changes_came(self) -> None:
        self._written_at = time.monotonic()

    def begin(self, end: Offset, binlog_bytes: int) -> None:
        """The batch that ends at ``end`` is planned."""
        released = sum(each.bytes for each in end.snapshot.released)
        output = read_progress(self._root).bytes if self._bound.is_worth_measuring(binlog_bytes) else None
        self._under_way = _UnderWay(time.monotonic(), self._budget, binlog_bytes, released, output)

    def measure(self) -> None:
        """The batch under way is done: the next is about to be planned."""
        last, self._under_way = self._under_way, None
        if last is None:
            return
        last.budget.batch_took(time.monotonic() - last.began, last.released_bytes)
        if last.output is not None:
            output = read_progress(self._root).bytes - last.output - last.released_bytes
            self._bound.batch_gave(last.binlog_bytes, max(0, output))
