"""Dates and times of day in whole columns, for both sources: year, month, day in, days since 1970-01-01 out.

What is not a date of the proleptic Gregorian calendar with a year of 1 or more has no number: 0000-00-00, 2024-00-10,
0000-05-05, and 2024-02-31 (ALLOW_INVALID_DATES) are all "not valid".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incsnap.columns.packets import Mask

#: Months 1 to 12 at their number; 0 and 13 to 15 (what four bits may hold) have no days.
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0], np.int64)
_DAYS_BEFORE_1970 = 719468

MICROSECONDS_PER_SECOND = 1_000_000
SECONDS_PER_DAY = 86_400


def days(year: NDArray[np.int64], month: NDArray[np.int64], day: NDArray[np.int64]) -> tuple[NDArray[np.int64], Mask]:
    """Days since 1970-01-01, and whether each is a real date; where not, the number is 0. Months must be in 0..15."""
    leap = (year & 3 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    valid = (year > 0) & (day > 0) & (day <= _MONTH_DAYS[month] + (leap & (month == 2)))
    # Years that begin in March put the leap day last: the days before a month are then a straight line.
    shifted = year - (month <= 2)
    from_march = (month + 9) % 12
    century = shifted // 100
    count = 365 * shifted + (shifted >> 2) - century + (century >> 2)
    count += (153 * from_march + 2) // 5 + day - 1 - _DAYS_BEFORE_1970
    count *= valid
    return count, valid
