"""A test of Protobuf by whole columns: google.protobuf reads every value back, and writes the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.connect.proto_columns import ProtoRow, decimal_digits
from incsnap.connect.proto_schema import ProtoStyle, proto_text
from incsnap.connect.schema import Schema, decimal_schema
from incsnap.errors import IncsnapError
from tests.support.proto_reader import read_message, seen

_CONNECT = "org.apache.kafka.connect.data."
STYLES = [ProtoStyle(), ProtoStyle(optional=True), ProtoStyle(wrapped=True), ProtoStyle(optional=True, wrapped=True)]
POINT = Schema(
    "struct",
    name="io.debezium.data.geometry.Point",
    fields=(
        ("x", Schema("float64")),
        ("y", Schema("float64")),
        ("wkb", Schema("bytes", optional=True)),
        ("srid", Schema("int32", optional=True)),
    ),
)
POINTS = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("wkb", pa.binary()), ("srid", pa.int64())])
INT64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-2, 2),
    st.sampled_from([(1 << (7 * k)) + d for k in range(1, 9) for d in (-1, 0, 1)]),
)
INT32 = st.integers(-(2**31), 2**31 - 1)
FLOAT32 = st.floats(width=32, allow_nan=False)
FLOAT64 = st.floats(allow_nan=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def unscaled(number: int) -> bytes:
    """Return the shortest big-endian two's complement of `number`, as Java's BigInteger has it."""
    return number.to_bytes(((number if number >= 0 else -number - 1).bit_length() + 8) // 8, "big", signed=True)


#: schema, Arrow type, values
KINDS: dict[str, tuple[Schema, Any, st.SearchStrategy[Any]]] = {
    "int8": (Schema("int8"), pa.int64(), st.integers(-128, 127)),
    "int16": (Schema("int16"), pa.int64(), st.integers(-(2**15), 2**15 - 1)),
    "int32": (Schema("int32"), pa.int64(), INT32),
    "int64": (Schema("int64"), pa.int64(), INT64),
    "float32": (Schema("float32"), pa.float32(), FLOAT32),
    "float64": (Schema("float64"), pa.float64(), FLOAT64),
    "boolean": (Schema("boolean"), pa.bool_(), st.booleans()),
    "string": (Schema("string"), pa.string(), TEXT),
    "bytes": (Schema("bytes"), pa.binary(), st.binary(max_size=200)),
    "point": (
        POINT,
        POINTS,
        st.fixed_dictionaries(
            {"x": FLOAT64, "y": FLOAT64, "wkb": st.none() | st.binary(max_size=9), "srid": st.none() | INT32}
        ),
    ),
    "floats": (Schema("array", items=Schema("float32")), pa.list_(pa.float32()), st.lists(FLOAT32, max_size=5)),
    "numbers": (Schema("array", items=Schema("int64")), pa.list_(pa.int64()), st.lists(INT64, max_size=5)),
    "texts": (Schema("array", items=Schema("string")), pa.list_(pa.string()), st.lists(TEXT, max_size=5)),
    "decimal": (
        decimal_schema(65, 3, optional=False),
        pa.binary(),
        st.one_of(st.integers(-(10**65) + 1, 10**65 - 1), st.integers(-1000, 1000), INT64).map(unscaled),
    ),
    "date": (Schema("int32", name=f"{_CONNECT}Date"), pa.int64(), st.integers(-719162, 2932896)),
    "time": (Schema("int32", name=f"{_CONNECT}Time"), pa.int64(), st.integers(0, 86_399_999)),
    "timestamp": (Schema("int64", name=f"{_CONNECT}Timestamp"), pa.int64(), st.integers(-(2**45), 2**45)),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Schema], list[dict[str, Any]]]:
    # More than 15 fields have numbers that take two bytes.
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=18))
    schemas, values = {}, {}
    for index, kind in enumerate(names):
        schema, _, strategy = KINDS[kind]
        optional = draw(st.booleans())
        schemas[f"{kind}_{index}"] = schema.as_optional(optional)
        values[f"{kind}_{index}"] = st.none() | strategy if optional else strategy
    return schemas, draw(st.lists(st.fixed_dictionaries(values), max_size=6))


def encoded(schemas: Mapping[str, Schema], rows: list[dict[str, Any]], style: ProtoStyle, start: int = 0) -> Any:
    row = ProtoRow(len(rows) - start, style)
    for number, (name, schema) in enumerate(schemas.items(), 1):
        type_ = KINDS[name.rpartition("_")[0]][1]
        row.field(number, name, schema, pa.array([values[name] for values in rows], type_)[start:])
    return row.joined()


@given(tables(), st.sampled_from(STYLES))
def test_protobuf_reads_every_row_back(
    table: tuple[dict[str, Schema], list[dict[str, Any]]], style: ProtoStyle
) -> None:
    schemas, rows = table
    whole = Schema("struct", name="a.Row", fields=tuple(schemas.items()))
    written = encoded(schemas, rows, style)

    written.validate(full=True)
    assert written.type == pa.binary()
    text = proto_text(whole, style)
    assert [read_message(data, text) for data in written.to_pylist()] == [seen(whole, values, style) for values in rows]


@given(tables(), st.sampled_from(STYLES))
def test_a_slice_is_encoded_like_the_rows_it_holds(
    table: tuple[dict[str, Schema], list[dict[str, Any]]], style: ProtoStyle
) -> None:
    schemas, rows = table
    start = len(rows) // 2
    assert encoded(schemas, rows, style, start).to_pylist() == encoded(schemas, rows, style).to_pylist()[start:]


def test_a_negative_zero_and_no_number_are_no_defaults() -> None:
    row = ProtoRow(3, ProtoStyle())
    row.field(1, "n", Schema("float64"), pa.array([-0.0, math.nan, 0.0]))
    assert [len(data) for data in row.joined().to_pylist()] == [9, 9, 0]


@given(st.lists(st.integers(-(10**65) + 1, 10**65 - 1) | INT64))
def test_digits_are_those_of_the_number_without_its_sign(numbers: list[int]) -> None:
    values = pa.array(list(map(unscaled, numbers)), pa.binary())
    assert decimal_digits(values).tolist() == [len(str(abs(number))) for number in numbers]


def test_a_null_where_none_may_be_is_refused_by_the_fields_name() -> None:
    row = ProtoRow(1, ProtoStyle())
    with pytest.raises(IncsnapError, match=r"Field place\.x has a null"):
        row.field(1, "place", POINT, pa.array([{"x": None, "y": 1.0}], POINTS))
    with pytest.raises(IncsnapError, match=r"Field texts\[\] has a null"):
        row.field(1, "texts", KINDS["texts"][0], pa.array([["a", None]], pa.list_(pa.string())))


def test_numbers_of_all_lengths_stand_in_their_rows() -> None:
    values = np.int64(1) << (np.arange(10_000, dtype=np.int64) % 63)
    row = ProtoRow(len(values), ProtoStyle())
    row.field(1, "n", Schema("int64"), pa.array(values))
    row.field(2, "m", Schema("int64"), pa.array(-values))
    text = proto_text(Schema("struct", name="R", fields=(("n", Schema("int64")), ("m", Schema("int64")))), ProtoStyle())
    joined = row.joined()
    for index in range(0, len(values), 97):
        value = int(values[index])
        assert read_message(joined[index].as_py(), text) == {"n": value, "m": -value}
