"""Connect schemas as JSON Schema (draft 7), as Confluent's JsonSchemaConverter registers them.

A field that may be null is a `oneOf` of null and its type. Members that begin with `connect.` keep what JSON Schema has
no word for: the type, its version and parameters, and the place of a field.
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/serdes-json.html
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from incsnap.connect.json_schema import json_text
from incsnap.connect.schema import Schema

_INTEGERS = ("int8", "int16", "int32", "int64")
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


@lru_cache(maxsize=4096)
def draft_schema(schema: Schema, *, decimals: str = "base64", closed: bool = False) -> str:
    """Return the JSON Schema of a key or value, without blanks.

    `decimals`: base64 or numeric, as Decimals are written. `closed`: objects have no other members
    (object.additional.properties=false).
    """
    return json_text(_written(schema, None, decimals, closed))


def _written(schema: Schema, place: int | None, decimals: str, closed: bool) -> dict[str, Any]:
    index = {} if place is None else {"connect.index": place}
    if schema.optional:
        inner = _written(schema.as_optional(False), None, decimals, closed)
        return {**index, "oneOf": [{"type": "null"}, inner]}
    written = _typed(schema, decimals)
    if schema.name is not None:
        written["title"] = schema.name
    if schema.doc is not None:
        written["description"] = schema.doc
    if schema.default is not None:
        written["default"] = schema.default
    written |= index
    if schema.version is not None:
        written["connect.version"] = schema.version
    if schema.type in (*_INTEGERS, "float32", "float64", "bytes", "map"):
        written["connect.type"] = schema.type
    if schema.parameters:
        written["connect.parameters"] = dict(schema.parameters)
    if schema.type == "struct":
        fields = enumerate(schema.fields)
        written["properties"] = {name: _written(inner, at, decimals, closed) for at, (name, inner) in fields}
        if closed:
            written["additionalProperties"] = False
    elif schema.items is not None:
        inner = _written(schema.items, None, decimals, closed)
        written["items" if schema.type == "array" else "additionalProperties"] = inner
    return written


def _typed(schema: Schema, decimals: str) -> dict[str, Any]:
    """Return the type as JSON Schema has it."""
    if schema.type in _INTEGERS:
        return {"type": "integer"}
    if schema.type in ("float32", "float64"):
        return {"type": "number"}
    if schema.name == _DECIMAL and decimals == "numeric":
        return {"type": "number"}
    return {"type": {"struct": "object", "map": "object", "bytes": "string"}.get(schema.type, schema.type)}
