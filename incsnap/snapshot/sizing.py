"""The size of chunks: how many rows the next chunk of a table is planned for.

Rows, bytes and time are limited. Bytes limit the reader's memory and the window file. Time limits how long a window is
open, and so how many keys are written down for it. Rows limit both before anything is known about the table.

A SELECT has a fixed cost (a subquery in the condition, a distant server) and a cost for each row. The times of two
chunks of different sizes show both. A chunk aims at `target_seconds` in all. If the fixed cost takes more than half of
that, the rows may take as long as the fixed cost, so that at most half of the time is wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incsnap.snapshot.window import ChunkTime, Window

#: Factor by which the next chunk may be larger than the chunks that were read. At 4 the third chunk of a table is
#: followed by one of the largest size.
_GROWTH = 4
#: Factor between two chunk sizes from which on their times show the fixed cost of a SELECT.
_APART = 1.5
#: Factor of time from which on the server counts as slower: a smaller chunk took so many times as long as a larger one
#: before. The time of the larger one is then ignored.
_SLOWER = 2.0
#: Seconds that a table's first SELECTs may take: ten times what a chunk aims at.
FIRST_SELECT_SECONDS = 20.0


def select_seconds(doublings: int, most: float) -> float:
    """Return how many seconds a chunk's SELECT may take.

    `doublings` is how often the limit is doubled, because earlier chunks of the table reached it. `most` is
    `database.query.timeout.ms` in seconds.

    >>> [select_seconds(doublings, 60.0) for doublings in range(3)]
    [20.0, 40.0, 60.0]
    """
    return min(most, FIRST_SELECT_SECONDS * 2.0 ** min(doublings, 32))


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on sizes and numbers of chunks."""

    parallelism: int = 2  #: chunks that one batch may plan, apart from whole small tables
    windows: int = 8  #: windows in flight, apart from whole small tables; those that the batch plans are included
    #: Rows of a table's first chunk. 2,500 ordinary rows are 2 MB and take 30 ms to read and send. So the first rows
    #: come soon, and the chunk is small enough for an unknown table.
    start_rows: int = 2_500
    #: Rows of the largest chunk. 50,000 rows are worth the fixed cost of a chunk (a job, some round trips, a file, a
    #: manifest). Their boundary is found in 25 ms, for which the stream's batch may wait.
    max_rows: int = 50_000
    #: Bytes of a chunk's values as they are read; its records may have twice as many. With 32 MiB two chunks at once
    #: stay far below a worker's memory.
    target_bytes: int = 32 << 20
    target_seconds: float = 2.0  #: seconds that a SELECT aims at
    #: Batches that a window may wait for its high watermark after it was read. An idle stream passes it with the next
    #: batch, a busy one with the second or third.
    held_batches: int = 256
    #: Boundaries that one batch may wait for, up to 50 ms each. A chunk that is the rest of a table needs no boundary
    #: and costs 1 ms.
    cuts: int = 1 << 30
    small_rows: int = 0  #: rows of the largest small table, which is read as one chunk; 0: no table is small
    #: Whole small tables in flight. Windows over them are counted apart from `windows`. A chunk of a larger table never
    #: counts as small, however few rows it has.
    small_windows: int = 0
    first_windows: int = 1 << 30  #: windows of one table in flight before its first chunk is read
    #: Rows of the largest chunk for whose boundary a batch waits. The planner looks for that of a larger chunk beside
    #: the stream, and a later batch plans the chunk. Such a boundary does not count in `cuts`.
    boundary_rows: int = 1 << 30
    least_rows: int = 50  #: rows below which time makes no chunk smaller; bytes may
    query_seconds: float = 600.0  #: seconds that a SELECT may take at most

    @classmethod
    def configured(cls, chunk_size: int | None, parallelism: int = 2, windows: int = 0) -> Limits:
        """Return the limits for `incremental.snapshot.chunk.size`, which becomes both the first and the largest size.

        `chunk_size` None stands for the default sizes. `windows` 0 stands for four times `parallelism`.
        """
        windows = max(windows or 4 * parallelism, parallelism)
        if chunk_size is None:
            return cls(parallelism, windows)
        return cls(parallelism, windows, start_rows=chunk_size, max_rows=chunk_size)


def measured_times(before: Sequence[ChunkTime], read: Sequence[Window]) -> tuple[ChunkTime, ...]:
    """Return the times of the last two chunks whose sizes differ enough, the newest last.

    `before` are the times so far, and `read` the windows that were read since.
    """
    times = list(before)
    for window in read:
        if window.result is None:
            continue
        newest = ChunkTime(max(1, window.rows), round(window.result.seconds, 6))
        if times and max(newest.rows, times[-1].rows) < _APART * min(newest.rows, times[-1].rows):
            times.pop()
        times.append(newest)
    return tuple(times[-2:])


def rows_in_time(times: Sequence[ChunkTime], target_seconds: float) -> float:
    """Return how many rows a chunk may have for its time, from the times of chunks of one size or of two.

    In the first example a row takes 4 ms and there is no fixed cost. In the second one a row takes 1 ms and the fixed
    cost is 3 s, more than the target; so the rows may take 3 s, too.

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
    """Return how many rows the table's next chunk is planned for, after the chunks `read`, which arrived together.

    `present` is the present size. `times` are the times of the table's chunks, with these. The size grows at most
    fourfold and shrinks at once. It is compared with the rows that a chunk was planned for, not with those it had: with
    a condition few rows may come of many that were read. Time makes no chunk smaller than `limits.least_rows`, because
    a SELECT with a high fixed cost would otherwise shrink its chunks to a single row.
    """
    rows = float(limits.max_rows)
    if times:
        least = min(limits.least_rows, limits.start_rows)
        rows = min(rows, max(least, rows_in_time(times, limits.target_seconds)))
    for window in read:
        if window.result is not None:
            size = max(window.result.bytes, window.result.record_bytes // 2, 1)
            rows = min(rows, window.rows * limits.target_bytes / size)
    grown = min(rows, _GROWTH * present if read else present)
    return max(1, min(int(grown), limits.max_rows))
