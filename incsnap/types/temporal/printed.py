"""Dates and times as MySQL prints them: parsed and printed one digit of all rows at a time.

All texts of a column have one width (`2024-01-02 03:04:05.123`). So a column is a matrix of bytes, and a digit is one
column of the matrix: 7 ns a value. Dates that are zero or zero in part (year, month or day 0) become null, as Debezium
reads them. Days that no month has (2024-02-31, ALLOW_INVALID_DATES) become null too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, IntArray
from incsnap.columns.calendar import days
from incsnap.columns.variable import Bools, Bytes, dense, offsets_of, valid, variable
from incsnap.types.temporal.iso_text import write_digits

ZERO_DATE = b"0000-00-00"
_ZERO = np.uint8(ord("0"))


def characters(raw: BytesArray, null: bytes) -> Bytes:
    """Return the texts as a matrix of bytes with one row per value. The text `null` takes the place of nulls.

    Raise ValueError if a text is not as wide as `null`.
    """
    n, width = len(raw), len(null)
    offsets, data = dense(raw.fill_null(null) if raw.null_count else raw)
    if not np.array_equal(offsets, offsets_of(np.full(n, width))):
        raise ValueError(f"a value is not {width} characters wide, as {null.decode()} is")
    return data.reshape(n, width)


def number(text: Bytes, start: int, count: int) -> npt.NDArray[np.int32]:
    """Return the decimal number of `count` digits that begins in column `start`."""
    value = (text[:, start] - _ZERO).astype(np.int32)
    for k in range(start + 1, start + count):
        value *= 10
        value += text[:, k] - _ZERO
    return value


def printed_days(text: Bytes) -> tuple[npt.NDArray[np.int32], Bools | None]:
    """Return the days since 1970-01-01 of the date that each row begins with, and a mask of real dates; None if all are
    real.
    """
    count, real = days(number(text, 0, 4), number(text, 5, 2), number(text, 8, 2))
    return count, None if bool(real.all()) else real


def printed_times(micros: IntArray, fraction: int) -> BytesArray:
    """Return TIMEs as the server prints them, such as `-838:59:59.000`, with `fraction` digits of fraction.

    Each text is made at its full width. Then the characters that its value does not need (sign, hundreds of hours) are
    left out.
    """
    mask = valid(micros)
    values = np.asarray(micros.fill_null(0).to_numpy(zero_copy_only=False))
    magnitude = np.abs(values)
    seconds, part = np.divmod(magnitude, 10**6)
    width = 10 + (fraction + 1 if fraction else 0)
    text = np.empty((len(values), width), np.uint8)
    text[:, 0] = ord("-")
    write_digits(text, 1, seconds // 3600, 3)
    text[:, 4] = text[:, 7] = ord(":")
    write_digits(text, 5, seconds // 60 % 60, 2)
    write_digits(text, 8, seconds % 60, 2)
    if fraction:
        text[:, 10] = ord(".")
        write_digits(text, 11, part // 10 ** (6 - fraction), fraction)
    keep = np.ones(text.shape, np.bool_)
    keep[:, 0] = values < 0
    keep[:, 1] = seconds >= 100 * 3600
    return variable(offsets_of(keep.sum(axis=1)), text[keep], pa.string(), mask)
