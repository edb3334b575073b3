"""A test of Avro by whole columns: fastavro reads every value back."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Mapping
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from incsnap.connect.avro_columns import AvroRow, one
from incsnap.connect.avro_schema import avro_schema
from incsnap.connect.schema import Schema
from incsnap.errors import IncsnapError

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
    st.integers(-70, 70),
    st.sampled_from([sign * (1 << (7 * k - 1)) + d for k in range(1, 10) for sign in (-1, 1) for d in (-1, 0, 1)]),
)
INT32 = st.integers(-(2**31), 2**31 - 1)
FLOAT32 = st.floats(width=32, allow_nan=False)
FLOAT64 = st.floats(allow_nan=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
POINT_VALUE = st.fixed_dictionaries(
    {"x": FLOAT64, "y": FLOAT64, "wkb": st.none() | st.binary(max_size=9), "srid": st.none() | INT32}
)

#: schema, Arrow type, values
KINDS: dict[str, tuple[Schema, Any, st.SearchStrategy[Any]]] = {
    "int16": (Schema("int16"), pa.int64(), st.integers(-(2**15), 2**15 - 1)),
    "int32": (Schema("int32"), pa.int64(), INT32),
    "int64": (Schema("int64"), pa.int64(), INT64),
    "float32": (Schema("float32"), pa.float32(), FLOAT32),
    "float64": (Schema("float64"), pa.float64(), FLOAT64),
    "boolean": (Schema("boolean"), pa.bool_(), st.booleans()),
    "string": (Schema("string"), pa.string(), TEXT),
    "bytes": (Schema("bytes"), pa.binary(), st.binary(max_size=200)),
    "point": (POINT, POINTS, POINT_VALUE),
    "vector": (Schema("array", items=Schema("float32")), pa.list_(pa.float32()), st.lists(FLOAT32, max_size=5)),
    "texts": (
        Schema("array", items=Schema("string", optional=True)),
        pa.list_(pa.string()),
        st.lists(st.none() | TEXT),
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Schema], list[dict[str, Any]]]:
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6))
    schemas, values = {}, {}
    for index, kind in enumerate(names):
        schema, _, strategy = KINDS[kind]
        optional = draw(st.booleans())
        schemas[f"{kind}_{index}"] = schema.as_optional(optional)
        values[f"{kind}_{index}"] = st.none() | strategy if optional else strategy
    return schemas, draw(st.lists(st.fixed_dictionaries(values), max_size=8))


def encoded(schemas: Mapping[str, Schema], rows: list[dict[str, Any]], start: int = 0) -> Any:
    row = AvroRow(len(rows) - start)
    for name, schema in schemas.items():
        type_ = KINDS[name.rpartition("_")[0]][1]
        row.field(name, schema, pa.array([values[name] for values in rows], type_)[start:])
    return row.joined()


def read(schemas: Mapping[str, Schema], data: bytes) -> Any:
    parsed = fastavro.parse_schema(avro_schema(Schema("struct", name="a.Row", fields=tuple(schemas.items()))))
    stream = io.BytesIO(data)
    value = fastavro.schemaless_reader(stream, parsed, None)
    assert stream.read() == b"", "bytes are left"
    return value


@given(tables())
def test_fastavro_reads_every_row_back(table: tuple[dict[str, Schema], list[dict[str, Any]]]) -> None:
    schemas, rows = table
    written_rows = encoded(schemas, rows)

    written_rows.validate(full=True)
    assert written_rows.type == pa.binary()
    assert [read(schemas, data) for data in written_rows.to_pylist()] == rows


@given(tables())
def test_a_slice_is_encoded_like_the_rows_it_holds(table: tuple[dict[str, Schema], list[dict[str, Any]]]) -> None:
    schemas, rows = table
    start = len(rows) // 2
    assert encoded(schemas, rows, start).to_pylist() == encoded(schemas, rows).to_pylist()[start:]


@given(st.lists(INT64, min_size=1))
@example([2**63 - 1, -(2**63), 0, -1, 1])
@example([-(2**63)])
@example([63, -64])
@example([64, -65])
def test_numbers_have_the_bytes_that_fastavro_writes(values: list[int]) -> None:
    row = AvroRow(len(values))
    row.field("n", Schema("int64"), pa.array(values, pa.int64()))

    assert row.joined().to_pylist() == [written("long", value) for value in values]


@given(FLOAT64 | st.just(math.nan), FLOAT32 | st.just(math.nan))
def test_floats_have_the_bytes_that_fastavro_writes(wide: float, narrow: float) -> None:
    assert one(Schema("float64"), wide) == written("double", wide)
    assert one(Schema("float32"), narrow) == struct.pack("<f", narrow)


@given(st.none() | TEXT)
def test_a_field_with_a_default_has_null_as_its_second_member(value: str | None) -> None:
    schema = Schema("string", optional=True, default="false")

    assert one(schema, value) == written(["string", "null"], value)


def test_a_null_where_none_may_be_is_refused_by_the_fields_name() -> None:
    row = AvroRow(2)
    with pytest.raises(IncsnapError, match=r"Field place\.x has a null"):
        row.field("place", POINT, pa.array([{"x": None, "y": 1.0}, None], POINTS)[:1])


def test_rows_of_literals_alone_are_all_alike() -> None:
    row = AvroRow(3)
    row.literal(b"\x00\x01")
    assert row.joined().to_pylist() == [b"\x00\x01"] * 3


def test_numbers_of_all_lengths_stand_in_their_rows() -> None:
    values = np.int64(1) << (np.arange(100_000, dtype=np.int64) % 63)
    row = AvroRow(len(values))
    row.field("n", Schema("int64"), pa.array(values))
    row.field("m", Schema("int64"), pa.array(-values))
    joined = row.joined()
    for index in range(0, len(values), 997):
        value = int(values[index])
        assert joined[index].as_py() == written("long", value) + written("long", -value)


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()
