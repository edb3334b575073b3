"""Integers, YEAR, FLOAT, DOUBLE and BIT.

The text protocol's numbers are parsed by Arrow, 6 to 25 ns a value. FLOAT and DOUBLE are selected as ``(col * 1e0)``:
MySQL prints a FLOAT with 6 significant digits and a DOUBLE(M,D) with D decimals, either of which loses bits; the
product is a DOUBLE without a display format, printed with as many digits as read back the same. (``+ 0e0`` would turn
-0 into 0.) What a table map does not tell cannot be in a schema: BOOLEAN is int16 as any TINYINT, FLOAT(M,D) is float32
as any FLOAT.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.gather import floats, integers, primitive
from incsnap.columns.packets import Spans
from incsnap.columns.variable import matrix, valid
from incsnap.connect import json_numbers
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema, decimal_schema
from incsnap.tables import Column
from incsnap.types.definition import Family, TypeDefinition, fixed_width
from incsnap.types.modes import Modes

#: Bytes in the binlog, and bits of Connect's integer: signed, unsigned.
_INTEGERS = {
    "tinyint": (1, 16, 16),
    "smallint": (2, 16, 32),
    "mediumint": (3, 32, 32),
    "int": (4, 32, 64),
    "bigint": (8, 64, 64),
}
#: A DataFrame's integers by the least bytes that hold all values of the column.
_OF_FRAMES = {1: pa.int8(), 2: pa.int16(), 3: pa.int32(), 4: pa.int32(), 5: pa.int64(), 8: pa.int64()}
_BEYOND_INT64 = pa.decimal128(20, 0)
_BITS = re.compile(r"b'([01]+)'\Z")


def _signed_text(raw: Any) -> Any:
    """Gives int64 of decimal digits, leading zeros (ZEROFILL, YEAR) allowed."""
    return raw.cast(pa.string()).cast(pa.int64())


def _unsigned_text(raw: Any) -> Any:
    return raw.cast(pa.string()).cast(pa.uint64())


def _integer(column: Column) -> TypeDefinition:
    width, *bits = _INTEGERS[column.type]
    if column.unsigned and width == 8:
        return _unsigned_bigint(column)
    schema = Schema(f"int{bits[column.unsigned]}", column.nullable)
    # The greatest MEDIUMINT UNSIGNED has 24 bits: three bytes and a sign are an int32 like three bytes alone.
    of_frame = _OF_FRAMES[width + (column.unsigned and width != 3)]

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, width, signed=not column.unsigned), spans.valid, pa.int64())

    return TypeDefinition(
        arrow=pa.int64(),
        field=fixed_width(width),
        decode=decode,
        from_text=_signed_text,
        schema=lambda _modes: schema,
        frame=lambda values: values.cast(of_frame),
        frame_type=of_frame,
    )


def _unsigned_bigint(column: Column) -> TypeDefinition:
    """The only integer that does not fit an int64. ``long`` shows it as one, past 2**63 - 1 negative, as Debezium."""

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, 8, signed=False), spans.valid, pa.uint64())

    def schema(modes: Modes) -> Schema:
        precise = modes.bigint_unsigned == "precise"
        return decimal_schema(20, 0, column.nullable) if precise else Schema("int64", column.nullable)

    def connect(values: Any, modes: Modes) -> Any:
        precise = modes.bigint_unsigned == "precise"
        return json_numbers.decimal_bytes(values) if precise else values.view(pa.int64())

    def encode(values: Any, modes: Modes) -> Encoded:
        if modes.bigint_unsigned == "precise":
            return json_numbers.decimal_json(values, modes.json_decimals)
        return json_numbers.numbers(values.view(pa.int64()))

    return TypeDefinition(
        arrow=pa.uint64(),
        field=fixed_width(8),
        decode=decode,
        from_text=_unsigned_text,
        schema=schema,
        connect=connect,
        encode=encode,
        frame=lambda values: values.cast(_BEYOND_INT64),
        frame_type=_BEYOND_INT64,
    )


def _year(column: Column) -> TypeDefinition:
    """One byte: years since 1900, and 0 for the year 0000."""
    schema = Schema("int32", column.nullable, "io.debezium.time.Year", 1)

    def decode(spans: Spans) -> pa.Array:
        value = integers(spans, 1, signed=False).view(np.int64)
        return primitive(value + 1900 * (value > 0), spans.valid, pa.int64())

    return TypeDefinition(
        arrow=pa.int64(),
        field=fixed_width(1),
        decode=decode,
        from_text=_signed_text,
        schema=lambda _modes: schema,
        frame=lambda values: values.cast(pa.int32()),
        frame_type=pa.int32(),
    )


def _floating(column: Column) -> TypeDefinition:
    single = column.type == "float"
    width, type_ = (4, pa.float32()) if single else (8, pa.float64())
    schema = Schema("float32" if single else "float64", column.nullable)

    def decode(spans: Spans) -> pa.Array:
        return primitive(floats(spans, width), spans.valid, type_)

    def from_text(raw: Any) -> Any:
        # A FLOAT comes as the text of the DOUBLE that equals it exactly: nothing is rounded twice.
        doubles = raw.cast(pa.string()).cast(pa.float64())
        return doubles.cast(type_, safe=False) if single else doubles

    return TypeDefinition(
        arrow=type_,
        field=fixed_width(width),
        decode=decode,
        from_text=from_text,
        schema=lambda _modes: schema,
        select=lambda sql: f"({sql} * 1e0)",
    )


def _bit(column: Column) -> TypeDefinition:
    """BIT(n): n bits in as few bytes as hold them, big-endian. One bit is a flag, more are Debezium's Bits, which are
    little-endian; a DataFrame has them as MySQL does.
    """
    bits, width = column.length, (column.length + 7) // 8
    schema = Schema("bytes", column.nullable, "io.debezium.data.Bits", 1, (("length", str(bits)),))
    if bits == 1:
        schema = Schema("boolean", column.nullable)

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, width, signed=False, big=True), spans.valid, pa.uint64())

    def connect(values: Any, _modes: Modes) -> Any:
        return _flag(values) if bits == 1 else _low_bytes(values, width)

    def default(text: str) -> bytes | None:
        """Bit strings are printed as ``b'101'``."""
        bits_text = _BITS.match(text)
        return str(int(bits_text[1], 2)).encode() if bits_text else None

    return TypeDefinition(
        arrow=pa.uint64(),
        field=fixed_width(width),
        decode=decode,
        from_text=_unsigned_text,
        schema=lambda _modes: schema,
        connect=connect,
        select=lambda sql: f"({sql} + 0)",
        default=default,
        frame=_flag if bits == 1 else lambda values: _low_bytes(values, width, big=True),
        frame_type=pa.bool_() if bits == 1 else pa.binary(),
    )


def _flag(values: Any) -> Any:
    return pc.not_equal(values, pa.scalar(0, pa.uint64()))


def _low_bytes(values: Any, width: int, *, big: bool = False) -> Any:
    """The ``width`` low bytes of each uint64, little-endian unless ``big``."""
    numbers = np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), "<u8")
    low = numbers.view(np.uint8).reshape(-1, 8)[:, :width]
    data = np.ascontiguousarray(low[:, ::-1] if big else low)
    return matrix(data.reshape(-1), len(values), width, pa.binary(), valid(values))


TYPES: Family = {
    **dict.fromkeys(_INTEGERS, _integer),
    "year": _year,
    "float": _floating,
    "double": _floating,
    "bit": _bit,
}
