"""The table that `incsnap.compare` reads, and the types in which it compares values."""

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

from incsnap.errors import ConfigError
from incsnap.spark.common_types import common_type
from incsnap.spark.comparing import _table_of
from incsnap.tables import TableId


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


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("shop.orders", TableId("shop", "orders")),
        ("`my.shop`.orders", TableId("my.shop", "orders")),
        ("shop.`orders.2026`", TableId("shop", "orders.2026")),
    ],
)
def test_a_table_is_named_as_in_the_option(name: str, table: TableId) -> None:
    assert _table_of(name) == table


@pytest.mark.parametrize("name", ["orders", "my.shop.orders", "shop.", ""])
def test_a_name_that_is_not_one_table_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"is not of the form database\.table"):
        _table_of(name)
