"""Values that a Cast gives another type, as Kafka Connect converts them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from incsnap.connect.schema import Schema
from incsnap.envelope.casts import cast_schema, cast_values
from incsnap.errors import ValueRefused

_DATA = "org.apache.kafka.connect.data."
_DAY = 86_400_000


@pytest.mark.parametrize(
    ("name", "type_", "number", "text"),
    [
        ("Date", pa.int32(), 19_782, "2024-02-29"),
        ("Date", pa.int32(), 1, "1970-01-02"),
        ("Date", pa.int32(), 0, "00:00:00.000Z"),
        ("Date", pa.int32(), -1, "00:00:00.000Z"),
        ("Date", pa.int32(), None, None),
        ("Time", pa.int32(), 45_296_789, "12:34:56.789Z"),
        ("Timestamp", pa.int64(), 19_782 * _DAY + 45_296_000, "2024-02-29T12:34:56.000Z"),
        ("Timestamp", pa.int64(), 19_782 * _DAY, "2024-02-29"),
        ("Timestamp", pa.int64(), -1, "23:59:59.999Z"),
    ],
)
def test_connects_times_become_the_texts_that_connect_formats(name: str, type_: Any, number: Any, text: Any) -> None:
    given = pa.array([number, None], type_)
    assert cast_values(given, "string", _DATA + name).to_pylist() == [text, None]


def test_a_default_is_formatted_like_the_values() -> None:
    cast = cast_schema(Schema("int32", name=_DATA + "Date", default=19_782), "string", "d.t.day")
    assert cast == Schema("string", default="2024-02-29")


def test_a_time_that_is_a_number_to_connect_stays_one() -> None:
    assert cast_values(pa.array([19_782], pa.int32()), "string", "io.debezium.time.Date").to_pylist() == ["19782"]


def test_a_float_below_one_is_false_to_java() -> None:
    given = pa.array([0.5, -0.9, 1.0, -1.5, float("nan"), 1e300, None])
    assert cast_values(given, "boolean").to_pylist() == [False, False, True, True, False, True, None]


def test_javas_whole_numbers_have_decimal_digits_and_a_sign() -> None:
    assert cast_values(pa.array(["+10", "-10", "007", None]), "int32").to_pylist() == [10, -10, 7, None]
    for text in ("0x10", "0X10", "-0x10", "+-1", "++1", "1.0", ""):
        with pytest.raises(ValueRefused, match="no such number"):
            cast_values(pa.array([text]), "int32")
