"""What TIME, DATETIME and TIMESTAMP have in common in the binlog, since MySQL 5.6.

Big-endian integers, those of TIME and DATETIME with an offset, so that they sort as bytes; 0 to 3 bytes of fraction
follow: one per two digits, in units of the last of them.
https://dev.mysql.com/doc/internals/en/date-and-time-data-type-representation.html
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incsnap.columns.packets import Mask
from incsnap.columns.variable import Ints
from incsnap.tables import Column


def fraction_bytes(column: Column) -> int:
    return (column.fraction + 1) // 2


def fraction_micros(packed: Ints, fraction: int) -> Ints | int:
    """The lowest ``fraction`` bytes as microseconds: units of 10 ms, 100 µs or 1 µs."""
    return (packed & ((1 << 8 * fraction) - 1)) * 100 ** (3 - fraction) if fraction else 0


def signed(values: NDArray[np.uint64]) -> Ints:
    return values.view(np.int64)


def both(real: Mask, present: Mask | None) -> Mask | None:
    """Which values are neither NULL nor what no calendar has; None when all are."""
    if present is not None:
        return real & present
    return None if real.all() else real
