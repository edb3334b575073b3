"""Connect schemas as JSON, as Kafka Connect's JsonConverter puts them before a payload.

https://github.com/apache/kafka/blob/trunk/connect/json/src/main/java/org/apache/kafka/connect/json/JsonSchema.java
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from incsnap.connect.java_floats import java_text
from incsnap.connect.json_text import literal
from incsnap.connect.schema import Schema

#: Connect's types with another name in JSON.
_NAMES = {"float32": "float", "float64": "double"}


@lru_cache(maxsize=4096)
def schema_json(schema: Schema) -> str:
    """Return the schema as JSON without blanks. Strings are escaped as in records."""
    return json_text(_written(schema))


def _written(schema: Schema, field: str | None = None) -> dict[str, Any]:
    written: dict[str, Any] = {"type": _NAMES.get(schema.type, schema.type)}
    if schema.type == "struct":
        written["fields"] = [_written(inner, name) for name, inner in schema.fields]
    elif schema.type == "array":
        written["items"] = _written(_items(schema))
    elif schema.type == "map":
        written["keys"] = {"type": "string", "optional": False}
        written["values"] = _written(_items(schema))
    written["optional"] = schema.optional
    if schema.name is not None:
        written["name"] = schema.name
    if schema.version is not None:
        written["version"] = schema.version
    if schema.doc is not None:
        written["doc"] = schema.doc
    if schema.parameters:
        written["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        written["default"] = schema.default
    if field is not None:
        written["field"] = field
    return written


def _items(schema: Schema) -> Schema:
    assert schema.items is not None, f"a {schema.type} without items"
    return schema.items


def json_text(value: Any) -> str:
    """Return dicts, lists and primitives as JSON without blanks, as Java writes numbers and strings."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{literal(name)}:{json_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, float):
        return str(java_text(pa.array([value], pa.float64()))[0].as_py())
    # Java prints decimals as Python does.
    return str(value) if isinstance(value, Decimal) else json.dumps(value)
