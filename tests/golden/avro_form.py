"""Avro in Confluent's wire format as the golden files keep it: the schema, and the value in the words of JSON.

A byte 0 and four of the schema's number stand before each value. Numbers depend on the registry, so the schema itself
is kept. Bytes are base64; a float is the text of Python's shortest double, whatever its width.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import fastavro

from tests.golden.written_json import Number, parse

#: A schema's number -> its JSON.
SchemaOf = Callable[[int], str]

_HEADER = 5


class AvroForm:
    def __init__(self, schema_of: SchemaOf) -> None:
        self._schema_of = schema_of
        self._known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, data: bytes) -> dict[str, Any]:
        """Return `{"schema": ..., "payload": ...}`. Raise AssertionError if the bytes are not exactly one value."""
        assert data[0] == 0, data[:20]
        number = int.from_bytes(data[1:_HEADER], "big")
        if number not in self._known:
            text = self._schema_of(number)
            # Without logical types: what is decoded is what was written.
            self._known[number] = parse(text), fastavro.parse_schema(_bare(json.loads(text)))
        whole, bare = self._known[number]
        body = io.BytesIO(data[_HEADER:])
        payload = fastavro.schemaless_reader(body, bare, None)
        assert not body.read(), "bytes follow the value"
        return {"schema": whole, "payload": _plain(payload)}


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _bare(value) for name, value in schema.items() if name != "logicalType"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return Number(repr(value))
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
