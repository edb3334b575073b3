"""Functions for TIME, DATETIME and TIMESTAMP as the binlog packs them since MySQL 5.6.

The three are big-endian integers. TIME and DATETIME have an offset, so that they sort as bytes. The fraction follows in
0 to 3 bytes: one byte per two digits, in units of the last digit.
https://dev.mysql.com/doc/internals/en/date-and-time-data-type-representation.html
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incsnap.columns.packets import Mask
from incsnap.columns.variable import Ints
from incsnap.tables import Column


def fraction_bytes(column: Column) -> int:
    """Return how many bytes the column's fraction of a second has."""
    return (column.fraction + 1) // 2


def fraction_micros(packed: Ints, fraction: int) -> Ints | int:
    """Return the fraction of each packed value in microseconds.

    The fraction is the lowest `fraction` bytes of the value, in units of 10 ms, 100 µs or 1 µs for one, two or three
    bytes.
    """
    return (packed & ((1 << 8 * fraction) - 1)) * 100 ** (3 - fraction) if fraction else 0


def signed(values: NDArray[np.uint64]) -> Ints:
    """Return unsigned integers as int64 with the same bits, because the arithmetic of dates needs negative numbers."""
    return values.view(np.int64)


def both(real: Mask, present: Mask | None) -> Mask | None:
    """Return the validity mask of decoded dates: True for a date that is `real` and `present` (not NULL).

    `present` is None if no value is NULL. Return None if all dates are valid.
    """
    if present is not None:
        return real & present
    return None if real.all() else real
