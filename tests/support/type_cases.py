"""A column of each MySQL type with values, and each mode for values: the cases of tests of formats."""

from __future__ import annotations

import struct
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from incsnap.tables import Column
from incsnap.types.modes import CHOICES, Modes

INT64, TEXT, BYTES = pa.int64(), pa.string(), pa.binary()
WKB_POINT = struct.pack("<IBIdd", 4326, 1, 1, 1.5, -2.0)

#: A column and its canonical values.
CASES: list[tuple[Column, Any]] = [
    (Column("c", "tinyint"), pa.array([-128, 127, 0], INT64)),
    (Column("c", "smallint", unsigned=True), pa.array([65535, 0, 64], INT64)),
    (Column("c", "int"), pa.array([-(2**31), 2**31 - 1, -1], INT64)),
    (Column("c", "bigint"), pa.array([-(2**63), 2**63 - 1, 0], INT64)),
    (Column("c", "bigint", unsigned=True), pa.array([2**64 - 1, 2**63, 0], pa.uint64())),
    (Column("c", "year"), pa.array([1901, 2155, 2024], INT64)),
    (Column("c", "float"), pa.array([0.1, -0.0, 3.4028235e38], pa.float32())),
    (Column("c", "double"), pa.array([0.1, -0.0, 5e-324], pa.float64())),
    (
        Column("c", "decimal", precision=12, scale=2),
        pa.array([Decimal("-0.01"), Decimal("9999999999.99"), Decimal("0.00")], pa.decimal128(12, 2)),
    ),
    (
        Column("c", "decimal", precision=65, scale=30),
        pa.array([Decimal("9" * 35 + "." + "9" * 30), Decimal("-1E-30"), Decimal(0)], pa.decimal256(65, 30)),
    ),
    (Column("c", "varchar", charset="utf8mb4"), pa.array(["", "é😀", "a" * 300], TEXT)),
    (Column("c", "enum", charset="utf8mb4", values=("a", "b,c")), pa.array(["a", "b,c", ""], TEXT)),
    (Column("c", "set", charset="utf8mb4", values=("a", "b")), pa.array(["a,b", "", "b"], TEXT)),
    (Column("c", "json"), pa.array(['{"a": 1}', "null", "[]"], TEXT)),
    (Column("c", "varbinary", charset="binary"), pa.array([b"", b"\xff\x00", b"x" * 300], BYTES)),
    (Column("c", "bit", length=1), pa.array([0, 1, 1], pa.uint64())),
    (Column("c", "bit", length=33), pa.array([0, 2**33 - 1, 1], pa.uint64())),
    (Column("c", "date"), pa.array([-719162, 0, 2932896], pa.int32())),
    (Column("c", "time", fraction=6), pa.array([0, 86_399_999_999, 1], INT64)),
    (Column("c", "datetime", fraction=3), pa.array([0, 1_709_210_096_789_000, -1_000], INT64)),
    (Column("c", "datetime", fraction=6), pa.array([0, 1_709_210_096_789_012, -1], INT64)),
    (Column("c", "timestamp", fraction=6), pa.array([0, 1_709_210_096_789_012, 1], INT64)),
    (Column("c", "point"), pa.array([WKB_POINT, WKB_POINT, WKB_POINT[:-1] + b"\x40"], BYTES)),
    (Column("c", "geometry"), pa.array([WKB_POINT, WKB_POINT, WKB_POINT], BYTES)),
    (Column("c", "vector"), pa.array([struct.pack("<f", 1.5), b"", struct.pack("<3f", 0.5, -1, 2)], BYTES)),
]
MODES = [Modes(), *(replace(Modes(), **{name: choice}) for name, choices in CHOICES.items() for choice in choices[1:])]


def name_of(case: Any) -> str:
    """Return a name for a case, or for modes."""
    if isinstance(case, Modes):
        return next((value for name, choices in CHOICES.items() if (value := getattr(case, name)) != choices[0]), "")
    return f"{case[0].type}{case[0].length or case[0].precision or case[0].fraction}{'u' * case[0].unsigned}"
