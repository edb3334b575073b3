"""Connect values in Arrow: the types of columns, and one value as an array."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from incsnap.connect.schema import Schema

#: Connect type -> Arrow type of its values.
ARROW = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), pa.int64()),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


def one_value(schema: Schema, value: Any) -> Any:
    """Return an array with one element, `value`.

    `value` is as Connect's JsonConverter writes a value: bytes are base64. A missing field has its default, or is null.
    """
    return pa.array([_plain(schema, value)], _type(schema))


def _type(schema: Schema) -> Any:
    if schema.type == "struct":
        return pa.struct([(name, _type(inner)) for name, inner in schema.fields])
    if schema.items is not None:
        inner = _type(schema.items)
        return pa.list_(inner) if schema.type == "array" else pa.map_(pa.string(), inner)
    return ARROW[schema.type]


def _plain(schema: Schema, value: Any) -> Any:
    value = schema.default if value is None else value
    if value is None:
        return None
    if schema.type == "bytes":
        return base64.b64decode(value)
    if schema.type == "struct":
        return {name: _plain(inner, value.get(name)) for name, inner in schema.fields}
    if schema.items is not None and schema.type == "array":
        return [_plain(schema.items, item) for item in value]
    if schema.items is not None:
        return [(name, _plain(schema.items, item)) for name, item in value.items()]
    return value
