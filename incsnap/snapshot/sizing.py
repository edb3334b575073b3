"""How many rows the next chunk is cut for: rows, bytes and time are all bounded.

Bytes bound the reader's memory and the window file; time bounds how long a window is open, and with it how many keys
are written down for it; rows bound both before anything is known about the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incsnap.snapshot.window import Window

#: How many times larger than the chunks that were read the next one is, at most: the largest follows the third.
_GROWTH = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """``parallelism``: chunks planned in one batch. ``windows``: windows in flight at most, this batch's included.
    ``cuts``: of the chunks planned in one batch, those whose border had to be found among further rows (up to 50 ms,
    which the batch waits for); the rest of a table costs a millisecond.
    ``small_windows``: windows over whole tables of less than ``small_rows`` rows, planned in one batch and in flight;
    they are counted by themselves. 0: no table is small.
    ``boundary_rows``: the border of a chunk of more rows is looked for beside the stream, and the chunk planned with
    the batch after; no batch waits for it, so it is none of ``cuts``.

    ``start_rows``, ``max_rows``: rows of the first and of the largest chunk. 2,500 is 2 MB of ordinary rows, 30 ms to
    read and to send: the first rows come soon, and it is small enough for a table nobody knows. 50,000 rows amortise
    the fixed costs of a chunk (a job, some round trips, a file, a manifest); its border is found in 25 ms, which the
    stream's batch waits for.
    ``target_bytes``: 32 MiB of values as they are read, and twice as many of records, so that two chunks at once stay
    far below a worker's memory.
    ``target_seconds``: of one SELECT.
    ``lease_ms``: a chunk of which nothing was heard for so long after it was planned is planned again. Three times what
    a chunk may take behind those that are in flight with it; a task that fails says so at once.
    ``held_batches``: batches that a window may wait for its high watermark after it was read. An idle stream passes it
    with the next batch, a busy one with the second or third.
    """

    parallelism: int = 2
    windows: int = 8
    start_rows: int = 2_500
    max_rows: int = 50_000
    target_bytes: int = 32 << 20
    target_seconds: float = 2.0
    lease_ms: int = 180_000
    held_batches: int = 256
    cuts: int = 1 << 30
    small_rows: int = 0
    small_windows: int = 0
    boundary_rows: int = 1 << 30

    @classmethod
    def configured(cls, chunk_size: int | None, parallelism: int = 2, windows: int = 0) -> Limits:
        """``chunk_size`` (incremental.snapshot.chunk.size) is then the first and the largest size."""
        windows = max(windows or 4 * parallelism, parallelism)
        if chunk_size is None:
            return cls(parallelism, windows)
        return cls(parallelism, windows, start_rows=chunk_size, max_rows=chunk_size)


def next_chunk_rows(present: int, read: Sequence[Window], limits: Limits) -> int:
    """The next chunk size after the chunks ``read`` (of one table, each with its reading, that arrived together).

    Grows at most fourfold in a batch, shrinks at once. Measured against what a chunk was cut for, not what it held:
    with a condition few rows may come of many that were looked at.
    """
    rows = float(limits.max_rows)
    for window in read:
        if window.reading is not None:
            rows = min(
                rows,
                window.rows * limits.target_bytes / max(window.reading.bytes, window.reading.record_bytes // 2, 1),
                window.rows * limits.target_seconds / max(window.reading.seconds, 1e-6),
            )
    grown = min(rows, _GROWTH * present if read else present)
    return max(1, min(int(grown), limits.max_rows))
