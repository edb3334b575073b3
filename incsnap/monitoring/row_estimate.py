"""An estimate of how many rows a snapshot of a table will read, as an interval. Pure.

The first source is the server's statistics. MySQL's manual says that TABLE_ROWS of InnoDB may be wrong by 40 to 50 %
(https://dev.mysql.com/doc/refman/8.4/en/information-schema-tables-table.html).

The second source is the keys, if the column that orders the chunks is a number. It uses the rows read so far and the
share of the key range that they cover. At the end this source is exact. At the beginning it is weak, because keys need
not be spread evenly.

Rows of chunks in flight count as known. So the interval closes as the table is read.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Greatest relative error of InnoDB's TABLE_ROWS, in both directions.
_STATISTICS_ERROR = 0.5
#: The remaining keys may be this many times denser or sparser than the keys that were read.
_UNEVEN = 2.0
#: A smaller share of the key range than this says nothing about the rest.
_LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Expected:
    """An interval of the number of rows of a whole table: `low <= likely <= high`."""

    low: int  #: least number that the sources allow
    likely: int  #: the best guess
    high: int  #: greatest number that the sources allow


def expected_rows(read: int, being_read: int, statistics: int | None, planned_share: float | None) -> Expected | None:
    """Return how many rows the table has, or None if neither statistics nor keys are known.

    `read` counts the rows of windows that were read, released or not. `being_read` counts the rows that the unread
    windows were planned for. `statistics` is TABLE_ROWS, or None if unknown. `planned_share` is the share of the key
    range (0 to 1) that is read or being read, or None if unknown.
    """
    planned = read + being_read
    if planned_share is not None and planned_share >= 1:
        # No key is left to plan. Chunks may have fewer rows than they were planned for, because rows were deleted.
        return Expected(read, planned, planned)
    by_statistics = by_keys = None
    if statistics is not None:
        low, high = statistics / (1 + _STATISTICS_ERROR), statistics / (1 - _STATISTICS_ERROR)
        by_statistics = tuple(max(0.0, rows - planned) for rows in (low, float(statistics), high))
    if planned_share is not None and planned_share >= _LEAST_SHARE:
        left = planned * (1 - planned_share) / planned_share
        by_keys = (left / _UNEVEN, left, left * _UNEVEN)
    if by_statistics and by_keys and planned_share is not None:
        likely = (1 - planned_share) * by_statistics[1] + planned_share * by_keys[1]
        low = min(likely, max(by_statistics[0], by_keys[0]))
        high = max(likely, min(by_statistics[2], by_keys[2]))
    elif by_statistics or by_keys:
        low, likely, high = by_statistics or by_keys or (0.0, 0.0, 0.0)
    else:
        return None
    return Expected(planned + int(low), planned + int(likely), planned + int(high))


def share_of_keys(least: str | None, planned: str | None, maximum: str | None) -> float | None:
    """Return which share (0 to 1) of the key range from `least` to `maximum` lies at or below `planned`.

    All three are text of the first ordering column. `planned` is None at the beginning of the table; the share is then
    0. Return None if a value is not a number, or if the range is empty.
    """
    try:
        begin, end = float(least or ""), float(maximum or "")
        at = begin if planned is None else float(planned)
    except ValueError:
        return None
    # float() also reads "inf" and "nan", and a key may be any text.
    if not (begin <= at <= end and begin < end < float("inf")):
        return None
    return (at - begin) / (end - begin)
