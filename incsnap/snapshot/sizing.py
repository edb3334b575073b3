"""How many rows the next chunk is cut for: rows, bytes and time are all bounded.

Bytes bound the worker's memory and the buffer file; time bounds how long the stream's batch waits for its chunks;
rows bound both before anything is known about the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incsnap.snapshot.window import Window


@dataclass(frozen=True, slots=True)
class Limits:
    """``parallelism``: chunks read in one batch. ``windows``: windows in flight at most, those of this batch included.

    ``start_rows``, ``max_rows``: rows of the first and of the largest chunk. 10,000 is 8 MB of ordinary rows, a tenth
    of a second to read: small enough for a table nobody knows. 100,000 rows amortise the fixed costs of a chunk (two
    round trips, a file, a manifest) to nothing.
    ``target_bytes``: 64 MiB, so that two chunks at once stay far below a worker's memory while a batch is worth its
    fixed cost.
    ``target_seconds``: of one SELECT.
    """

    parallelism: int = 2
    windows: int = 8
    start_rows: int = 10_000
    max_rows: int = 100_000
    target_bytes: int = 64 << 20
    target_seconds: float = 2.0

    @classmethod
    def configured(cls, chunk_size: int | None, parallelism: int = 2, windows: int = 0) -> Limits:
        """``chunk_size`` (incremental.snapshot.chunk.size) is then the first and the largest size."""
        windows = max(windows or 4 * parallelism, parallelism)
        if chunk_size is None:
            return cls(parallelism, windows)
        return cls(parallelism, windows, start_rows=chunk_size, max_rows=chunk_size)


def next_chunk_rows(present: int, read: Sequence[Window], limits: Limits) -> int:
    """The next chunk size after the chunks ``read`` (all of one table and one batch, each with its reading).

    Grows at most twofold in a batch, shrinks at once. Measured against what a chunk was cut for, not what it held: with
    a condition few rows may come of many that were looked at.
    """
    wanted = float(limits.max_rows)
    for window in read:
        if window.reading is not None:
            wanted = min(
                wanted,
                window.rows * limits.target_bytes / max(window.reading.bytes, 1),
                window.rows * limits.target_seconds / max(window.reading.seconds, 1e-6),
            )
    grown = min(wanted, 2 * present if read else present)
    return max(1, min(int(grown), limits.max_rows))
