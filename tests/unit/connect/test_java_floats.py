"""Floating-point numbers as Java writes them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from incsnap.connect.java_floats import java_text


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_doubles_are_javas_text(values: list[float | None]) -> None:
    for text, value in zip(java_text(pa.array(values, pa.float64())).to_pylist(), values, strict=True):
        if value is None:
            assert text is None
            continue
        assert float(text) == value
        mantissa, _, exponent = text.lstrip("-").partition("E")
        assert "." in mantissa
        assert bool(exponent) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
        assert not exponent or (mantissa[1] == "." and mantissa[0] != "0")


def test_the_least_floats_have_two_digits() -> None:
    assert java_text(pa.array([4.9e-324, 2e-323, 1e-5, 1e7, -0.0, 100.0])).to_pylist() == [
        "4.9E-324", "2.0E-323", "1.0E-5", "1.0E7", "-0.0", "100.0"]  # fmt: skip
    assert java_text(pa.array([1e-45, 3.4028235e38], pa.float32())).to_pylist() == ["1.4E-45", "3.4028235E38"]
