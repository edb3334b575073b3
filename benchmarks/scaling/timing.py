"""What some work took."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Of which the median is kept.
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds: of the clock, and of this process's threads."""

    elapsed: float
    processor: float


def median(runs: Sequence[Took]) -> Took:
    return Took(statistics.median(run.elapsed for run in runs), statistics.median(run.processor for run in runs))


def took(work: Callable[[], object]) -> Took:
    elapsed, processor = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - elapsed, time.process_time() - processor)
