"""Which Arrow type holds a DECIMAL, and when its digits fit an int64: the rule for all who make or read such columns.

An Arrow decimal is its unscaled value in two's complement, 16 or 32 bytes, low word first. MySQL has up to 65 digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.variable import Bools, fixed

#: An unscaled value of at most so many digits fits an int64: several times as fast as the words of a decimal.
INT64_DIGITS = 18
_DECIMAL128_DIGITS = 38


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Gives decimal128 where it fits (38 digits), else decimal256."""
    return pa.decimal128(precision, scale) if precision <= _DECIMAL128_DIGITS else pa.decimal256(precision, scale)


def from_unscaled(values: npt.NDArray[np.int64], type_: pa.DataType, mask: Bools | None) -> Any:
    """The decimals of their unscaled values (0 under a null), of a ``type_`` of at most ``INT64_DIGITS`` digits."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    return fixed(words, type_, mask)
