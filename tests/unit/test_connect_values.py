"""Connect values and schemas of a column: every type under every mode, and that JSON text says the same as they do."""

from __future__ import annotations

import base64
import json
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.errors import IncsnapError
from incsnap.tables import Column, TableId
from incsnap.types.column_type import describe
from incsnap.types.java_floats import java_text
from incsnap.types.modes import CHOICES, Modes

TABLE = TableId("shop", "orders")
_POINT = b"\x01\x01\x00\x00\x00" + struct.pack("<dd", 1.5, -2)
_LINE = b"\x01\x02\x00\x00\x00" + struct.pack("<Idddd", 2, 0, 0, 1, 1)


def connect(column: Column, values: list[Any], modes: Modes | None = None) -> list[Any]:
    type_ = describe(column, TABLE)
    found = type_.connect(pa.array([None, *values], type_.arrow).slice(1), modes or Modes())
    found.validate(full=True)
    return list(found.to_pylist())


def schema(column: Column, **modes: str) -> Any:
    found = describe(column, TABLE).schema(Modes(**modes))
    return found.type, found.name and found.name.split(".")[-1], dict(found.parameters)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def test_bits_are_a_flag_or_bytes_from_the_lowest_on() -> None:
    assert connect(Column("c", "bit", length=1), [1, 0, None]) == [True, False, None]
    assert connect(Column("c", "bit", length=9), [258, 1, None]) == [b"\x02\x01", b"\x01\x00", None]
    assert connect(Column("c", "bit", length=64), [1 << 63]) == [bytes(7) + b"\x80"]
    assert schema(Column("c", "bit", length=1)) == ("boolean", None, {})
    assert schema(Column("c", "bit", length=9)) == ("bytes", "Bits", {"length": "9"})


def test_a_point_has_coordinates_and_another_geometry_only_bytes() -> None:
    point = Column("c", "point")
    values = [bytes(4) + _POINT, struct.pack("<I", 4326) + _POINT, None]
    assert connect(point, values) == [
        {"x": 1.5, "y": -2.0, "wkb": _POINT, "srid": None},
        {"x": 1.5, "y": -2.0, "wkb": _POINT, "srid": 4326},
        None,
    ]
    line = Column("c", "linestring", nullable=False)
    assert connect(line, [struct.pack("<I", 3857) + _LINE]) == [{"wkb": _LINE, "srid": 3857}]
    assert describe(line, TABLE).schema(Modes()).optional
    assert not describe(Column("c", "point", nullable=False), TABLE).schema(Modes()).optional
    text = describe(point, TABLE).to_json(pa.array(values, pa.binary()), Modes()).to_pylist()
    assert text[0] == f'{{"x":1.5,"y":-2.0,"wkb":"{base64.b64encode(_POINT).decode()}","srid":null}}'
    assert text[2] == "null"


@pytest.mark.parametrize("raw", [b"", bytes(4), bytes(4) + _LINE, bytes(5) + _POINT, bytes(4) + b"\x00" + _POINT[1:]])
def test_a_point_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"geometry|POINT"):
        connect(Column("c", "point"), [raw])


def test_a_vector_is_a_list_of_floats() -> None:
    column = Column("c", "vector")
    values = [struct.pack("<3f", 1, 0.1, 1e10), None, b""]
    assert connect(column, values[:1]) == [[1.0, struct.unpack("f", struct.pack("f", 0.1))[0], 1e10]]
    text = describe(column, TABLE).to_json(pa.array([None, *values], pa.binary()).slice(1), Modes()).to_pylist()
    assert text == ["[1.0,0.1,1.0E10]", "null", "[]"]
    with pytest.raises(ValueError, match="VECTOR"):
        connect(column, [b"abc"])


