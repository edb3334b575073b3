"""The types for integers, YEAR, FLOAT, DOUBLE and BIT.

Arrow parses the text protocol's numbers, 6 to 25 ns a value. FLOAT and DOUBLE are selected as `(col * 1e0)`. MySQL
prints a FLOAT with 6 significant digits and a DOUBLE(M,D) with D decimals; either loses bits. The product is a DOUBLE
without a display format, which is printed with as many digits as read back the same number. (`+ 0e0` would turn -0 into
0.)

A table map does not distinguish BOOLEAN from TINYINT, or FLOAT(M,D) from FLOAT. So the schema of a BOOLEAN is int16
(int8 as in Debezium 3.7), and that of a FLOAT(M,D) is float32.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.gather import floats, integers, primitive
from incsnap.columns.packets import Spans
from incsnap.columns.variable import matrix, valid
from incsnap.connect import json_numbers
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema, decimal_schema
from incsnap.tables import Column
from incsnap.types.definition import Family, TypeDefinition, fixed_width
from incsnap.types.modes import Modes

#: Type -> (bytes in the binlog, bits of Connect's integer if signed, bits if unsigned).
_INTEGERS = {
    "tinyint": (1, 16, 16),
    "smallint": (2, 16, 32),
    "mediumint": (3, 32, 32),
    "int": (4, 32, 64),
    "bigint": (8, 64, 64),
}
#: Fewest bytes that hold all values of a column -> the integer type of a DataFrame.
_OF_FRAMES = {1: pa.int8(), 2: pa.int16(), 3: pa.int32(), 4: pa.int32(), 5: pa.int64(), 8: pa.int64()}
_BEYOND_INT64 = pa.decimal128(20, 0)
_BITS = re.compile(r"b'([01]+)'\Z")


def _signed_text(raw: BytesArray) -> Array:
    """Return the int64 numbers of decimal digits. Leading zeros (ZEROFILL, YEAR) are allowed."""
    return raw.cast(pa.string()).cast(pa.int64())


def _unsigned_text(raw: BytesArray) -> Array:
    return raw.cast(pa.string()).cast(pa.uint64())


def _integer(column: Column) -> TypeDefinition:
    width, *bits = _INTEGERS[column.type]
    if column.unsigned and width == 8:
        return _unsigned_bigint(column)
    schema = Schema(f"int{bits[column.unsigned]}", column.nullable)
    is_narrow = column.type == "tinyint" and not column.unsigned
    schema_of_3_7 = Schema("int8", column.nullable) if is_narrow else schema
    # The greatest MEDIUMINT UNSIGNED has 24 bits: three bytes and a sign are an int32 like three bytes alone.
    of_frame = _OF_FRAMES[width + (column.unsigned and width != 3)]

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, width, signed=not column.unsigned), spans.valid, pa.int64())

    return TypeDefinition(
        arrow=pa.int64(),
        field=fixed_width(width),
        decode=decode,
        from_text=_signed_text,
        schema=lambda modes: schema if modes.debezium == "3.6" else schema_of_3_7,
        frame=lambda values: values.cast(of_frame),
        frame_type=of_frame,
    )


def _unsigned_bigint(column: Column) -> TypeDefinition:
    """Return the definition of BIGINT UNSIGNED, the only integer that does not fit an int64.

    The mode `long` writes it as an int64. As in Debezium, numbers past 2**63 - 1 are then negative.
    """

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, 8, signed=False), spans.valid, pa.uint64())

    def schema(modes: Modes) -> Schema:
        precise = modes.bigint_unsigned == "precise"
        return decimal_schema(20, 0, column.nullable) if precise else Schema("int64", column.nullable)

    def connect(values: Array, modes: Modes) -> Array:
        precise = modes.bigint_unsigned == "precise"
        return json_numbers.decimal_bytes(values) if precise else values.view(pa.int64())

    def encode(values: Array, modes: Modes) -> Encoded:
        if modes.bigint_unsigned == "precise":
            return json_numbers.decimal_json(values, modes.json_decimals)
        return json_numbers.numbers(values.view(pa.int64()))

    return TypeDefinition(
        arrow=pa.uint64(),
        field=fixed_width(8),
        decode=decode,
        from_text=_unsigned_text,
        schema=schema,
        connect_values=connect,
        json_texts=encode,
        frame=lambda values: values.cast(_BEYOND_INT64),
        frame_type=_BEYOND_INT64,
    )


def _year(column: Column) -> TypeDefinition:
    """Return the definition of YEAR: one byte with the years since 1900; 0 is the year 0000."""
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

    def from_text(raw: BytesArray) -> Array:
        # The text of a FLOAT is that of the DOUBLE with exactly its value, so nothing is rounded twice.
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
    """Return the definition of BIT(n): n bits, big-endian, in as few bytes as hold them.

    One bit is a boolean. More bits are Debezium's Bits, which are little-endian; a DataFrame has them big-endian as
    MySQL.
    """
    bits, width = column.length, (column.length + 7) // 8
    schema = Schema("bytes", column.nullable, "io.debezium.data.Bits", 1, (("length", str(bits)),))
    if bits == 1:
        schema = Schema("boolean", column.nullable)

    def decode(spans: Spans) -> pa.Array:
        return primitive(integers(spans, width, signed=False, big=True), spans.valid, pa.uint64())

    def connect(values: Array, _modes: Modes) -> Array:
        return _flag(values) if bits == 1 else _low_bytes(values, width)

    def default(text: str) -> bytes | None:
        """Return the digits of the number that a bit string `b'101'` stands for; None for another text."""
        bits_text = _BITS.match(text)
        return str(int(bits_text[1], 2)).encode() if bits_text else None

    return TypeDefinition(
        arrow=pa.uint64(),
        field=fixed_width(width),
        decode=decode,
        from_text=_unsigned_text,
        schema=lambda _modes: schema,
        connect_values=connect,
        select=lambda sql: f"({sql} + 0)",
        printed_default=default,
        frame=_flag if bits == 1 else lambda values: _low_bytes(values, width, big=True),
        frame_type=pa.bool_() if bits == 1 else pa.binary(),
    )


def _flag(values: Array) -> Array:
    return pc.not_equal(values, pa.scalar(0, pa.uint64()))


def _low_bytes(values: Array, width: int, *, big: bool = False) -> Array:
    """Return the `width` low bytes of each uint64 (`pa.binary()`), little-endian unless `big`."""
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
