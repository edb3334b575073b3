"""Dates as MySQL prints them, a digit of all rows at a time.

The text of a column has one width (``2024-01-02 03:04:05.123``), so a column is a matrix of bytes and a digit is one
of its columns: 7 ns a value. Zero and partly zero dates (year, month or day 0) become null, as Debezium reads them; so
do days that no month has (2024-02-31, ALLOW_INVALID_DATES).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.calendar import days
from incsnap.columns.variable import Bools, Bytes, Ints, dense, offsets_of, valid, variable

ZERO_DATE = b"0000-00-00"
_ZERO = np.uint8(ord("0"))


def characters(raw: Any, null: bytes) -> Bytes:
    """The text as a matrix, a row a value; ``null`` stands for nulls. Raises ``ValueError`` for a text of another
    width.
    """
    n, width = len(raw), len(null)
    offsets, data = dense(raw.fill_null(null) if raw.null_count else raw)
    if not np.array_equal(offsets, offsets_of(np.full(n, width))):
        raise ValueError(f"a value is not {width} characters wide, as {null.decode()} is")
    return data.reshape(n, width)


def number(text: Bytes, start: int, count: int) -> npt.NDArray[np.int32]:
    """The decimal number of ``count`` digits that begins in column ``start``."""
    value = (text[:, start] - _ZERO).astype(np.int32)
    for k in range(start + 1, start + count):
        value *= 10
        value += text[:, k] - _ZERO
    return value


def printed_days(text: Bytes) -> tuple[npt.NDArray[np.int32], Bools | None]:
    """Days since 1970-01-01 of the date at the begin of each row, and which are real dates, None when all are."""
    count, real = days(number(text, 0, 4), number(text, 5, 2), number(text, 8, 2))
    return count, None if bool(real.all()) else real


def printed_times(micros: Any, fraction: int) -> Any:
    """TIMEs as the server prints them, ``-838:59:59.000``: a sign, two or three digits of hours, so many of fraction.

    Each text is made at its full width, and what its value does not need (the sign, the hundreds of hours) is left out.
    """
    mask = valid(micros)
    values = np.asarray(micros.fill_null(0).to_numpy(zero_copy_only=False))
    magnitude = np.abs(values)
    seconds, part = np.divmod(magnitude, 10**6)
    width = 10 + (fraction + 1 if fraction else 0)
    text = np.empty((len(values), width), np.uint8)
    text[:, 0] = ord("-")
    _write(text, 1, seconds // 3600, 3)
    text[:, 4] = text[:, 7] = ord(":")
    _write(text, 5, seconds // 60 % 60, 2)
    _write(text, 8, seconds % 60, 2)
    if fraction:
        text[:, 10] = ord(".")
        _write(text, 11, part // 10 ** (6 - fraction), fraction)
    keep = np.ones(text.shape, np.bool_)
    keep[:, 0] = values < 0
    keep[:, 1] = seconds >= 100 * 3600
    return variable(offsets_of(keep.sum(axis=1)), text[keep], pa.string(), mask)


def _write(text: Bytes, start: int, number: Ints, count: int) -> None:
    for place in range(start + count - 1, start - 1, -1):
        number, digit = np.divmod(number, 10)
        text[:, place] = digit + _ZERO
