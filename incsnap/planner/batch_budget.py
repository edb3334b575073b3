"""The bounds of the next batch, from what the batches before it took: bytes of binlog, rows of windows, new chunks.

The bounds are in the memory of one planner and are never saved. A batch's offset says what the batch was given, so a
repeated batch is given the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from incsnap.checkpoint.progress import read_progress
from incsnap.config.settings import SnapshotSettings
from incsnap.planner.output_bound import OutputBound
from incsnap.snapshot.offset import Offset
from incsnap.snapshot.pacing import QUIET, ReleaseBudget
from incsnap.snapshot.sizing import Limits

#: Seconds without a change. After these nobody is expected to wait for a change.
_QUIET_SECONDS = 2.0
#: Rows that the chunks planned in one batch should have together; fewer while somebody writes. With a small
#: incremental.snapshot.chunk.size this means many chunks. A batch waits 20 to 30 ms for the border of each chunk,
#: unless the chunk alone has more rows than the smaller number.
_BATCH_ROWS, _BATCH_ROWS_BESIDE = 50_000, 10_000
#: Most chunks planned in one batch.
_MOST_CHUNKS = 64
#: Most rows of a small table. Many small tables are read together.
_SMALL_ROWS = 1_000
#: Most windows of small tables in flight; fewer while somebody writes. For each of them a batch waits about a
#: millisecond for the server's answers, and sends to another topic.
_SMALL, _SMALL_BESIDE = 256, 64


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """The batch that was planned last."""

    began: float  #: when it was planned, by `time.monotonic`
    budget: ReleaseBudget  #: the budget for window rows that it was planned by
    binlog_bytes: int  #: bytes of binlog that it takes
    released_bytes: int  #: bytes of window records that it sends
    #: bytes of keys and values that all batches before it have sent; None if it is too small to be measured
    output: int | None


class BatchBudget:
    """The pace of one planner: the bounds of its next batch.

    `root` is the folder with the job's progress. `readers` is the most chunks that are read at the same time.
    `query_seconds` is the most seconds that one SELECT may take.
    """

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
        # The last chunk of a table needs no border. So a batch may plan as many chunks as there may be windows.
        limits = replace(limits, parallelism=limits.windows, small_rows=_SMALL_ROWS, query_seconds=query_seconds)
        limits = replace(limits, first_windows=chunks)
        # A batch waits only for the border of a table's first chunk. Waiting for later borders would delay the first
        # chunk's rows (two borders of 10,000 rows beside two readers: 60 ms, in the batch that sends the first rows).
        limits = replace(limits, boundary_rows=_BATCH_ROWS_BESIDE if size else limits.start_rows)
        self._limits = replace(limits, cuts=chunks, small_windows=_SMALL)
        self._limits_beside = replace(limits, cuts=beside, small_windows=_SMALL_BESIDE)

    @property
    def is_quiet(self) -> bool:
        """Whether nobody has written for two seconds."""
        return time.monotonic() - self._written_at > _QUIET_SECONDS

    @property
    def reads_at_full_speed(self) -> bool:
        """Whether all readers may be busy: nobody writes, or the settings give the number of readers.

        A number in the settings is obeyed, whatever the readers do to the stream.
        """
        return self.is_quiet or self._threads_given

    @property
    def binlog_bytes(self) -> int:
        """Return how many bytes of binlog the next batch may take."""
        return self._bound.bytes

    @property
    def release_bytes(self) -> int:
        """Return how many bytes of window records the next batch may send."""
        return self._budget.bytes

    @property
    def _budget(self) -> ReleaseBudget:
        return self._quiet_budget if self.is_quiet else self._budget_beside

    @property
    def limits(self) -> Limits:
        """Return the limits for the chunks of the next batch."""
        return self._limits if self.reads_at_full_speed else self._limits_beside

    def changes_came(self) -> None:
        """Note that somebody writes."""
        self._written_at = time.monotonic()

    def begin(self, end: Offset, binlog_bytes: int) -> None:
        """Note the batch that ends at `end` and takes `binlog_bytes` of the binlog. It begins now."""
        released = sum(each.bytes for each in end.snapshot.released)
        output = read_progress(self._root).bytes if self._bound.is_worth_measuring(binlog_bytes) else None
        self._under_way = _UnderWay(time.monotonic(), self._budget, binlog_bytes, released, output)

    def measure(self) -> None:
        """Adapt the bounds to the batch under way, which is done by now. The next batch is about to be planned."""
        last, self._under_way = self._under_way, None
        if last is None:
            return
        last.budget.batch_took(time.monotonic() - last.began, last.released_bytes)
        if last.output is not None:
            output = read_progress(self._root).bytes - last.output - last.released_bytes
            self._bound.batch_gave(last.binlog_bytes, max(0, output))
