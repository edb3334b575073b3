"""MySQL's packed decimals, decoded into Arrow decimals, a whole column at a time.

A DECIMAL(p, s) is a row of big-endian groups. A full group has nine digits in four bytes. The first group of the
integer part and the last group of the fraction may have fewer digits, in 1 to 4 bytes (`GROUP_BYTES`). The top bit is
set for positive numbers; all bits of a negative number are inverted.
https://dev.mysql.com/doc/dev/mysql-server/latest/ (decimal2bin in strings/decimal.cc describes the format)

Up to 18 digits are plain int64 arithmetic. Wider values are computed in limbs of 32 bits, held in uint64, so that a
limb times 10**9 plus a carry cannot overflow. Eight limbs are Arrow's decimal256 and cost about 0.1 µs a value. Text
and a cast would cost ten times as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incsnap.columns.decimals import INT64_DIGITS, decimal_type, from_unscaled
from incsnap.columns.gather import integers
from incsnap.columns.packets import Spans
from incsnap.columns.variable import fixed

_GROUP = 9
#: Bytes of a group, by its number of digits.
GROUP_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def groups(precision: int, scale: int) -> list[int]:
    """Return the number of digits of each group of a DECIMAL(precision, scale), in the order of its bytes."""
    whole, fraction = precision - scale, scale
    counts = [whole % _GROUP, *[_GROUP] * (whole // _GROUP), *[_GROUP] * (fraction // _GROUP), fraction % _GROUP]
    return [count for count in counts if count]


def packed_size(precision: int, scale: int) -> int:
    """Return how many bytes a value of a DECIMAL(precision, scale) takes."""
    return sum(GROUP_BYTES[digits] for digits in groups(precision, scale))


def packed_decimals(spans: Spans, precision: int, scale: int) -> pa.Array:
    """Return values of `decimal_type`.

    Raise ValueError if a group holds a number with too many digits: it is damaged.
    """
    negative = spans.packets.data[spans.start] < 0x80
    parts = _parts(spans, precision, scale, negative)
    type_ = decimal_type(precision, scale)
    if precision <= INT64_DIGITS:
        total = np.zeros(len(spans), np.int64)
        for digits, part in parts:
            total *= 10**digits
            total += part.view(np.int64)
        np.negative(total, out=total, where=negative)
        return from_unscaled(total, type_, spans.valid)
    count = type_.bit_width // 32
    limbs = [np.zeros(len(spans), np.uint64) for _ in range(count)]
    for digits, part in parts:
        _times_plus(limbs, np.uint64(10**digits), part)
    _negate(limbs, negative)
    words = [limbs[i] | (limbs[i + 1] << _32) for i in range(0, count, 2)]
    return fixed(np.stack(words, axis=1), type_, spans.valid)


def _parts(spans: Spans, precision: int, scale: int, negative: NDArray[np.bool_]) -> list[tuple[int, NDArray[Any]]]:
    """Return (digits, values of the group as uint64) for each group, the most significant first. A NULL holds 0.

    Raise ValueError if a group holds a number with too many digits.
    """
    invert = np.where(negative, np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0))
    size = packed_size(precision, scale)
    whole = integers(spans, size, signed=False, big=True) ^ invert if size <= 8 else None
    parts = []
    offset = 0
    for digits in groups(precision, scale):
        width = GROUP_BYTES[digits]
        keep = np.uint64((1 << 8 * width) - 1)
        if whole is not None:
            part = (whole >> np.uint64(8 * (size - offset - width))) & keep
        else:
            part = (integers(spans, width, signed=False, big=True, offset=offset) ^ invert) & keep
        if offset == 0:
            # The sign bit is 1 here: positive numbers have it, negative ones have been inverted.
            part &= keep >> np.uint64(1)
        if spans.valid is not None:
            part *= spans.valid
        if len(part) and int(part.max()) >= 10**digits:
            raise ValueError(f"a group of {digits} decimal digits holds {int(part.max())}")
        parts.append((digits, part))
        offset += width
    return parts


def _times_plus(limbs: list[NDArray[np.uint64]], factor: np.uint64, carry: NDArray[np.uint64]) -> None:
    """Multiply each number by `factor` and add `carry`, in place."""
    for limb in limbs:
        limb *= factor
        limb += carry
        carry = limb >> _32
        limb &= _LOW


def _negate(limbs: list[NDArray[np.uint64]], where: NDArray[np.bool_]) -> None:
    """Negate the numbers where the mask is True, in place: invert the bits and add one (two's complement)."""
    invert = np.where(where, _LOW, np.uint64(0))
    carry = where.astype(np.uint64)
    for limb in limbs:
        limb ^= invert
        limb += carry
        carry = limb >> _32
        limb &= _LOW
