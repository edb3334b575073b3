"""Connect values of every type as JSON text, as Connect's JsonConverter writes them, a whole column at a time.

This is the general way. Types with a measured faster way have it in their definition (`TypeDefinition.json_texts`).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.connect.json_bytes import base64
from incsnap.connect.json_numbers import numbers
from incsnap.connect.json_text import Encoded, literal, strings


def connect_json(values: Any) -> Encoded:
    """Return the JSON of Connect values, null for null.

    The values are booleans, numbers, strings, bytes (base64), structs of these, or lists of numbers.
    """
    kind = values.type
    if pa.types.is_string(kind):
        return strings(values)
    if pa.types.is_binary(kind):
        return Encoded(base64(values), quoted=True)
    if pa.types.is_struct(kind):
        return Encoded(_struct(values))
    if pa.types.is_list(kind):
        return Encoded(_list(values))
    return numbers(values)


def _struct(values: Any) -> Any:
    parts: list[Any] = []
    text = "{"
    for name, field in zip(values.type.names, values.flatten(), strict=True):
        parts += [text + literal(name) + ":", connect_json(field).complete().fill_null("null")]
        text = ","
    joined = pc.binary_join_element_wise(*parts, "}", "")
    return pc.if_else(values.is_valid(), joined, pa.scalar(None, pa.string()))


def _list(values: Any) -> Any:
    count = len(values)
    buffers = values.buffers()[:2]
    texts = pa.Array.from_buffers(
        pa.list_(pa.string()), count, buffers, offset=values.offset, children=[numbers(values.values).text]
    )
    return pc.binary_join_element_wise("[", pc.binary_join(texts, ","), "]", "")
