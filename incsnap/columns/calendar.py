"""Dates of whole columns, wherever they were read: year, month, day in, days since 1970-01-01 out.

What is not a date of the proleptic Gregorian calendar with a year of 1 to 9999 has no number: 0000-00-00, 2024-00-10,
0000-05-05, and 2024-02-31 (ALLOW_INVALID_DATES) are all "not real".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incsnap.columns.packets import Mask

MICROSECONDS_PER_SECOND = 1_000_000
SECONDS_PER_DAY = 86_400

_LAST_YEAR = 9999
#: Days since 1970-01-01 of the first of each month, by year * 12 + month - 1 from the year 0 on (480 KB), and the days
#: of each month. Looking them up takes half the time of computing them.
_MONTHS = np.arange("0000-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
_MONTH_DAYS = np.diff(_MONTHS)


def days(year: NDArray[Any], month: NDArray[Any], day: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Days since 1970-01-01, and whether each is a real date; where not, the number means nothing. All are integers of
    any size, and so are the days.
    """
    which = year * 12 + (month - 1)
    real = (year > 0) & (year <= _LAST_YEAR) & (month > 0) & (month <= 12)
    real &= (day > 0) & (day <= _MONTH_DAYS.take(which, mode="clip"))
    return _MONTHS.take(which, mode="clip") + (day - 1), real
