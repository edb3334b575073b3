"""JSON Schemas of Connect schemas, in the form that Confluent's JsonSchemaConverter registers."""

from __future__ import annotations

import json

import pytest

from incsnap.connect.draft_schema import draft_schema
from incsnap.connect.schema import Schema, decimal_schema

_TEXT = Schema("string", optional=True)
_ENUM = Schema("string", True, "io.debezium.data.Enum", 1, (("allowed", "true,false"),), default="false")


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (Schema("int32"), {"type": "integer", "connect.type": "int32"}),
        (Schema("float64"), {"type": "number", "connect.type": "float64"}),
        (Schema("boolean", doc="a flag"), {"type": "boolean", "description": "a flag"}),
        (Schema("string", optional=True), {"oneOf": [{"type": "null"}, {"type": "string"}]}),
        (Schema("bytes"), {"type": "string", "connect.type": "bytes"}),
        (
            _ENUM,
            {
                "oneOf": [
                    {"type": "null"},
                    {
                        "type": "string",
                        "title": "io.debezium.data.Enum",
                        "default": "false",
                        "connect.version": 1,
                        "connect.parameters": {"allowed": "true,false"},
                    },
                ]
            },
        ),
        (
            Schema("array", items=Schema("int64")),
            {"type": "array", "items": {"type": "integer", "connect.type": "int64"}},
        ),
        (
            Schema("map", items=Schema("string")),
            {"type": "object", "connect.type": "map", "additionalProperties": {"type": "string"}},
        ),
        (
            Schema("struct", name="shop.Key", version=2, fields=(("id", Schema("int64")), ("a", _TEXT))),
            {
                "type": "object",
                "title": "shop.Key",
                "connect.version": 2,
                "properties": {
                    "id": {"type": "integer", "connect.index": 0, "connect.type": "int64"},
                    "a": {"connect.index": 1, "oneOf": [{"type": "null"}, {"type": "string"}]},
                },
            },
        ),
    ],
)
def test_a_schema_has_the_words_of_json_schema_and_those_of_connect(schema: Schema, written: object) -> None:
    assert json.loads(draft_schema(schema)) == written


def test_a_decimal_is_a_text_or_a_number_as_it_is_written() -> None:
    schema = decimal_schema(10, 2, optional=False)
    assert json.loads(draft_schema(schema))["type"] == "string"
    assert json.loads(draft_schema(schema, decimals="numeric"))["type"] == "number"


def test_closed_objects_have_no_other_members() -> None:
    inner = Schema("struct", fields=(("x", Schema("struct", fields=())),))
    written = json.loads(draft_schema(inner, closed=True))
    assert written["additionalProperties"] is False
    assert written["properties"]["x"]["additionalProperties"] is False
