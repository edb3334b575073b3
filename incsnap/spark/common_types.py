"""The types of Spark that hold the values of two others exactly."""

from __future__ import annotations

from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
)

_WHOLE = (ByteType(), ShortType(), IntegerType(), LongType(), DecimalType(20, 0))
#: Whole numbers as DECIMALs that hold all their values.
_AS_DECIMAL: dict[DataType, DataType] = dict(
    zip(_WHOLE, (DecimalType(digits, 0) for digits in (3, 5, 10, 19, 20)), strict=True)
)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which values of both types can be compared exactly; None if there is none.

    >>> common_type(ByteType(), IntegerType()).simpleString()
    'int'
    """
    if left.simpleString() == right.simpleString():
        return right
    if left in _WHOLE and right in _WHOLE:
        return max(left, right, key=_WHOLE.index)
    if isinstance(left, DecimalType) and isinstance(right, DecimalType):
        scale = max(left.scale, right.scale)
        digits = max(left.precision - left.scale, right.precision - right.scale) + scale
        return DecimalType(digits, scale) if digits <= DecimalType(38, 0).precision else None
    numbers = (FloatType(), DoubleType())
    return DoubleType() if left in numbers and right in numbers else None


def holds(present: DataType, target: DataType) -> bool:
    """Return True if a column of the type `present` can hold all values of `target`.

    >>> holds(DecimalType(12, 2), IntegerType()), holds(DecimalType(11, 2), IntegerType())
    (True, False)
    """
    if isinstance(present, DecimalType):
        target = _AS_DECIMAL.get(target, target)
    return common_type(present, target) == present
