"""MySQL's packed decimal into Arrow decimals, in whole columns.

A DECIMAL(p, s) is big-endian groups of nine digits in four bytes; the digits left over of the integer part come
first, those of the fraction last, in as few bytes as hold them. The top bit is set for positive numbers; of a
negative number all bits are inverted. https://dev.mysql.com/doc/dev/mysql-server/latest/ (decimal2bin in
strings/decimal.cc describes the format).

Up to 18 digits are plain int64 arithmetic. Wider ones go through limbs of 32 bits held in uint64, so that a limb
times 10**9 plus a carry cannot overflow: eight limbs are Arrow's decimal256 and cost about 0.1 µs a value. (Through
text and a cast would cost ten times that.)
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
#: Bytes that hold a group of so many digits.
GROUP_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def groups(precision: int, scale: int) -> list[int]:
    """Digits of each group, from the first byte on."""
    whole, fraction = precision - scale, scale
    counts = [whole % _GROUP, *[_GROUP] * (whole // _GROUP), *[_GROUP] * (fraction // _GROUP), fraction % _GROUP]
    return [count for count in counts if count]


def packed_size(precision: int, scale: int) -> int:
    """Bytes that a value takes."""
    return sum(GROUP_BYTES[digits] for digits in groups(precision, scale))


def packed_decimals(spans: Spans, precision: int, scale: int) -> pa.Array:
    """Values of ``decimal_type``. ``ValueError`` where a group holds more than its digits: the value is damaged."""
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
    """Gives (digits, the group's value as uint64) from the most significant group on; NULLs hold 0."""
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
            # The sign bit: 1 for positive, and inverted to 1 for negative.
            part &= keep >> np.uint64(1)
        if spans.valid is not None:
            part *= spans.valid
        if len(part) and int(part.max()) >= 10**digits:
            raise ValueError(f"a group of {digits} decimal digits holds {int(part.max())}")
        parts.append((digits, part))
        offset += width
    return parts


def _times_plus(limbs: list[NDArray[np.uint64]], factor: np.uint64, carry: NDArray[np.uint64]) -> None:
    for limb in limbs:
        limb *= factor
        limb += carry
        carry = limb >> _32
        limb &= _LOW


def _negate(limbs: list[NDArray[np.uint64]], where: NDArray[np.bool_]) -> None:
    """Two's complement: invert, and add one."""
    invert = np.where(where, _LOW, np.uint64(0))
    carry = where.astype(np.uint64)
    for limb in limbs:
        limb ^= invert
        limb += carry
        carry = limb >> _32
        limb &= _LOW
