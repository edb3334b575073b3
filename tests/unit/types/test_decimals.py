"""DECIMAL: in from both sources, out in its three forms."""

from __future__ import annotations

import base64
import decimal
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.connect.json_schema import schema_json
from incsnap.connect.schema import Schema
from incsnap.tables import Column, TableId
from incsnap.types.column_type import describe
from incsnap.types.modes import Modes
from tests.support.column_values import connected, decoded, default_of, encoded, parsed, schema_of
from tests.support.java import java_bytes
from tests.support.packets import packed_decimal

PRICE = Column("c", "decimal", precision=5, scale=2)


@pytest.mark.parametrize(("precision", "scale"), [(1, 0), (4, 4), (12, 2), (18, 6), (19, 3), (38, 0), (65, 30)])
def test_decimals_are_exact(precision: int, scale: int) -> None:
    most = 10**precision - 1

    @given(st.lists(st.none() | st.integers(-most, most)))
    def compare(values: list[int | None]) -> None:
        texts: list[str | None] = []
        for value in values:
            digits = None if value is None else str(abs(value)).rjust(scale + 1, "0")
            if digits is None or value is None:
                texts.append(None)
                continue
            sign = "-" if value < 0 else ""
            texts.append(sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits))
        column = Column("c", "decimal", precision=precision, scale=scale)
        with decimal.localcontext(decimal.Context(prec=80)):
            expected = [None if v is None else Decimal(v).scaleb(-scale) for v in values]
            assert parsed(column, texts) == expected
            stored = [None if v is None else packed_decimal(v, precision, scale) for v in values]
            assert decoded(column, stored) == expected

    compare()


def test_decimals_of_zerofill_columns_have_leading_zeros() -> None:
    assert parsed(Column("c", "decimal", precision=6, scale=2), ["0042.50"]) == [Decimal("42.50")]


def test_decimals_follow_their_mode() -> None:
    assert connected(PRICE, [Decimal("-1.50")], Modes(decimal_handling="string")) == ["-1.50"]
    assert connected(PRICE, [Decimal("-1.50")], Modes(decimal_handling="double")) == [-1.5]
    assert schema_of(PRICE) == ("bytes", "Decimal", {"scale": "2", "connect.decimal.precision": "5"})
    assert schema_of(PRICE, decimal_handling="double") == ("float64", None, {})
    assert schema_of(PRICE, decimal_handling="string") == ("string", None, {})


def test_a_default_follows_the_mode_too() -> None:
    assert default_of(PRICE, "1.50") == base64.b64encode(b"\x00\x96").decode()
    assert default_of(PRICE, "1.50", decimal_handling="string") == "1.50"
    assert default_of(PRICE, "much") is None


@given(st.lists(st.none() | st.integers(-(10**65) + 1, 10**65 - 1)), st.sampled_from([5, 18, 19, 38, 39, 65]))
def test_a_decimal_is_javas_bytes(values: list[int | None], precision: int) -> None:
    column = Column("c", "decimal", precision=precision, scale=2)
    unscaled = [None if v is None else v % 10**precision * (1 if v > 0 else -1) for v in values]
    # Through text: Python's decimal context would round 65 digits.
    decimals = [None if v is None else Decimal(f"{v}e-2") for v in unscaled]
    assert connected(column, decimals) == [None if value is None else java_bytes(value) for value in unscaled]


def some_decimals(precision: int, scale: int) -> st.SearchStrategy[list[Decimal | None]]:
    most = 10**precision - 1
    return st.lists(st.none() | st.integers(-most, most).map(lambda n: Decimal(f"{n}e-{scale}")))


@pytest.mark.parametrize(
    ("precision", "scale"), [(1, 0), (5, 5), (12, 2), (18, 0), (18, 18), (19, 4), (38, 10), (39, 0), (65, 30)]
)
def test_json_has_javas_big_integer_the_digits_or_a_double(precision: int, scale: int) -> None:
    column = Column("c", "decimal", precision=precision, scale=scale)

    @given(some_decimals(precision, scale))
    def compare(values: list[Decimal | None]) -> None:
        with decimal.localcontext(decimal.Context(prec=80)):
            unscaled = [None if v is None else int(v.scaleb(scale)) for v in values]
            plain = [None if v is None else f"{v:.{scale}f}" for v in values]
        precise = [None if v is None else base64.b64encode(java_bytes(v)).decode() for v in unscaled]
        assert encoded(column, values) == precise
        string = encoded(column, values, Modes(decimal_handling="string"))
        assert [None if s is None else s.removeprefix("-") for s in string] == [
            None if p is None else p.removeprefix("-") for p in plain
        ]
        assert [None if s is None else Decimal(s) for s in string] == values
        double = encoded(column, values, Modes(decimal_handling="double"))
        assert double == [None if v is None else float(v) for v in values]

    compare()


@pytest.mark.parametrize("edge", [0, 127, 128, 255, 256, 2**15 - 1, 2**15, 2**55 - 1, 2**55, 10**18 - 1])
def test_decimals_at_the_borders_of_a_byte(edge: int) -> None:
    values = [Decimal(edge), Decimal(-edge), Decimal(-edge - (edge < 10**18 - 1))]
    expected = [base64.b64encode(java_bytes(int(v))).decode() for v in values]
    assert encoded(Column("c", "decimal", precision=18), values) == expected
    assert encoded(Column("c", "decimal", precision=19), values) == expected


@pytest.mark.parametrize(
    ("scale", "unscaled", "text"),
    [
        (2, 150, "1.50"),
        (6, 0, "0.000000"),
        (6, -1, "-0.000001"),
        (7, 0, "0E-7"),
        (7, 10, "0.0000010"),
        (7, 9, "9E-7"),
        (9, -120, "-1.20E-7"),
        (30, 10**31, "10.000000000000000000000000000000"),
    ],
)
def test_decimals_are_numbers_as_java_prints_them(scale: int, unscaled: int, text: str) -> None:
    """Java's rules: https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/math/BigDecimal.html"""
    type_ = describe(Column("c", "decimal", precision=65, scale=scale), TableId("d", "t"))
    with decimal.localcontext(decimal.Context(prec=80)):
        values = pa.array([Decimal(unscaled).scaleb(-scale), None], type_.arrow)
    written = type_.encode(values, Modes(json_decimals="numeric"))
    assert written.complete().to_pylist() == [text, None]


def test_a_default_that_is_a_number_keeps_its_digits() -> None:
    numeric = {"json_decimals": "numeric"}
    assert schema_json(Schema("bytes", default=default_of(PRICE, "1.50", **numeric))).endswith('"default":1.50}')
    assert default_of(PRICE, "1.50") == "AJY="
    assert default_of(PRICE, "1.50", decimal_handling="double", **numeric) == 1.5
