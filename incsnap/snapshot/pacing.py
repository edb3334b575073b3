"""How much of windows a batch may send: as much as lets live changes keep to their latency.

A batch takes a fixed time (Spark, the brokers), and more for every byte of windows that it sends; the changes that come
meanwhile wait for it: half of a batch on average, then the whole of their own, and then the consumer has the snapshot's
rows before them; and one batch in ten takes twice as long as most. So the budget follows the measured time of the
batches: it grows while they are quicker than two sevenths of the target and shrinks at once when one was slower. When
nobody writes, nobody waits: that time has a budget of its own, with a looser target. One for both gave the first two
batches beside a writer ten times what they may send (27 and 10 MB, 0.4 s: all of p99 of a snapshot of 16 s).
"""

from __future__ import annotations

from dataclasses import dataclass

#: Before anything was measured, and never less: some 5,000 ordinary rows. They add about half to a batch's fixed time
#: (60 ms), on a machine that is busy as on one that is not; with less it would be little quicker, and snapshots would
#: crawl (p50, p99 and rows/s beside 50 updates/s: 6 MiB 149 ms, 71 thousand; 4 MiB 130, 273, 54; 3 MiB 116, 274, 47;
#: 1.5 MiB 104, 18).
START_BYTES = LEAST_BYTES = 4 << 20
#: What a sink task may be given of windows whatever the target: it holds them in memory.
MOST_BYTES = 64 << 20
#: Times the target, while nobody writes. The first change after a quiet time waits that long at the most.
QUIET = 7
#: Batches that nine of ten changes take: that under way and its own, one of them twice as long as most. With 4 a
#: snapshot beside 50 updates/s read 51 thousand rows/s at p50 109 and p99 509 ms, with 3 71 thousand at 142 and 677.
BATCHES = 3.5
#: A batch grows by so much over the one before, at most, and shrinks to so much of it.
GROWTH, SHRINKAGE = 1.5, 0.4


@dataclass(slots=True)
class ReleaseBudget:
    """``target_seconds``: from commit to consumer, for nine of ten changes; while nobody writes, ``QUIET`` times that
    of the settings. ``bytes``: the next batch's budget."""

    target_seconds: float
    bytes: int = START_BYTES

    def batch_took(self, seconds: float, released_bytes: int) -> None:
        """``released_bytes``: of windows' records that it sent."""
        fitting = self.target_seconds / BATCHES / max(seconds, 0.001)
        if fitting < 1:
            # What made it slow may be something else; only what it sent of windows can be made less.
            changed = self.bytes * max(fitting, SHRINKAGE) if released_bytes else self.bytes
        elif released_bytes >= self.bytes // 2:
            changed = self.bytes * min(fitting, GROWTH)
        else:
            changed = self.bytes
        self.bytes = int(min(max(changed, LEAST_BYTES), MOST_BYTES))
