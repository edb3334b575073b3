"""DATE, TIME, DATETIME and TIMESTAMP as MySQL prints them, to days and microseconds, a digit of all rows at a time.

The text of a column has one width (``2024-01-02 03:04:05.123``), so a column is a matrix of bytes and a digit is one
of its columns: 7 ns a value. TIME alone has two or three digits of hours and a sign, and is read from its end.
Zero and partly zero dates (year, month or day 0) become null, as Debezium reads them; so do days that no month has
(2024-02-31, ALLOW_INVALID_DATES).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.types.variable import Bools, Bytes, Ints, dense, fixed, offsets_of, valid

_ZERO_DATE = b"0000-00-00"
_ZERO = np.uint8(ord("0"))

#: days since 1970-01-01 of the first of each month, by year * 12 + month - 1, year 0 to 9999 (480 KB), and days of
#: each month.
_MONTHS = np.arange("0000-01", "10000-02", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
_MONTH_DAYS = np.diff(_MONTHS)


def dates(raw: Any) -> Any:
    """int32 days since 1970-01-01."""
    text, n = _rows(raw, _ZERO_DATE)
    days, real = _days(text)
    return fixed(days.astype(np.int32), pa.int32(), _mask(real, n))


def datetimes(raw: Any, fraction: int) -> Any:
    """int64 microseconds since the epoch, without a zone (DATETIME) or in UTC (TIMESTAMP in a ``+00:00`` session)."""
    text, n = _rows(raw, _ZERO_DATE + b" 00:00:00" + (b"." + b"0" * fraction if fraction else b""))
    days, real = _days(text)
    seconds = _number(text, 11, 2) * 3600 + _number(text, 14, 2) * 60 + _number(text, 17, 2)
    micros = (days.astype(np.int64) * 86_400 + seconds) * 1_000_000
    if fraction:
        micros += _number(text, 20, fraction).astype(np.int64) * 10 ** (6 - fraction)
    return fixed(micros, pa.int64(), _mask(real, n))


def times(raw: Any, fraction: int) -> Any:
    """int64 microseconds, -838:59:59.000000 to 838:59:59.000000."""
    n = len(raw)
    mask = valid(raw)
    if mask is not None:
        raw = raw.fill_null(b"00:00:00" + (b"." + b"0" * fraction if fraction else b""))
    offsets, data = dense(raw)
    start, end = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    if n == 0:
        return fixed(np.zeros(0, np.int64), pa.int64())
    tail = 6 + (fraction + 1 if fraction else 0)  # ":MM:SS" and ".ffffff"

    def digits(before_end: int, count: int) -> Ints:
        value: Ints = data[end - before_end].astype(np.int64) - 48
        for k in range(1, count):
            value = value * 10 + data[end - before_end + k] - 48
        return value

    negative = data[start] == ord("-")
    hours = digits(tail + 2, 2)
    long = (end - start - negative) > tail + 2
    hours[long] += (data[end[long] - tail - 3].astype(np.int64) - 48) * 100
    micros = (hours * 3600 + digits(tail - 1, 2) * 60 + digits(tail - 4, 2)) * 1_000_000
    if fraction:
        micros += digits(fraction, fraction) * 10 ** (6 - fraction)
    return fixed(np.where(negative, -micros, micros), pa.int64(), mask)


def _rows(raw: Any, null: bytes) -> tuple[Bytes, int]:
    """The text as a matrix, a row a value; nulls are zero dates. Raises ``ValueError`` for a text of another width."""
    n, width = len(raw), len(null)
    offsets, data = dense(raw.fill_null(null) if raw.null_count else raw)
    if not np.array_equal(offsets, offsets_of(np.full(n, width))):
        raise ValueError(f"a value is not {width} characters wide, as {null.decode()} is")
    return data.reshape(n, width), n


def _number(text: Bytes, start: int, count: int) -> npt.NDArray[np.int32]:
    value = (text[:, start] - _ZERO).astype(np.int32)
    for k in range(start + 1, start + count):
        value *= 10
        value += text[:, k] - _ZERO
    return value


def _days(text: Bytes) -> tuple[npt.NDArray[np.int32], Bools]:
    year, month, day = _number(text, 0, 4), _number(text, 5, 2), _number(text, 8, 2)
    which = year * 12 + np.maximum(month, 1) - 1
    real = (year > 0) & (month > 0) & (day > 0) & (day <= _MONTH_DAYS[which])
    return _MONTHS[which] + (day - 1), real


def _mask(real: Bools, n: int) -> Bools | None:
    return None if n == 0 or bool(real.all()) else real
