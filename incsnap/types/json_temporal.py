"""Dates and times as Debezium's ``adaptive_time_microseconds`` writes them.

DATE is days, TIME microseconds, DATETIME milliseconds with up to 3 digits of fraction and microseconds with more, all
as numbers; TIMESTAMP is text in UTC with exactly the column's digits of fraction. A value that is null although its
column is NOT NULL was a zero date; Debezium writes the epoch for it.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-temporal-types
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.types.json_text import Encoded
from incsnap.types.variable import matrix, valid

_DAY = 86_400


def dates(values: Any, nullable: bool) -> Encoded:
    return Encoded(_real(values, nullable).cast(pa.string()))


def times(values: Any) -> Encoded:
    return Encoded(values.cast(pa.string()))


def datetimes(values: Any, nullable: bool, fraction: int) -> Encoded:
    values = _real(values, nullable)
    if fraction <= 3:
        # numpy rounds down, Arrow's divide towards zero; before 1970 only the former is Instant.toEpochMilli.
        mask = valid(values)
        millis = np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False)) // 1000
        values = pa.array(millis, pa.int64(), mask=None if mask is None else ~mask)
    return Encoded(values.cast(pa.string()))


def timestamps(values: Any, nullable: bool, fraction: int) -> Encoded:
    """``2024-01-01T00:00:00Z``, with ``fraction`` digits ``2024-01-01T00:00:00.500Z``."""
    values = _real(values, nullable)
    mask, n = valid(values), len(values)
    micros = np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False))
    seconds = micros // 1_000_000
    days = seconds // _DAY
    width = 20 + (fraction + 1 if fraction else 0)
    text = np.empty((n, width), np.uint8)
    text[:, :10] = _dates_text(days)
    text[:, 10] = ord("T")
    text[:, 11:19] = _clock()[seconds - days * _DAY]
    if fraction:
        text[:, 19] = ord(".")
        part = (micros - seconds * 1_000_000) // 10 ** (6 - fraction)
        for k in range(fraction):
            text[:, 19 + fraction - k] = part % 10 + ord("0")
            part //= 10
    text[:, -1] = ord("Z")
    return Encoded(matrix(text.reshape(-1), n, width, pa.string(), mask), quoted=True)


def _real(values: Any, nullable: bool) -> Any:
    return values if nullable or not values.null_count else values.fill_null(0)


def _dates_text(days: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """``YYYY-MM-DD`` of each day, looked up: TIMESTAMP holds 24,855 different days."""
    if not len(days):
        return np.zeros((0, 10), np.uint8)
    first, last = int(days.min()), int(days.max())
    table = np.arange(first, last + 1).astype("datetime64[D]").astype("S10").view(np.uint8).reshape(-1, 10)
    rows: npt.NDArray[np.uint8] = table[days - first]
    return rows


@functools.cache
def _clock() -> npt.NDArray[np.uint8]:
    """``HH:MM:SS`` of each second of a day (691 KB)."""
    return np.arange(_DAY).astype("datetime64[s]").astype("S19").view(np.uint8).reshape(-1, 19)[:, 11:].copy()
