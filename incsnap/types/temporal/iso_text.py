"""ISO 8601 text of days, seconds and microseconds. A column's text is made as a matrix of characters."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import TextArray
from incsnap.columns.calendar import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY
from incsnap.columns.variable import Bools, Bytes, Ints, matrix, offsets_of, variable

_DOT, _Z, _T = ord("."), ord("Z"), ord("T")


def iso_dates(days: Ints, mask: Bools | None) -> TextArray:
    """Return texts such as `2024-01-02Z`. `mask`: False for null; None: there is no null."""
    text = np.full((len(days), 11), _Z, np.uint8)
    text[:, :10] = _dates(days)
    return matrix(text.reshape(-1), len(days), 11, pa.string(), mask)


def iso_moments(micros: Ints, fraction: int, mask: Bools | None) -> TextArray:
    """Return texts such as `2024-01-01T00:00:00Z`, or `2024-01-01T00:00:00.500Z` with 3 digits of `fraction`."""
    n, seconds = len(micros), micros // MICROSECONDS_PER_SECOND
    width = 20 + (fraction + 1 if fraction else 0)
    text = np.empty((n, width), np.uint8)
    _date_and_clock(text, seconds)
    if fraction:
        text[:, 19] = _DOT
        write_digits(text, 20, (micros - seconds * MICROSECONDS_PER_SECOND) // 10 ** (6 - fraction), fraction)
    text[:, -1] = _Z
    return matrix(text.reshape(-1), n, width, pa.string(), mask)


def shortest_iso(micros: Ints, mask: Bools | None, *, with_date: bool) -> TextArray:
    """Return texts with as many digits of fraction as each value needs, none for whole seconds."""
    n, start = len(micros), 19 if with_date else 8
    seconds = micros // MICROSECONDS_PER_SECOND
    text = np.empty((n, start + 8), np.uint8)
    if with_date:
        _date_and_clock(text, seconds)
    else:
        text[:, :8] = _clock()[seconds % SECONDS_PER_DAY]
    part = micros - seconds * MICROSECONDS_PER_SECOND
    text[:, start] = _DOT
    write_digits(text, start + 1, part, 6)
    text[:, -1] = _Z
    used = np.full(n, 7, np.int64)
    for digits in range(1, 7):
        used -= part % 10**digits == 0
    used[part == 0] = 0
    place = np.arange(7)
    keep = np.ones((n, start + 8), np.bool_)
    keep[:, start : start + 7] = place < used[:, None]
    return variable(offsets_of(start + 1 + used), text[keep], pa.string(), mask)


def _date_and_clock(text: Bytes, seconds: Ints) -> None:
    days = seconds // SECONDS_PER_DAY
    text[:, :10] = _dates(days)
    text[:, 10] = _T
    text[:, 11:19] = _clock()[seconds - days * SECONDS_PER_DAY]


def write_digits(text: Bytes, start: int, number: Ints, count: int) -> None:
    """Write the last `count` decimal digits of each number into a matrix of characters, with leading zeros.

    Row i of `text` belongs to `number[i]`. The digits go to the columns from `start` on.
    """
    for place in range(start + count - 1, start - 1, -1):
        following = number // 10
        text[:, place] = number - following * 10 + ord("0")
        number = following


def _dates(days: Ints) -> Bytes:
    """Return `YYYY-MM-DD` of each day.

    A table of all days from the first to the last is used if it has fewer days than there are values. Otherwise (a few
    rows that are years apart) each distinct day is written.
    """
    if not len(days):
        return np.zeros((0, 10), np.uint8)
    first, last = int(days.min()), int(days.max())
    if last - first < len(days):
        return _written(np.arange(first, last + 1))[days - first]
    distinct, place = np.unique(days, return_inverse=True)
    return _written(distinct)[place]


def _written(days: npt.NDArray[Any]) -> Bytes:
    text: Bytes = days.astype("datetime64[D]").astype("S10").view(np.uint8).reshape(-1, 10)
    return text


@functools.cache
def _clock() -> Bytes:
    """Return `HH:MM:SS` of each second of a day (691 KB)."""
    return (
        np.arange(SECONDS_PER_DAY).astype("datetime64[s]").astype("S19").view(np.uint8).reshape(-1, 19)[:, 11:].copy()
    )
