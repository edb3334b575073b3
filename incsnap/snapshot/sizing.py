"""How many rows the next chunk is cut for: rows, bytes and time are all bounded.

Bytes bound the reader's memory and the window file; time bounds how long a window is open, and with it how many keys
are written down for it; rows bound both before anything is known about the table.

A SELECT has a cost of its own (a subquery in the condition, a server far away) and a cost for each row. Two chunks of
different sizes tell them apart. A chunk aims at `target_seconds` in all; where the SELECT's own cost takes more than
half of that, the rows may take as long again, so that no more than half of the time is wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incsnap.snapshot.window import ChunkTime, Window

#: How many times larger than the chunks that were read the next one is, at most: the largest follows the third.
_GROWTH = 4
#: Sizes tell the cost of a SELECT from that of its rows where one is so many times the other.
_APART = 1.5
#: A smaller chunk that took so many times as long as a larger one before: the server has become slower since, and the
#: time of the larger one says nothing any more.
_SLOWER = 2.0
#: Seconds that a chunk's SELECT may take at first: ten times what a chunk aims at.
FIRST_SELECT_SECONDS = 20.0


def select_seconds(doublings: int, most: float) -> float:
    """Return how many seconds a chunk's SELECT may take.

    `doublings`: how often the time ran out for chunks of the table. `most`: `database.query.timeout.ms`.

    >>> [select_seconds(doublings, 60.0) for doublings in range(3)]
    [20.0, 40.0, 60.0]
    """
    return min(most, FIRST_SELECT_SECONDS * 2.0 ** min(doublings, 32))


@dataclass(frozen=True, slots=True)
class Limits:
    """``parallelism``: chunks planned in one batch. ``windows``: windows in flight at most, this batch's included.
    ``cuts``: of the chunks planned in one batch, those whose border had to be found among further rows (up to 50 ms,
    which the batch waits for); the rest of a table costs a millisecond.
    ``small_windows``: windows over whole tables of at most ``small_rows`` rows, planned in one batch and in flight;
    they are counted by themselves. 0: no table is small. A chunk of a larger table never counts as small, however few
    rows it has.
    ``first_windows``: windows of one table in flight until its first chunk was read.
    ``boundary_rows``: the border of a chunk of more rows is looked for beside the stream, and the chunk planned with
    the batch after; no batch waits for it, so it is none of ``cuts``.

    ``start_rows``, ``max_rows``: rows of the first and of the largest chunk. 2,500 is 2 MB of ordinary rows, 30 ms to
    read and to send: the first rows come soon, and it is small enough for a table nobody knows. 50,000 rows amortise
    the fixed costs of a chunk (a job, some round trips, a file, a manifest); its border is found in 25 ms, which the
    stream's batch waits for.
    ``least_rows``: rows below which time alone makes no chunk smaller; bytes do.
    ``target_bytes``: 32 MiB of values as they are read, and twice as many of records, so that two chunks at once stay
    far below a worker's memory.
    ``target_seconds``: of one SELECT. ``query_seconds``: what one SELECT may take at most.
    ``held_batches``: batches that a window may wait for its high watermark after it was read. An idle stream passes it
    with the next batch, a busy one with the second or third.
    """

    parallelism: int = 2
    windows: int = 8
    start_rows: int = 2_500
    max_rows: int = 50_000
    target_bytes: int = 32 << 20
    target_seconds: float = 2.0
    held_batches: int = 256
    cuts: int = 1 << 30
    small_rows: int = 0
    small_windows: int = 0
    first_windows: int = 1 << 30
    boundary_rows: int = 1 << 30
    least_rows: int = 50
    query_seconds: float = 600.0

    @classmethod
    def configured(cls, chunk_size: int | None, parallelism: int = 2, windows: int = 0) -> Limits:
        """Return the limits for ``incremental.snapshot.chunk.size``, which is then the first and the largest size."""
        windows = max(windows or 4 * parallelism, parallelism)
        if chunk_size is None:
            return cls(parallelism, windows)
        return cls(parallelism, windows, start_rows=chunk_size, max_rows=chunk_size)


def measured_times(before: Sequence[ChunkTime], read: Sequence[Window]) -> tuple[ChunkTime, ...]:
    """Return the newest times of two sizes that are apart, the newest last, after the chunks ``read``."""
    times = list(before)
    for window in read:
        if window.reading is None:
            continue
        newest = ChunkTime(max(1, window.rows), round(window.reading.seconds, 6))
        if times and max(newest.rows, times[-1].rows) < _APART * min(newest.rows, times[-1].rows):
            times.pop()
        times.append(newest)
    return tuple(times[-2:])


def rows_in_time(times: Sequence[ChunkTime], target_seconds: float) -> float:
    """Return how many rows a chunk may have for its time, by the times of one size or of two.

    >>> round(rows_in_time([ChunkTime(500, 2.0), ChunkTime(1_000, 4.0)], 2.0))
    500
    >>> round(rows_in_time([ChunkTime(500, 3.5), ChunkTime(1_000, 4.0)], 2.0))
    3000
    """
    newest = times[-1]
    each = newest.seconds / newest.rows
    own = 0.0
    if len(times) > 1:
        older = times[0]
        slope = (newest.seconds - older.seconds) / (newest.rows - older.rows)
        is_outdated = older.rows > newest.rows and newest.seconds > _SLOWER * older.seconds
        if not is_outdated and newest.seconds > slope * newest.rows:
            each = max(0.0, slope)
            own = newest.seconds - each * newest.rows
    return max(target_seconds - own, own) / max(each, 1e-12)


def next_chunk_rows(present: int, times: Sequence[ChunkTime], read: Sequence[Window], limits: Limits) -> int:
    """Return how many rows the next chunk is cut for, after the chunks ``read`` of one table, which arrived together.

    ``times``: those of the table's chunks, these included. Grows at most fourfold, shrinks at once. Measured against
    what a chunk was cut for, not what it held: with a condition few rows may come of many that were looked at. Time
    alone makes no chunk smaller than ``limits.least_rows``: a SELECT with a high cost of its own would otherwise shrink
    its chunks to a single row.
    """
    rows = float(limits.max_rows)
    if times:
        least = min(limits.least_rows, limits.start_rows)
        rows = min(rows, max(least, rows_in_time(times, limits.target_seconds)))
    for window in read:
        if window.reading is not None:
            size = max(window.reading.bytes, window.reading.record_bytes // 2, 1)
            rows = min(rows, window.rows * limits.target_bytes / size)
    grown = min(rows, _GROWTH * present if read else present)
    return max(1, min(int(grown), limits.max_rows))
