"""Encoding of whole columns against slow, plain Python: json, base64, decimal, datetime."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import struct
import tracemalloc
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.tables import Column, TableId
from incsnap.types import json_text
from incsnap.types.column_type import describe
from incsnap.types.json_text import escape
from incsnap.types.modes import Modes

TABLE = TableId("shop", "t")
texts = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])))
byte_strings = st.lists(st.none() | st.binary(max_size=40))


def encoded(column: Column, values: list[Any], modes: Modes | None = None, *, slice_by: int = 0) -> list[Any]:
    """What a reader of the JSON sees, of a column that may be a slice of a longer one."""
    type_ = describe(column, TABLE)
    array = pa.array(values[:1] * slice_by + values, type_.arrow).slice(slice_by if values else 0)
    return [json.loads(text) for text in type_.to_json(array, modes or Modes()).to_pylist()]


def java_bytes(unscaled: int) -> bytes:
    """BigInteger.toByteArray."""
    return unscaled.to_bytes((unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True)


@given(texts, st.integers(0, 3))
def test_text_reads_back_as_it_was(values: list[str | None], slice_by: int) -> None:
    assert encoded(Column("c", "varchar", charset="utf8mb4"), values, slice_by=slice_by) == values


def test_only_what_json_demands_is_escaped_and_as_jackson_does_it() -> None:
    text = '\x00\x01\x07\b\t\n\x0b\f\r\x1f "\\/\x7fé\u2028\U0001f600'
    expected = '\\u0000\\u0001\\u0007\\b\\t\\n\\u000B\\f\\r\\u001F \\"\\\\/\x7fé\u2028\\uD83D\\uDE00'
    assert escape(pa.array(["plain", text, None, "", text])).to_pylist() == ["plain", expected, None, "", expected]


@given(texts, st.integers(4, 12))
def test_a_text_is_escaped_alike_in_stretches_of_any_length(values: list[str | None], stretch: int) -> None:
    whole = escape(pa.array(values, pa.string())).to_pylist()
    with mock.patch.object(json_text, "_STRETCH", stretch):
        assert escape(pa.array(values, pa.string())).to_pylist() == whole


def test_escaping_a_long_text_takes_little_more_than_what_comes_of_it() -> None:
    text = pa.array(["\n" * (4 << 20)])
    tracemalloc.start()
    try:
        escaped = escape(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert escaped.nbytes > 2 * (4 << 20)
    # What NumPy holds: the 8 MB that come out, the 4 that go in, as a mask, and the vectors of one stretch (192 without
    # stretches).
    assert peak < 40 << 20


@given(byte_strings, st.integers(0, 3))
def test_bytes_are_padded_base64(values: list[bytes | None], slice_by: int) -> None:
    expected = [None if v is None else base64.b64encode(v).decode() for v in values]
    for handling in ("bytes", "base64"):
        modes = Modes(binary_handling=handling)
        assert encoded(Column("c", "blob", charset="binary"), values, modes, slice_by=slice_by) == expected


@given(byte_strings)
def test_bytes_in_the_other_modes(values: list[bytes | None]) -> None:
    column = Column("c", "varbinary", charset="binary")
    url = [None if v is None else base64.urlsafe_b64encode(v).decode() for v in values]
    assert encoded(column, values, Modes(binary_handling="base64-url-safe")) == url
    digits = [None if v is None else v.hex() for v in values]
    assert encoded(column, values, Modes(binary_handling="hex")) == digits


def decimals(precision: int, scale: int) -> st.SearchStrategy[list[Decimal | None]]:
    most = 10**precision - 1
    return st.lists(st.none() | st.integers(-most, most).map(lambda n: Decimal(f"{n}e-{scale}")))


@pytest.mark.parametrize(("precision", "scale"), [(1, 0), (5, 5), (12, 2), (18, 0), (18, 18)])
def test_a_precise_decimal_that_fits_64_bits_is_javas_big_integer(precision: int, scale: int) -> None:
    check_decimals(precision, scale)


@pytest.mark.parametrize(("precision", "scale"), [(19, 4), (38, 10), (39, 0), (65, 30)])
def test_a_precise_decimal_that_is_wider_is_javas_big_integer(precision: int, scale: int) -> None:
    check_decimals(precision, scale)


def check_decimals(precision: int, scale: int) -> None:
    column = Column("c", "decimal", precision=precision, scale=scale)

    @given(decimals(precision, scale), st.integers(0, 2))
    def compare(values: list[Decimal | None], slice_by: int) -> None:
        with decimal.localcontext(decimal.Context(prec=80)):
            unscaled = [None if v is None else int(v.scaleb(scale)) for v in values]
            plain = [None if v is None else f"{v:.{scale}f}" for v in values]
        precise = [None if v is None else base64.b64encode(java_bytes(v)).decode() for v in unscaled]
        assert encoded(column, values, slice_by=slice_by) == precise
        string = encoded(column, values, Modes(decimal_handling="string"), slice_by=slice_by)
        assert [None if s is None else s.removeprefix("-") for s in string] == [
            None if p is None else p.removeprefix("-") for p in plain
        ]
        assert [None if s is None else Decimal(s) for s in string] == values
        double = encoded(column, values, Modes(decimal_handling="double"), slice_by=slice_by)
        assert double == [None if v is None else float(v) for v in values]

    compare()


@pytest.mark.parametrize("edge", [0, 127, 128, 255, 256, 2**15 - 1, 2**15, 2**55 - 1, 2**55, 10**18 - 1])
def test_decimals_at_the_borders_of_a_byte(edge: int) -> None:
    values = [Decimal(edge), Decimal(-edge), Decimal(-edge - (edge < 10**18 - 1))]
    expected = [base64.b64encode(java_bytes(int(v))).decode() for v in values]
    assert encoded(Column("c", "decimal", precision=18), values) == expected
    assert encoded(Column("c", "decimal", precision=19), values) == expected


@given(st.lists(st.none() | st.integers(0, 2**64 - 1)))
def test_an_unsigned_bigint_wraps_as_debezium_does_or_is_a_decimal(values: list[int | None]) -> None:
    column = Column("c", "bigint", unsigned=True)
    wrapped = [None if v is None else v - (2**64 if v >= 2**63 else 0) for v in values]
    assert encoded(column, values) == wrapped
    precise = [None if v is None else base64.b64encode(java_bytes(v)).decode() for v in values]
    assert encoded(column, values, Modes(bigint_unsigned="precise")) == precise


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_numbers(values: list[int | None]) -> None:
    assert encoded(Column("c", "bigint"), values) == values


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_doubles_read_back_the_same(values: list[float | None]) -> None:
    assert encoded(Column("c", "double"), values) == values


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_floats_read_back_the_same_as_floats(values: list[float]) -> None:
    texts = describe(Column("c", "float"), TABLE).to_json(pa.array(values, pa.float32()), Modes()).to_pylist()
    assert [struct.pack("f", np.float32(text)) for text in texts] == [struct.pack("f", v) for v in values]


@given(st.lists(st.none() | st.integers(0, 2**31 * 10**6), max_size=5), st.integers(0, 6))
def test_a_timestamp_has_its_columns_digits_of_fraction(values: list[int | None], fraction: int) -> None:
    column = Column("c", "timestamp", fraction=fraction)
    step = 10 ** (6 - fraction)
    values = [None if v is None else v // step * step for v in values]
    expected: list[str | None] = []
    for value in values:
        if value is None:
            expected.append(None)
            continue
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
        digits = f".{moment.microsecond:06d}"[: fraction + 1] if fraction else ""
        expected.append(f"{moment:%Y-%m-%dT%H:%M:%S}{digits}Z")
    assert encoded(column, values, slice_by=1) == expected


def test_a_datetime_is_milliseconds_up_to_three_digits_and_microseconds_beyond() -> None:
    micros = [1_704_067_200_123_000, -1_000, None]
    assert encoded(Column("c", "datetime", fraction=3), micros) == [1_704_067_200_123, -1, None]
    assert encoded(Column("c", "datetime", fraction=4), micros) == micros


def test_a_zero_date_is_the_epoch_where_null_is_not_allowed() -> None:
    def one(type_: str, fraction: int = 0, *, nullable: bool) -> Any:
        return encoded(Column("c", type_, nullable=nullable, fraction=fraction), [None])[0]

    assert [one(t, nullable=False) for t in ("date", "datetime", "timestamp")] == [0, 0, "1970-01-01T00:00:00Z"]
    assert one("timestamp", 3, nullable=False) == "1970-01-01T00:00:00Z"
    assert [one(t, nullable=True) for t in ("date", "datetime", "timestamp")] == [None] * 3


def test_a_json_document_is_a_string_that_holds_it() -> None:
    document = '{"a":"x y","b":[1,2.50]}'
    assert encoded(Column("c", "json"), [document, None]) == [document, None]


CHARSETS = {"varchar": "utf8mb4", "blob": "binary"}
TYPES = [
    "int",
    "decimal",
    "float",
    "double",
    "varchar",
    "blob",
    "json",
    "date",
    "time",
    "datetime",
    "timestamp",
    "year",
]


@pytest.mark.parametrize(
    "column",
    [Column("c", type_, charset=CHARSETS.get(type_, ""), precision=10, scale=2) for type_ in TYPES],
    ids=lambda column: column.type,
)
def test_a_column_of_nulls_and_a_column_of_nothing(column: Column) -> None:
    assert encoded(column, [None, None]) == [None, None]
    assert encoded(column, []) == []
