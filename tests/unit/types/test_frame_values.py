"""Values as a DataFrame has them: each in its own type, whatever the modes are."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from incsnap.tables import Column
from incsnap.types.column_type import describe
from tests.support.column_values import TABLE, framed

_POINT = bytes.fromhex("e61000000101000000000000000000f03f0000000000000040")


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (Column("c", "tinyint"), -128, -128),
        (Column("c", "bigint", unsigned=True), 2**64 - 1, Decimal(2**64 - 1)),
        (Column("c", "decimal", precision=40, scale=2), Decimal("-12.50"), "-12.50"),
        (Column("c", "decimal", precision=38, scale=2), Decimal("-12.50"), Decimal("-12.50")),
        (Column("c", "bit", length=1), 1, True),
        (Column("c", "bit", length=12), 0x801, b"\x08\x01"),
        (Column("c", "year"), 2155, 2155),
        (Column("c", "date"), -1, date(1969, 12, 31)),
        (Column("c", "datetime", fraction=6), -1, datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (Column("c", "time"), -3_020_399_000_000, "-838:59:59"),
        (Column("c", "time"), 0, "00:00:00"),
        (Column("c", "time", fraction=3), 360_000_001_000, "100:00:00.001"),
        (Column("c", "time", fraction=6), -1, "-00:00:00.000001"),
        (Column("c", "point"), _POINT, _POINT[4:]),
        (Column("c", "vector"), b"\0\0\x80\x3f\0\0\0\x40", [1.0, 2.0]),
    ],
    ids=lambda each: each.type if isinstance(each, Column) else None,
)
def test_values_and_nulls_keep_their_meaning(column: Column, value: Any, expected: Any) -> None:
    assert framed(column, [value, None, value]) == [expected, None, expected]


@pytest.mark.parametrize(
    ("kind", "signed", "unsigned"),
    [
        ("tinyint", pa.int8(), pa.int16()),
        ("smallint", pa.int16(), pa.int32()),
        ("mediumint", pa.int32(), pa.int32()),
        ("int", pa.int32(), pa.int64()),
        ("bigint", pa.int64(), pa.decimal128(20, 0)),
    ],
)
def test_an_integer_has_the_least_type_that_holds_its_column(
    kind: str, signed: pa.DataType, unsigned: pa.DataType
) -> None:
    types = [describe(Column("c", kind, unsigned=each), TABLE).frame_type for each in (False, True)]

    assert types == [signed, unsigned]
