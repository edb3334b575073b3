"""Dates of whole columns: year, month and day in, days since 1970-01-01 out.

A real date is a date of the proleptic Gregorian calendar with a year of 1 to 9999. All other dates have no number:
0000-00-00, 2024-00-10, 0000-05-05 and 2024-02-31 (ALLOW_INVALID_DATES).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incsnap.columns.packets import Mask

MICROSECONDS_PER_SECOND = 1_000_000
SECONDS_PER_DAY = 86_400

_LAST_YEAR = 9999
#: Two tables by year * 12 + month - 1, from year 0 on: the day number of the month's first day (480 KB), and how many
#: days the month has. Looking them up takes half the time of computing them.
_MONTHS = np.arange("0000-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
_MONTH_DAYS = np.diff(_MONTHS)


def days(year: NDArray[Any], month: NDArray[Any], day: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """Return the days since 1970-01-01, and a mask of the real dates. The number of a date that is not real means
    nothing.

    Arguments and days are integers of any size.
    """
    which = year * 12 + (month - 1)
    real = (year > 0) & (year <= _LAST_YEAR) & (month > 0) & (month <= 12)
    real &= (day > 0) & (day <= _MONTH_DAYS.take(which, mode="clip"))
    return _MONTHS.take(which, mode="clip") + (day - 1), real
