"""Statistics of the lags of batches, with the values of Debezium's `StreamingStatisticsMXBean`.

Debezium takes one lag per event and counts it in a DDSketch with a relative error of 1 %, since the connector's start.
`LagSketch` takes one lag per batch. Its memory does not grow with the number of batches: a lag falls into one of some
1,150 counters for lags up to four months. https://arxiv.org/abs/1908.10693
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

_ERROR = 0.01
#: The quotient of the limits of a counter. Each lag of a counter differs from `_middle` by 1 % at most.
_GAMMA = (1 + _ERROR) / (1 - _ERROR)
#: The counter of a lag of 0 ms, which has no logarithm. The smallest other lag is 1 ms and has the counter 0.
_ZERO = -1


@dataclass(frozen=True, slots=True)
class LagStatistics:
    """Statistics of the lags of batches, in milliseconds."""

    min_ms: int  #: the smallest lag
    max_ms: int  #: the largest lag
    average_ms: float  #: the mean of all lags
    p50_ms: float  #: the median; percentiles are right within 1 %
    p95_ms: float  #: 95 % of the lags are not larger
    p99_ms: float  #: 99 % of the lags are not larger


class LagSketch:
    """A collector of lags that knows their percentiles within 1 %."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._number = self._sum = self._max = 0
        self._min = math.inf

    def add(self, lag_ms: int) -> None:
        """Add the lag of one batch, in milliseconds, not below 0."""
        self._counts[math.ceil(math.log(lag_ms, _GAMMA)) if lag_ms else _ZERO] += 1
        self._number += 1
        self._sum += lag_ms
        self._min, self._max = min(self._min, lag_ms), max(self._max, lag_ms)

    def statistics(self) -> LagStatistics | None:
        """Return the statistics of all lags; None before the first one."""
        if not self._number:
            return None
        low, high = int(self._min), self._max
        p50, p95, p99 = (min(max(self._percentile(share), low), high) for share in (0.5, 0.95, 0.99))
        return LagStatistics(low, high, self._sum / self._number, p50, p95, p99)

    def _percentile(self, share: float) -> float:
        counters = sorted(self._counts)
        rank = share * (self._number - 1)
        totals = accumulate(self._counts[each] for each in counters)
        return next(_middle(each) for each, total in zip(counters, totals, strict=True) if total > rank)


def _middle(counter: int) -> float:
    """Return the lag that stands for all lags of a counter."""
    return 0.0 if counter == _ZERO else 2 * _GAMMA**counter / (_GAMMA + 1)
