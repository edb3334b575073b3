"""The budget for window rows: how many bytes of them a batch may send so that live changes keep their latency.

A batch takes a fixed time (Spark, the brokers), and more for every byte of windows that it sends. Changes that come
meanwhile wait for it: half of the running batch on average, then their own batch. The consumer also gets the window
rows of their batch before them. One batch in ten takes twice as long as most.

So the budget follows the measured time of the batches. It grows while batches take less than 2/7 of the target (1 /
`BATCHES`), and shrinks at once after a slower one.

While nobody writes, no change waits for a batch. So the planner keeps a second budget for such times, with a larger
target. With one budget for both, the first two batches after a writer began were sent with ten times the bytes that
fit: 27 and 10 MB. They took 0.4 s. These two batches alone decided p99 of a snapshot of 16 s.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Budget before anything is measured, and the smallest one: about 5,000 ordinary rows. They add about half to a batch's
#: fixed time of 60 ms, on a busy machine and on an idle one. With less, batches would hardly be quicker, and snapshots
#: would crawl. Measured beside 50 updates/s (p50, p99, thousand rows/s): 6 MiB 149 ms, -, 71; 4 MiB 130, 273, 54; 3 MiB
#: 116, 274, 47; 1.5 MiB 104, -, 18.
START_BYTES = LEAST_BYTES = 4 << 20
#: Most bytes of windows for a sink task, whatever the target: the task holds them in memory.
MOST_BYTES = 64 << 20
#: Factor for the target while nobody writes. The first change after a quiet time waits that long at most.
QUIET = 7
#: Batches that nine of ten changes take: the running one and their own, one of them twice as long as most. A snapshot
#: beside 50 updates/s read 51,000 rows/s with 4 (p50 109 ms, p99 509 ms), and 71,000 with 3 (142 and 677 ms).
BATCHES = 3.5
#: Largest factors by which the budget grows and shrinks from one batch to the next.
GROWTH, SHRINKAGE = 1.5, 0.4


@dataclass(slots=True)
class ReleaseBudget:
    """The budget of the next batch, in bytes."""

    #: seconds from commit to consumer for nine of ten changes; `QUIET` times the setting while nobody writes
    target_seconds: float
    bytes: int = START_BYTES  #: bytes of windows' records that the next batch may send

    def batch_took(self, seconds: float, released_bytes: int) -> None:
        """Adapt the budget to a batch that took `seconds` and sent `released_bytes` of windows' records.

        The budget grows only after a batch that used at least half of it, and shrinks only after one that sent window
        rows.
        """
        fitting = self.target_seconds / BATCHES / max(seconds, 0.001)
        if fitting < 1:
            # Something else may have made the batch slow, but only its window rows can be reduced.
            changed = self.bytes * max(fitting, SHRINKAGE) if released_bytes else self.bytes
        elif released_bytes >= self.bytes // 2:
            changed = self.bytes * min(fitting, GROWTH)
        else:
            changed = self.bytes
        self.bytes = int(min(max(changed, LEAST_BYTES), MOST_BYTES))
