"""The type DECIMAL, in the three forms of `decimal.handling.mode`: Connect's Decimal, text, or a double."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.decimals import INT64_DIGITS, decimal_type, from_unscaled
from incsnap.columns.packed_decimal import packed_decimals, packed_size
from incsnap.columns.variable import dense, valid, variable
from incsnap.connect import json_numbers
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema, decimal_schema
from incsnap.tables import Column
from incsnap.types.definition import Family, TypeDefinition, fixed_width, unchanged
from incsnap.types.modes import Modes

#: Spark's decimals have 38 digits at most, MySQL's 65.
_FRAME_DIGITS = 38


def _decimal(column: Column) -> TypeDefinition:
    precision, scale = column.precision, column.scale

    def schema(modes: Modes) -> Schema:
        if modes.decimal_handling == "precise":
            return decimal_schema(precision, scale, column.nullable)
        return Schema("string" if modes.decimal_handling == "string" else "float64", column.nullable)

    return TypeDefinition(
        arrow=decimal_type(precision, scale),
        field=fixed_width(packed_size(precision, scale)),
        decode=lambda spans: packed_decimals(spans, precision, scale),
        from_text=lambda raw: _from_text(raw, precision, scale),
        schema=schema,
        connect_values=_connect,
        json_texts=_encode,
        # Doubles round values.
        rounded=True,
        frame=(lambda values: values.cast(pa.string())) if precision > _FRAME_DIGITS else unchanged,
        frame_type=pa.string() if precision > _FRAME_DIGITS else None,
    )


def _connect(values: Array, modes: Modes) -> Array:
    if modes.decimal_handling == "precise":
        return json_numbers.decimal_bytes(values)
    plain = json_numbers.plain_text(values)
    return plain if modes.decimal_handling == "string" else plain.cast(pa.float64())


def _encode(values: Array, modes: Modes) -> Encoded:
    if modes.decimal_handling == "precise":
        return json_numbers.decimal_json(values, modes.json_decimals)
    texts = _connect(values, modes)
    # Digits need no escaping.
    return Encoded(texts, quoted=True) if modes.decimal_handling == "string" else json_numbers.numbers(texts)


def _from_text(raw: BytesArray, precision: int, scale: int) -> Array:
    """Return the decimals of texts. The server prints exactly `scale` digits after the point.

    The point is removed, because Arrow parses integers four times as fast as decimals.
    """
    type_ = decimal_type(precision, scale)
    if precision > INT64_DIGITS:
        return raw.cast(pa.string()).cast(type_)
    unscaled = (_without_point(raw, scale) if scale else raw).cast(pa.string()).cast(pa.int64())
    values = np.asarray(unscaled.fill_null(0).to_numpy(zero_copy_only=False))
    return from_unscaled(values, type_, valid(raw))


def _without_point(raw: BytesArray, scale: int) -> Array:
    mask = valid(raw)
    offsets, data = dense(raw)
    n = len(raw)
    points = offsets[1:] - scale - 1
    keep = np.ones(len(data), np.bool_)
    if mask is None:
        keep[points] = False
        return variable(offsets - np.arange(n + 1, dtype=np.int32), data[keep], pa.binary())
    keep[points[mask]] = False
    shift = np.zeros(n + 1, np.int32)
    np.cumsum(mask, out=shift[1:])
    return variable(offsets - shift, data[keep], pa.binary(), mask)


TYPES: Family = {"decimal": _decimal}
