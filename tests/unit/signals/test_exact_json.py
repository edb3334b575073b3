"""Tests of JSON whose numbers keep all their digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from signals import exact_json

LONG = "12345678901234567890.1234567891"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.10", 0.1),
        ("-0.0", -0.0),
        ("1.0E10", 1e10),
        ("1.7976931348623157E308", 1.7976931348623157e308),
        ("4.9E-324", 5e-324),
        (LONG, Decimal(LONG)),
        ("123456789012345678.91", Decimal("123456789012345678.91")),
        ("1e400", Decimal("1e400")),
        ("1e-400", Decimal("1e-400")),
        ("1e999999999999999999", Decimal("1e999999999999999999")),
        ("1e99999999999999999999", float("inf")),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_a_number_becomes_a_float_only_if_the_float_has_the_same_value(text: str, value: object) -> None:
    parsed = exact_json.parsed(text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"n": Decimal(LONG), "ä": ["x", Decimal("1E+999999999")]}, f'{{"n": {LONG}, "\\u00e4": ["x", 1E+999999999]}}'),
        ({"n": 0.1, "m": (1, None)}, '{"n": 0.1, "m": [1, null]}'),
        (Decimal("-2.50"), "-2.50"),
    ],
)
def test_a_decimal_is_written_with_all_its_digits(value: Any, text: str) -> None:
    assert exact_json.written(value) == text
    assert exact_json.parsed(text) == exact_json.parsed(exact_json.written(exact_json.parsed(text)))


def test_compact_json_has_no_blanks_and_all_characters() -> None:
    assert exact_json.written({"ä": [Decimal(LONG), "ö"]}, exact_json.COMPACT) == f'{{"ä":[{LONG},"ö"]}}'


@pytest.mark.parametrize("value", [{"a": object()}, [Decimal("NaN")]])
def test_a_value_that_json_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        exact_json.written(value)
