"""Dates and times in each form of ``time.precision.mode``, as numbers or ISO 8601 text.

    mode                          DATE                    TIME         DATETIME
    adaptive_time_microseconds    days                    µs           ms up to 3 digits of fraction, else µs
    microseconds, nanoseconds     days                    µs, ns       µs, ns
    connect                       days                    ms           ms
    isostring                     2024-01-02Z             03:04:05.6Z  2024-01-02T03:04:05.6Z

TIMESTAMP is text in UTC in all of them, with exactly the column's digits of fraction; ISO text has the digits it needs.
A value that is null although its column is NOT NULL was a zero date; Debezium writes the epoch for it. Years of two
digits are moved into 1970 to 2069 unless ``Modes.time_adjuster`` is off.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-temporal-types
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.types.modes import Modes
from incsnap.types.variable import Bools, Bytes, Ints, fixed, matrix, offsets_of, valid, variable

_DAY = 86_400
_SECOND_US = 1_000_000
_DAY_US = _DAY * _SECOND_US
#: Microseconds whose nanoseconds fit an int64: 1677-09-21 to 2262-04-11.
_MOST_FOR_NANOS = (2**63 - 1) // 1000
#: Days since 1970-01-01 of the first day of the years 70 and 100; days in 2000 and in (those) 1900 years.
_YEAR_70, _YEAR_100, _2000_YEARS, _1900_YEARS = -693_960, -683_003, 730_485, 693_960
_EPOCH_ISO = "1970-01-01T00:00:00Z"
_DOT, _Z, _T = ord("."), ord("Z"), ord("T")


def dates(values: Any, nullable: bool, modes: Modes) -> Any:
    values = _adjusted(_real(values, nullable), 1, modes)
    if modes.time_precision != "isostring":
        return values.cast(pa.int64())
    text = np.full((len(values), 11), _Z, np.uint8)
    text[:, :10] = _dates_text(_numbers(values))
    return matrix(text.reshape(-1), len(values), 11, pa.string(), valid(values))


def times(values: Any, modes: Modes) -> Any:
    match modes.time_precision:
        case "isostring":
            return _iso(_numbers(values), valid(values), with_date=False)
        case "connect":
            return _times(values, 1, 1000)
        case "nanoseconds":
            return _times(values, 1000, 1)
    return values


def times_refused(values: Any, modes: Modes) -> Bools | None:
    """Connect's Time and ISO text are times of day: 0 to 24 hours."""
    if modes.time_precision not in ("connect", "isostring"):
        return None
    micros = _numbers(values)
    return (micros < 0) | (micros > _DAY_US)


def datetimes(values: Any, nullable: bool, fraction: int, modes: Modes) -> Any:
    values = _adjusted(_real(values, nullable), _DAY_US, modes)
    match modes.time_precision:
        case "isostring":
            return _iso(_numbers(values), valid(values), with_date=True)
        case "microseconds":
            return values
        case "nanoseconds":
            return _times(values, 1000, 1)
        case "adaptive_time_microseconds" if fraction > 3:
            return values
    return _times(values, 1, 1000)


def datetimes_refused(values: Any, modes: Modes) -> Bools | None:
    if modes.time_precision != "nanoseconds":
        return None
    return np.abs(_numbers(_adjusted(values, _DAY_US, modes))) > _MOST_FOR_NANOS


def timestamps(values: Any, nullable: bool, fraction: int) -> Any:
    """``2024-01-01T00:00:00Z``, with ``fraction`` digits ``2024-01-01T00:00:00.500Z``."""
    mask, n = valid(values), len(values)
    micros = _numbers(values)
    seconds = micros // _SECOND_US
    width = 20 + (fraction + 1 if fraction else 0)
    text = np.empty((n, width), np.uint8)
    _date_and_clock(text, seconds)
    if fraction:
        text[:, 19] = _DOT
        _digits(text, 20, (micros - seconds * _SECOND_US) // 10 ** (6 - fraction), fraction)
    text[:, -1] = _Z
    written = matrix(text.reshape(-1), n, width, pa.string(), mask)
    return written if nullable or mask is None else written.fill_null(_EPOCH_ISO)


def _iso(micros: Ints, mask: Bools | None, *, with_date: bool) -> Any:
    """Text with as many digits of fraction as each value needs, none for whole seconds."""
    n, start = len(micros), 19 if with_date else 8
    seconds = micros // _SECOND_US
    text = np.empty((n, start + 8), np.uint8)
    if with_date:
        _date_and_clock(text, seconds)
    else:
        text[:, :8] = _clock()[seconds % _DAY]
    part = micros - seconds * _SECOND_US
    text[:, start] = _DOT
    _digits(text, start + 1, part, 6)
    text[:, -1] = _Z
    used = np.full(n, 7, np.int64)
    for digits in range(1, 7):
        used -= part % 10**digits == 0
    used[part == 0] = 0
    place = np.arange(7)
    keep = np.ones((n, start + 8), np.bool_)
    keep[:, start : start + 7] = place < used[:, None]
    return variable(offsets_of(start + 1 + used), text[keep], pa.string(), mask)


def _times(values: Any, factor: int, divisor: int) -> Any:
    """int64; NumPy rounds down where Arrow's divide rounds towards zero, and before 1970 only the former is right."""
    numbers = _numbers(values)
    return fixed(numbers * factor if divisor == 1 else numbers // divisor, pa.int64(), valid(values))


def _real(values: Any, nullable: bool) -> Any:
    return values if nullable or not values.null_count else values.fill_null(0)


def _adjusted(values: Any, day: int, modes: Modes) -> Any:
    """Of days or microseconds, ``day`` of them a day."""
    first = pc.min(values).as_py()
    if first is None or first >= _YEAR_100 * day or modes.time_adjuster == "false":
        return values
    numbers = _numbers(values)
    years = np.where(numbers < _YEAR_70 * day, _2000_YEARS, np.where(numbers < _YEAR_100 * day, _1900_YEARS, 0))
    return fixed(numbers + years * day, pa.int64(), valid(values))


def _numbers(values: Any) -> Ints:
    """int64, 0 for null."""
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _date_and_clock(text: Bytes, seconds: Ints) -> None:
    days = seconds // _DAY
    text[:, :10] = _dates_text(days)
    text[:, 10] = _T
    text[:, 11:19] = _clock()[seconds - days * _DAY]


def _digits(text: Bytes, start: int, number: Ints, count: int) -> None:
    for place in range(start + count - 1, start - 1, -1):
        following = number // 10
        text[:, place] = number - following * 10 + ord("0")
        number = following


def _dates_text(days: Ints) -> Bytes:
    """``YYYY-MM-DD`` of each day: by a table of all days between them, unless that is longer than they are (a few rows
    years apart, or dates from the year 1 to 9999)."""
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
    """``HH:MM:SS`` of each second of a day (691 KB)."""
    return np.arange(_DAY).astype("datetime64[s]").astype("S19").view(np.uint8).reshape(-1, 19)[:, 11:].copy()