@given(st.lists(st.none() | st.integers(-(10**65) + 1, 10**65 - 1)), st.sampled_from([5, 18, 19, 38, 39, 65]))
def test_a_decimal_is_javas_bytes(values: list[int | None], precision: int) -> None:
    column = Column("c", "decimal", precision=precision, scale=2)
    unscaled = [None if v is None else v % 10**precision * (1 if v > 0 else -1) for v in values]
    # Through text: Python's decimal context would round 65 digits.
    decimals = [None if v is None else Decimal(f"{v}e-2") for v in unscaled]
    for value, found in zip(unscaled, connect(column, decimals), strict=True):
        if value is None:
            assert found is None
            continue
        assert int.from_bytes(found, "big", signed=True) == value
        assert len(found) == max(1, (value if value >= 0 else ~value).bit_length() // 8 + 1)


def test_decimals_and_unsigned_bigints_follow_their_modes() -> None:
    price, big = Column("c", "decimal", precision=5, scale=2), Column("c", "bigint", unsigned=True)
    assert connect(price, [Decimal("-1.50")], Modes(decimal_handling="string")) == ["-1.50"]
    assert connect(price, [Decimal("-1.50")], Modes(decimal_handling="double")) == [-1.5]
    assert connect(big, [2**64 - 1, 1]) == [-1, 1]
    assert connect(big, [2**64 - 1, 1], Modes(bigint_unsigned="precise")) == [b"\x00" + b"\xff" * 8, b"\x01"]
    parameters = {"scale": "2", "connect.decimal.precision": "5"}
    assert schema(price) == ("bytes", "Decimal", parameters)
    assert schema(price, decimal_handling="double") == ("float64", None, {})
    assert schema(big) == ("int64", None, {})
    assert schema(big, bigint_unsigned="precise")[2] == {"scale": "0", "connect.decimal.precision": "20"}


def test_bytes_follow_their_mode() -> None:
    column = Column("c", "blob", charset="binary")
    raw = b"\xfb\xef\xff\x00"
    assert connect(column, [raw, None]) == [raw, None]
    assert connect(column, [raw], Modes(binary_handling="base64")) == ["++//AA=="]
    assert connect(column, [raw], Modes(binary_handling="base64-url-safe")) == ["--__AA=="]
    assert connect(column, [raw], Modes(binary_handling="hex")) == ["fbefff00"]
    assert schema(column, binary_handling="hex") == ("string", None, {})


_T = "2024-02-29T12:34:56.789012"


@pytest.mark.parametrize(
    ("mode", "date", "time", "millis", "more"),
    [
        ("adaptive_time_microseconds", 19782, 45_296_789_012, 1709210096789, 1709210096789012),
        ("microseconds", 19782, 45_296_789_012, 1709210096789012, 1709210096789012),
        ("nanoseconds", 19782, 45_296_789_012_000, 1709210096789012000, 1709210096789012000),
        ("connect", 19782, 45_296_789, 1709210096789, 1709210096789),
        ("isostring", "2024-02-29Z", "12:34:56.789012Z", "2024-02-29T12:34:56.789012Z", "2024-02-29T12:34:56.789012Z"),
    ],
)
def test_times_follow_their_mode(mode: str, date: Any, time: Any, millis: Any, more: Any) -> None:
    modes = Modes(time_precision=mode)
    of_day = micros(_T) % 86_400_000_000
    assert connect(Column("c", "date"), [19782, None], modes) == [date, None]
    assert connect(Column("c", "time", fraction=6), [of_day, None], modes) == [time, None]
    assert connect(Column("c", "datetime", fraction=3), [micros(_T), None], modes) == [millis, None]
    assert connect(Column("c", "datetime", fraction=6), [micros(_T), None], modes) == [more, None]
    assert connect(Column("c", "timestamp", fraction=2), [micros(_T)], modes) == ["2024-02-29T12:34:56.78Z"]


@given(st.lists(st.none() | st.integers(micros("0100-01-01"), micros("9999-12-31")), max_size=8))
def test_iso_text_has_the_digits_it_needs(values: list[int | None]) -> None:
    for text, value in zip(
        connect(Column("c", "datetime", fraction=6), values, Modes(time_precision="isostring")), values, strict=True
    ):
        if value is None:
            assert text is None
            continue
        assert micros(text[:-1]) == value
        assert text[-1] == "Z"
        assert "." not in text or text[-2] != "0"


@pytest.mark.parametrize(
    ("mode", "date", "moment"),
    [("adaptive_time_microseconds", 0, 0), ("isostring", "1970-01-01Z", "1970-01-01T00:00:00Z"), ("nanoseconds", 0, 0)],
)
def test_a_zero_date_that_may_not_be_null_is_the_epoch(mode: str, date: Any, moment: Any) -> None:
    modes = Modes(time_precision=mode)
    assert connect(Column("c", "date", nullable=False), [None], modes) == [date]
    assert connect(Column("c", "datetime", nullable=False), [None], modes) == [moment]
    assert connect(Column("c", "timestamp", nullable=False, fraction=3), [None], modes) == ["1970-01-01T00:00:00Z"]


def test_years_of_two_digits_are_moved_unless_that_is_off() -> None:
    texts = ["0001-01-01", "0004-02-29", "0069-12-31", "0070-01-01", "0096-02-29", "0099-12-31", "0100-01-01"]
    moved = ["2001-01-01", "2004-02-29", "2069-12-31", "1970-01-01", "1996-02-29", "1999-12-31", "0100-01-01"]
    days, iso = [micros(text) // 86_400_000_000 for text in texts], Modes(time_precision="isostring")
    assert connect(Column("c", "date"), days, iso) == [f"{text}Z" for text in moved]
    assert connect(Column("c", "datetime"), [micros(t) for t in texts], iso) == [f"{t}T00:00:00Z" for t in moved]
    off = Modes(time_precision="isostring", time_adjuster="false")
    assert connect(Column("c", "date"), days, off) == [f"{text}Z" for text in texts]


@pytest.mark.parametrize(
    ("mode", "column", "good", "bad"),
    [
        ("connect", Column("c", "time"), [0, 86_400_000_000], [-1, 86_400_000_001]),
        ("isostring", Column("c", "time"), [0, 86_400_000_000], [-1, 86_400_000_001]),
        ("nanoseconds", Column("c", "datetime"), [2**63 // 1000, -(2**63 // 1000)], [2**63 // 1000 + 1]),
    ],
)
def test_what_a_mode_cannot_express_is_null_or_an_error(
    mode: str, column: Column, good: list[int], bad: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    modes = Modes(time_precision=mode)
    found = connect(column, [*good, *bad, None], modes)
    assert None not in found[: len(good)]
    assert found[len(good) :] == [None] * (len(bad) + 1)
    assert "shop.orders: column c" in caplog.text
    strict = Column("c", column.type, nullable=False)
    for refusing, with_mode in ((strict, modes), (column, Modes(time_precision=mode, converting="fail"))):
        with pytest.raises(IncsnapError, match=r"shop\.orders: column c .* cannot express") as caught:
            connect(refusing, [*good, *bad], with_mode)
        assert "time.precision.mode" in caught.value.hint


def test_integers_are_as_wide_as_debeziums() -> None:
    def width(type_: str, *, unsigned: bool = False) -> str:
        return str(schema(Column("c", type_, unsigned=unsigned))[0])

    signed = [width(type_) for type_ in ("tinyint", "smallint", "mediumint", "int", "bigint")]
    assert signed == ["int16", "int16", "int32", "int32", "int64"]
    unsigned = [width(type_, unsigned=True) for type_ in ("tinyint", "smallint", "mediumint", "int", "bigint")]
    assert unsigned == ["int16", "int32", "int32", "int64", "int64"]
    assert schema(Column("c", "year")) == ("int32", "Year", {})
    assert [schema(Column("c", type_))[0] for type_ in ("float", "double")] == ["float32", "float64"]


def test_the_allowed_values_are_in_the_schema() -> None:
    column = Column("c", "enum", charset="utf8mb4", values=("a,b", "it's", "back\\slash", "😀"))
    assert schema(column) == ("string", "Enum", {"allowed": "a\\,b,it's,back\\slash,?"})
    assert schema(Column("c", "set", charset="utf8mb4", values=("a", "b"))) == ("string", "EnumSet", {"allowed": "a,b"})


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


_COLUMNS = [
    *(Column("c", type_, nullable=True) for type_ in ("int", "year", "float", "double", "date", "json")),
    *(Column("c", type_, fraction=4) for type_ in ("time", "datetime", "timestamp")),
    Column("c", "bigint", unsigned=True), Column("c", "decimal", precision=9, scale=3),
    Column("c", "bit", length=1), Column("c", "bit", length=20), Column("c", "varchar", charset="latin1"),
    Column("c", "blob", charset="binary"), Column("c", "point"), Column("c", "polygon"), Column("c", "vector"),
    Column("c", "set", charset="utf8mb4", values=("a", "b")),
]  # fmt: skip
_SAMPLES: dict[str, list[Any]] = {
    "decimal": [Decimal("1.500"), Decimal("-0.001")], "varchar": ["a\"é", ""], "json": ['{"a":[1,"\\n"]}', "null"],
    "blob": [b"\x00\xff", b""], "point": [bytes(4) + _POINT], "polygon": [bytes(4) + _LINE], "set": ["a,b", ""],
    "vector": [struct.pack("<ff", 1, -2.5)], "date": [0, 19000], "float": [1.5, -2e10], "double": [1.5, 1e-7],
}  # fmt: skip


@pytest.mark.parametrize("column", _COLUMNS, ids=lambda column: f"{column.type}{column.length or ''}")
def test_json_text_says_what_the_connect_values_are(column: Column) -> None:
    type_ = describe(column, TABLE)
    array = pa.array([None, *_SAMPLES.get(column.type, [1, 0, 1_234_567]), None], type_.arrow).slice(1)
    for setting, choices in CHOICES.items():
        for choice in choices:
            modes = Modes(**{setting: choice})
            values = type_.connect(array, modes).to_pylist()
            assert [json.loads(text) for text in type_.to_json(array, modes).to_pylist()] == list(map(_in_json, values))


def _in_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return {name: _in_json(each) for name, each in value.items()} if isinstance(value, dict) else value
