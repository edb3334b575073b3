"""Integers, YEAR, FLOAT, DOUBLE and BIT: in from both sources, out in every form."""

from __future__ import annotations

import base64
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.tables import Column
from incsnap.types.column_type import describe
from incsnap.types.modes import Modes
from tests.support.column_values import TABLE, connected, decoded, default_of, encoded, parsed, schema_of
from tests.support.java import java_bytes

UNSIGNED = Column("c", "bigint", unsigned=True)


_WIDTHS = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}


@pytest.mark.parametrize(("type_", "width"), _WIDTHS.items())
def test_integers_are_little_endian_in_the_binlog(type_: str, width: int) -> None:
    stored = [b"\xfe" + b"\xff" * (width - 1), None, b"\x07" + bytes(width - 1)]
    assert decoded(Column("c", type_), stored) == [-2, None, 7]
    assert decoded(Column("c", type_, unsigned=True), stored) == [2 ** (8 * width) - 2, None, 7]


def test_integers_are_as_wide_as_debeziums() -> None:
    def width(type_: str, *, unsigned: bool = False) -> str:
        return str(schema_of(Column("c", type_, unsigned=unsigned))[0])

    signed = [width(type_) for type_ in ("tinyint", "smallint", "mediumint", "int", "bigint")]
    assert signed == ["int16", "int16", "int32", "int32", "int64"]
    unsigned = [width(type_, unsigned=True) for type_ in ("tinyint", "smallint", "mediumint", "int", "bigint")]
    assert unsigned == ["int16", "int32", "int32", "int64", "int64"]
    assert schema_of(Column("c", "year")) == ("int32", "Year", {})
    assert [schema_of(Column("c", type_))[0] for type_ in ("float", "double")] == ["float32", "float64"]


def test_numbers_of_zerofill_columns_have_leading_zeros() -> None:
    assert parsed(Column("c", "int", unsigned=True), ["00042", "00000", None]) == [42, 0, None]
    assert parsed(Column("c", "year"), ["0000", "2024"]) == [0, 2024]


def test_a_year_is_counted_from_1900_and_0_is_0() -> None:
    assert decoded(Column("c", "year"), [b"\x00", b"\x01", b"\xff", None]) == [0, 1901, 2155, None]


def test_unsigned_bigints_use_all_64_bits() -> None:
    assert parsed(UNSIGNED, [str(2**64 - 1), "0", None]) == [2**64 - 1, 0, None]


def test_unsigned_bigints_follow_their_mode() -> None:
    assert connected(UNSIGNED, [2**64 - 1, 1]) == [-1, 1]
    assert connected(UNSIGNED, [2**64 - 1, 1], Modes(bigint_unsigned="precise")) == [b"\x00" + b"\xff" * 8, b"\x01"]
    assert schema_of(UNSIGNED) == ("int64", None, {})
    assert schema_of(UNSIGNED, bigint_unsigned="precise")[2] == {"scale": "0", "connect.decimal.precision": "20"}


@given(st.lists(st.none() | st.integers(0, 2**64 - 1)))
def test_an_unsigned_bigint_wraps_as_debezium_does_or_is_a_decimal(values: list[int | None]) -> None:
    wrapped = [None if v is None else v - (2**64 if v >= 2**63 else 0) for v in values]
    assert encoded(UNSIGNED, values) == wrapped
    precise = [None if v is None else base64.b64encode(java_bytes(v)).decode() for v in values]
    assert encoded(UNSIGNED, values, Modes(bigint_unsigned="precise")) == precise


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_numbers(values: list[int | None]) -> None:
    assert encoded(Column("c", "bigint"), values) == values


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_doubles_read_back_the_same(values: list[float | None]) -> None:
    assert encoded(Column("c", "double"), values) == values
    stored = [None if value is None else struct.pack("<d", value) for value in values]
    assert decoded(Column("c", "double"), stored) == values


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_floats_read_back_the_same_as_floats(values: list[float]) -> None:
    column, stored = Column("c", "float"), [struct.pack("<f", value) for value in values]
    texts = describe(column, TABLE).to_json(pa.array(values, pa.float32()), Modes()).to_pylist()
    assert [struct.pack("<f", np.float32(text)) for text in texts] == stored
    assert decoded(column, stored) == values


def test_floats_are_selected_as_doubles_so_that_no_digit_is_lost() -> None:
    assert describe(Column("c", "float"), TABLE).select("`c`") == "(`c` * 1e0)"
    assert describe(Column("c", "int"), TABLE).select("`c`") == "`c`"
    assert parsed(Column("c", "float"), ["0.10000000149011612", "-0", "3.4028234663852886e38"]) == [
        0.10000000149011612,
        0.0,
        3.4028234663852886e38,
    ]


def test_bits_are_a_flag_or_bytes_from_the_lowest_on() -> None:
    assert connected(Column("c", "bit", length=1), [1, 0, None]) == [True, False, None]
    assert connected(Column("c", "bit", length=9), [258, 1, None]) == [b"\x02\x01", b"\x01\x00", None]
    assert connected(Column("c", "bit", length=64), [1 << 63]) == [bytes(7) + b"\x80"]
    assert schema_of(Column("c", "bit", length=1)) == ("boolean", None, {})
    assert schema_of(Column("c", "bit", length=9)) == ("bytes", "Bits", {"length": "9"})


def test_bits_are_big_endian_in_the_binlog_and_a_number_in_a_select() -> None:
    column = Column("c", "bit", length=9)
    assert decoded(column, [b"\x01\x02", None]) == parsed(column, ["258", None]) == [258, None]
    assert describe(column, TABLE).select("`c`") == "(`c` + 0)"


@pytest.mark.parametrize(
    ("column", "shown", "value"),
    [
        (Column("c", "int"), "-5", -5),
        (Column("c", "int"), "five", None),
        (UNSIGNED, str(2**64 - 1), -1),
        (Column("c", "double"), "1.50", 1.5),
        (Column("c", "bit", length=1), "b'1'", True),
        (Column("c", "bit", length=9), "b'100000010'", base64.b64encode(b"\x02\x01").decode()),
        (Column("c", "bit", length=9), "258", None),
    ],
)
def test_a_default_is_shown_as_the_column_would_hold_it(column: Column, shown: str, value: Any) -> None:
    assert default_of(column, shown) == value
