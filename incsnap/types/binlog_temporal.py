"""DATE, TIME, DATETIME and TIMESTAMP in the binlog (the formats since MySQL 5.6).

https://dev.mysql.com/doc/internals/en/date-and-time-data-type-representation.html. TIME2 and DATETIME2 are big-endian
integers with an offset, so that they sort as bytes; 0 to 3 bytes of fraction follow: one per two digits, in units of
the last of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incsnap.columns.calendar import MICROSECONDS_PER_SECOND, SECONDS_PER_DAY, days
from incsnap.columns.gather import integers, primitive
from incsnap.columns.packets import Mask, Spans
from incsnap.tables import Column
from incsnap.types.binlog_numbers import Decode

Ints = NDArray[np.int64]

_TIME_BYTES, _TIME_OFFSET = 3, 0x800000
_DATETIME_BYTES, _DATETIME_OFFSET = 5, 0x8000000000


def date(column: Column) -> tuple[pa.DataType, int, Decode]:
    """Three bytes, little-endian: year in 15 bits, month in 4, day in 5."""

    def decode(spans: Spans) -> pa.Array:
        packed = _signed(integers(spans, 3, signed=False))
        count, real = days(packed >> 9, packed >> 5 & 15, packed & 31)
        return primitive(count.astype(np.int32), _both(real, spans.valid), pa.int32())

    return pa.int32(), 3, decode


def time(column: Column) -> tuple[pa.DataType, int, Decode]:
    """Signed: hours in 10 bits, minutes in 6, seconds in 6, then the fraction.

    Integer part and fraction are one integer that is negated as a whole. So a negative time's fraction borrows from
    the integer part, and taking the absolute value of both together undoes that.
    """
    fraction = _fraction_bytes(column)
    size = _TIME_BYTES + fraction

    def decode(spans: Spans) -> pa.Array:
        packed = _signed(integers(spans, size, signed=False, big=True)) - (_TIME_OFFSET << 8 * fraction)
        magnitude = np.abs(packed)
        whole = magnitude >> 8 * fraction
        seconds = (whole >> 12 & 0x3FF) * 3600 + (whole >> 6 & 63) * 60 + (whole & 63)
        micros = seconds * MICROSECONDS_PER_SECOND + _micros(magnitude, fraction)
        return primitive(micros * np.sign(packed), spans.valid, pa.int64())

    return pa.int64(), size, decode


def datetime(column: Column) -> tuple[pa.DataType, int, Decode]:
    """year * 13 + month in 17 bits, day in 5, hour in 5, minute in 6, second in 6, then the fraction."""
    fraction = _fraction_bytes(column)
    size = _DATETIME_BYTES + fraction

    def decode(spans: Spans) -> pa.Array:
        # Shifted as unsigned: with 6 digits the offset is the topmost of 64 bits.
        unsigned = integers(spans, size, signed=False, big=True)
        whole = _signed(unsigned >> np.uint64(8 * fraction)) - _DATETIME_OFFSET
        packed = _signed(unsigned)
        year, month = np.divmod(whole >> 22, 13)
        count, real = days(year, month, whole >> 17 & 31)
        seconds = count * SECONDS_PER_DAY + (whole >> 12 & 31) * 3600 + (whole >> 6 & 63) * 60 + (whole & 63)
        micros = seconds * MICROSECONDS_PER_SECOND + _micros(packed, fraction)
        return primitive(micros, _both(real, spans.valid), pa.int64())

    return pa.int64(), size, decode


def timestamp(column: Column) -> tuple[pa.DataType, int, Decode]:
    """Seconds since 1970 UTC in four bytes, then the fraction; 0 is the zero date."""
    fraction = _fraction_bytes(column)
    size = 4 + fraction

    def decode(spans: Spans) -> pa.Array:
        packed = _signed(integers(spans, size, signed=False, big=True))
        seconds = packed >> 8 * fraction
        micros = seconds * MICROSECONDS_PER_SECOND + _micros(packed, fraction)
        return primitive(micros, _both(seconds != 0, spans.valid), pa.int64())

    return pa.int64(), size, decode


def _fraction_bytes(column: Column) -> int:
    return (column.fraction + 1) // 2


def _micros(packed: Ints, fraction: int) -> Ints | int:
    """The lowest ``fraction`` bytes as microseconds: units of 10 ms, 100 µs or 1 µs."""
    return (packed & ((1 << 8 * fraction) - 1)) * 100 ** (3 - fraction) if fraction else 0


def _signed(values: NDArray[np.uint64]) -> Ints:
    return values.view(np.int64)


def _both(real: Mask, valid: Mask | None) -> Mask | None:
    if valid is not None:
        return real & valid
    return None if real.all() else real
