"""Schemas of records: Debezium's, as Connect's JSON and as Confluent's Avro."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from incsnap.connect.avro_difference import differences
from incsnap.connect.avro_schema import avro_json, avro_schema
from incsnap.connect.json_schema import schema_json
from incsnap.connect.schema import Schema
from incsnap.envelope.connect_envelope import SOURCE, envelope_schema, key_schema
from incsnap.errors import ConfigError
from incsnap.transforms.record_spec import change_spec
from incsnap.types.modes import Modes
from tests.support.hand_made_view import hand_made_view

DECIMAL = Schema(
    "bytes",
    name="org.apache.kafka.connect.data.Decimal",
    version=1,
    parameters=(("scale", "2"), ("connect.decimal.precision", "10")),
)
POINT = Schema(
    "struct",
    optional=True,
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(("x", Schema("float64")), ("y", Schema("float64")), ("wkb", Schema("bytes", optional=True))),
)
VIEW = hand_made_view({"id": Schema("int32"), "at": POINT, "by": POINT, "price": DECIMAL.as_optional()}, key=["id"])


def avro(schema: Schema) -> Any:
    return json.loads(avro_json(schema))


def test_key_row_and_envelope_are_named_after_the_topic() -> None:
    key = key_schema(VIEW, change_spec("pre.shop.orders"), Modes())
    envelope = envelope_schema(VIEW, change_spec("pre.shop.orders"), Modes())

    assert (key.name, key.version, key.optional) == ("pre.shop.orders.Key", None, False)
    assert key.fields == (("id", Schema("int32")),)
    assert (envelope.name, envelope.version) == ("pre.shop.orders.Envelope", 2)
    assert [name for name, _ in envelope.fields] == [
        *("before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns")
    ]
    row = dict(envelope.fields)["after"]
    assert (row.name, row.version, row.optional) == ("pre.shop.orders.Value", None, True)


@pytest.mark.parametrize(
    ("mode", "name"),
    [("none", "pre-1.shop.a b.Key"), ("avro", "pre_1.shop.a_b.Key"), ("avro_unicode", "pre_u002d1.shop.a_u0020b.Key")],
)
def test_names_of_schemas_are_adjusted_as_the_mode_says(mode: str, name: str) -> None:
    assert key_schema(VIEW, change_spec("pre-1.shop.a b", schema_names=mode), Modes()).name == name


def test_connects_json_of_a_struct_has_debeziums_order_and_names() -> None:
    assert schema_json(key_schema(VIEW, change_spec("t"), Modes())) == (
        '{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],"optional":false,"name":"t.Key"}'
    )
    written = json.loads(schema_json(SOURCE))
    assert list(written) == ["type", "fields", "optional", "name", "version"]
    assert json.dumps(written["fields"][4]) == (
        '{"type": "string", "optional": true, "name": "io.debezium.data.Enum", "version": 1, "parameters": {"allowed":'
        ' "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"}, "default": "false",'
        ' "field": "snapshot"}'
    )


def test_connects_json_names_floats_and_what_is_inside_arrays_and_maps() -> None:
    vector = Schema("array", name="io.debezium.data.FloatVector", version=1, items=Schema("float32"))
    assert schema_json(vector) == (
        '{"type":"array","items":{"type":"float","optional":false},"optional":false,'
        '"name":"io.debezium.data.FloatVector","version":1}'
    )
    of_texts = Schema("map", optional=True, items=Schema("string"))
    assert schema_json(of_texts) == (
        '{"type":"map","keys":{"type":"string","optional":false},"values":{"type":"string","optional":false},'
        '"optional":true}'
    )
    assert json.loads(schema_json(Schema("float64")))["type"] == "double"


def test_the_row_is_written_once_and_named_the_second_time() -> None:
    envelope = avro(envelope_schema(VIEW, change_spec("pre.shop.orders"), Modes()))

    assert (envelope["name"], envelope["namespace"]) == ("Envelope", "pre.shop.orders")
    before, after, source = envelope["fields"][:3]
    assert before["type"][0] == "null"
    assert before["default"] is None
    assert before["type"][1]["name"] == "Value"
    assert "namespace" not in before["type"][1]
    assert after == {"name": "after", "type": ["null", "Value"], "default": None}
    assert source["type"]["namespace"] == "io.debezium.connector.mysql"
    assert (envelope["connect.version"], envelope["connect.name"]) == (2, "pre.shop.orders.Envelope")
    fastavro.parse_schema(envelope)


def test_a_struct_that_occurs_twice_is_named_in_full_within_another_namespace() -> None:
    at, by = avro(envelope_schema(VIEW, change_spec("t"), Modes()))["fields"][0]["type"][1]["fields"][1:3]

    assert at["type"][1] == {
        "type": "record",
        "name": "Point",
        "namespace": "io.debezium.data.geometry",
        "fields": [
            {"name": "x", "type": "double"},
            {"name": "y", "type": "double"},
            {"name": "wkb", "type": ["null", "bytes"], "default": None},
        ],
        "connect.doc": "Geometry (POINT)",
        "connect.version": 1,
        "connect.name": "io.debezium.data.geometry.Point",
    }
    assert by == {"name": "by", "type": ["null", "io.debezium.data.geometry.Point"], "default": None}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Schema("int32"), '"int"'),
        (Schema("int64", optional=True), '["null","long"]'),
        (Schema("int16"), '{"type":"int","connect.type":"int16"}'),
        (
            Schema("int32", name="io.debezium.time.Date", version=1),
            '{"type":"int","connect.version":1,"connect.name":"io.debezium.time.Date"}',
        ),
        (
            DECIMAL,
            '{"type":"bytes","scale":2,"precision":10,"connect.version":1,"connect.parameters":{"scale":"2",'
            '"connect.decimal.precision":"10"},"connect.name":"org.apache.kafka.connect.data.Decimal",'
            '"logicalType":"decimal"}',
        ),
        (
            Schema("int64", name="org.apache.kafka.connect.data.Timestamp", version=1),
            '{"type":"long","connect.version":1,"connect.name":"org.apache.kafka.connect.data.Timestamp",'
            '"logicalType":"timestamp-millis"}',
        ),
        (
            Schema("array", name="io.debezium.data.FloatVector", version=1, items=Schema("float32")),
            '{"type":"array","items":"float","connect.version":1,"connect.name":"io.debezium.data.FloatVector"}',
        ),
        (Schema("map", items=Schema("string")), '{"type":"map","values":"string"}'),
        (
            Schema("string", optional=True, default="false"),
            '[{"type":"string","connect.default":"false"},"null"]',
        ),
    ],
)
def test_types_are_written_as_confluents_converter_writes_them(schema: Schema, text: str) -> None:
    assert avro_json(schema) == text


def test_a_default_of_bytes_has_a_character_for_each_byte() -> None:
    (field,) = avro(Schema("struct", name="a.R", fields=(("b", Schema("bytes", default="AP8=")),)))["fields"]
    assert field["default"] == "\x00\xff"


@pytest.mark.parametrize(
    ("name", "field", "setting"), [("a.b-c", "id", "schema.name.adjustment.mode"), ("a.b", "a-b", "field.name.adjust")]
)
def test_a_name_that_avro_forbids_names_the_setting_that_helps(name: str, field: str, setting: str) -> None:
    with pytest.raises(ConfigError) as caught:
        avro_schema(Schema("struct", name=name, fields=((field, Schema("int32")),)))
    assert setting in caught.value.hint


def test_a_topic_prefix_with_a_hyphen_is_a_namespace_as_in_debezium() -> None:
    view = hand_made_view({"id": Schema("int32")}, key=["id"])
    schema = avro(key_schema(view, change_spec("pre-1.shop.orders"), Modes()))
    assert (schema["namespace"], schema["name"]) == ("pre-1.shop.orders", "Key")


def test_differences_between_schemas_are_told_by_field() -> None:
    def schema(**fields: Schema) -> str:
        return avro_json(envelope_schema(hand_made_view(fields), change_spec("t"), Modes()))

    other = DECIMAL.parameters[0], ("connect.decimal.precision", "12")
    old = schema(id=Schema("int32"), qty=Schema("int32"), price=DECIMAL)
    new = schema(id=Schema("int64"), note=Schema("string", optional=True), price=Schema("bytes", parameters=other))

    assert differences(old, old) == []
    assert differences(old, new) == [
        "before.qty: removed (it was int)",
        "before.note: added (null or string, has a default)",
        "before.id: int became long",
        "before.price: bytes (Decimal) (2) (10) became bytes (2) (12)",
    ]
