"""How many rows a snapshot of a table will read, as an interval. Pure.

Two witnesses. The server's statistics: MySQL's manual says that TABLE_ROWS of InnoDB may be wrong by 40 to 50 %
(https://dev.mysql.com/doc/refman/8.4/en/information-schema-tables-table.html). And, where the chunks are in the order
of a number, what was read so far together with how far the keys have come: that is exact in the end, and worth little
at first, because keys need not lie evenly. What is in flight is counted, so the interval closes as the table is read.
"""

from __future__ import annotations

from dataclasses import dataclass

#: TABLE_ROWS of InnoDB may be wrong by this share of the rows, either way.
_STATISTICS_ERROR = 0.5
#: Rows may lie so many times denser, or thinner, among the keys to come than among those that were read.
_UNEVEN = 2.0
#: Less of the range of keys than this says nothing about the rest.
_LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Expected:
    """Rows in all: ``low <= likely <= high``."""

    low: int
    likely: int
    high: int


def expected_rows(read: int, being_read: int, statistics: int | None, planned_share: float | None) -> Expected | None:
    """``read``: rows of windows, released or held; ``being_read``: rows that the others were cut for.

    ``statistics``: TABLE_ROWS, None where it is not known. ``planned_share``: of the
    range of keys, how much is read or being read, from 0 to 1; None where that cannot be told. None when there is no
    witness.
    """
    planned = read + being_read
    if planned_share is not None and planned_share >= 1:
        # No key is left to plan; by deletions chunks may have fewer rows than they were cut for.
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
    """How much of the range of keys lies up to ``planned``, all three as text of the first ordering column; 0 at the
    beginning, where ``planned`` is None. None where they are no numbers, and where the range is empty."""
    try:
        begin, end = float(least or ""), float(maximum or "")
        at = begin if planned is None else float(planned)
    except ValueError:
        return None
    # Not infinite: a key may be any text that float() reads.
    if not (begin <= at <= end and begin < end < float("inf")):
        return None
    return (at - begin) / (end - begin)
