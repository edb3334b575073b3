"""The Arrow types for DECIMAL, and the number of digits up to which an int64 holds a value.

All code that makes or reads DECIMAL columns uses them. An Arrow decimal is its unscaled value in two's complement, 16
or 32 bytes, low word first. MySQL has up to 65 digits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import Array
from incsnap.columns.variable import Bools, fixed

#: An unscaled value with at most this many digits fits an int64, which is several times as fast as a decimal's words.
INT64_DIGITS = 18
_DECIMAL128_DIGITS = 38


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return decimal128 if it fits (38 digits), otherwise decimal256."""
    return pa.decimal128(precision, scale) if precision <= _DECIMAL128_DIGITS else pa.decimal256(precision, scale)


def from_unscaled(values: npt.NDArray[np.int64], type_: pa.DataType, mask: Bools | None) -> Array:
    """Return the decimals of unscaled values (0 under a null). `type_` has at most `INT64_DIGITS` digits."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    return fixed(words, type_, mask)
