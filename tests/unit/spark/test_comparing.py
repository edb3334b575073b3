"""The types in which `incsnap.compare` compares values."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from incsnap.spark.common_types import common_type


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [
        (ByteType(), IntegerType(), "int"),
        (DecimalType(20, 0), LongType(), "decimal(20,0)"),
        (DecimalType(6, 2), DecimalType(20, 4), "decimal(20,4)"),
        (DecimalType(38, 0), DecimalType(38, 2), None),
        (FloatType(), DoubleType(), "double"),
        (DoubleType(), LongType(), None),
        (StringType(), BinaryType(), None),
        (StringType(), StringType(), "string"),
        (TimestampType(), TimestampNTZType(), None),
    ],
)
def test_values_are_compared_exactly_or_not_at_all(left: DataType, right: DataType, shared: str | None) -> None:
    for pair in ((left, right), (right, left)):
        kind = common_type(*pair)
        assert (None if kind is None else kind.simpleString()) == shared
