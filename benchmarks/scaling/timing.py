"""A stopwatch for elapsed and processor time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Rounds of a measurement. Their median is kept.
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Took:
    """The seconds that some work took."""

    elapsed: float  #: by the clock
    processor: float  #: of all threads of this process


def median(runs: Sequence[Took]) -> Took:
    """Return the medians of elapsed and of processor seconds."""
    return Took(statistics.median(run.elapsed for run in runs), statistics.median(run.processor for run in runs))


def took(work: Callable[[], object]) -> Took:
    """Run `work` and return the seconds that it took."""
    elapsed, processor = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - elapsed, time.process_time() - processor)
