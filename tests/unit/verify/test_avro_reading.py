"""Tests of Avro records as JSON, without a registry."""

from __future__ import annotations

import io
from types import SimpleNamespace
from unittest.mock import patch

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

from incsnap.errors import ServerUnreachable
from incsnap.verify import avro_reading
from incsnap.verify.avro_reading import NO_JSON, AvroSchemas, as_json, with_ids
from incsnap.verify.record_reading import ROW, TOMBSTONE, UNREADABLE, RecordForm, read_keys, read_values

_SCHEMAS = AvroSchemas("http://registry")
_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "amount", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}]},
        {"name": "name", "type": ["null", "string"]},
    ],
}
_SOURCE = {
    "type": "record",
    "name": "Source",
    "fields": [
        {"name": "snapshot", "type": "string"},
        {"name": "file", "type": "string"},
        {"name": "pos", "type": "long"},
        {"name": "row", "type": "int"},
    ],
}
_ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", _ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": _SOURCE},
        {"name": "op", "type": "string"},
    ],
}


def framed(schema: object, value: object) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, avro_reading._bare(schema), value)
    return b"\x00\x00\x00\x00\x07" + written.getvalue()


def test_rows_of_avro_envelopes_are_spelled_like_those_of_the_table() -> None:
    form = RecordForm(envelope=True, key_schemas=False, schemas=False, value_avro=_SCHEMAS, respelled=True)
    source = {"snapshot": "false", "file": "binlog.000003", "pos": 4, "row": 1}
    after = {"id": 1, "amount": b"\x01\x02", "name": 'é"'}
    values = [framed(_ENVELOPE, {"before": None, "after": after, "source": source, "op": "c"}), None, b"{}"]

    with patch.object(avro_reading, "_schema", lambda *_: fastavro.parse_schema(avro_reading._bare(_ENVELOPE))):
        read = read_values(pa.array(values, pa.binary()), form).to_pydict()

    table = pa.array([b'{"id":1,"amount":"AQI=","name":"\\u00e9\\""}'], pa.binary())
    assert read["state"] == [ROW, TOMBSTONE, UNREADABLE]
    assert read["row"][0] == avro_reading.respelled(table)[0].as_py()
    assert (read["file"][0], read["pos"][0], read["row_number"][0]) == ("binlog.000003", 4, 1)


def test_avro_keys_are_spelled_like_those_of_the_table() -> None:
    form = RecordForm(envelope=True, key_schemas=False, schemas=False, key_avro=_SCHEMAS, respelled=True)
    row = {"id": 5, "amount": None, "name": "x"}

    with patch.object(avro_reading, "_schema", lambda *_: fastavro.parse_schema(avro_reading._bare(_ROW))):
        keys = read_keys(pa.array([framed(_ROW, row)], pa.binary()), form)

    own = read_keys(pa.array([b'{"id":5,"amount":null,"name":"x"}'], pa.binary()), form.of_table)
    assert keys.to_pylist() == own.to_pylist()


def test_an_id_of_eight_bytes_may_stand_in_a_header() -> None:
    bare = framed(_ROW, {"id": 5, "amount": None, "name": "x"})[5:]
    schemas = AvroSchemas("", frame="globalId")
    messages = [
        SimpleNamespace(headers=lambda: [("apicurio.value.globalId", (7).to_bytes(8, "big"))]),
        SimpleNamespace(headers=lambda: None),
        SimpleNamespace(headers=lambda: None),
    ]
    asked = []

    def schema(_: AvroSchemas, number: int) -> object:
        asked.append(number)
        return fastavro.parse_schema(avro_reading._bare(_ROW))

    with patch.object(avro_reading, "_schema", schema):
        framed_ = with_ids(messages, pa.array([bare, bare, None], pa.binary()), "value", schemas)
        read = as_json(framed_, schemas).to_pylist()

    assert (read, asked) == ([b'{"id":5,"amount":null,"name":"x"}', NO_JSON, None], [7])


def test_json_beside_avro_keeps_the_digits_of_its_numbers() -> None:
    rows = [b'{"n":123456789012345678.91}', b'{"n":123456789012345678.92}', b'{"n":1E+400}', b'{"n":1E+999999999}']
    assert avro_reading.respelled(pa.array(rows, pa.binary())).to_pylist() == rows


def test_a_double_beside_avro_has_one_spelling() -> None:
    rows = [f'{{"x":{each},"p":{{"x":{each}}}}}'.encode() for each in ("2.0E23", "1.9999999999999998E23")]

    one, other = avro_reading.respelled(pa.array(rows, pa.binary()), ("x",)).to_pylist()
    assert one == other


def test_a_double_of_json_is_spelled_like_one_of_avro() -> None:
    schema = {"type": "record", "name": "Value", "fields": [{"name": "x", "type": "double"}]}
    numbers = ["1.0E10", "0.1", "-0.0", "1.7976931348623157E308", "4.9E-324", "123456.7890123"]
    rows = [f'{{"x":{number}}}'.encode() for number in numbers]
    values = [framed(schema, {"x": float(number)}) for number in numbers]

    with patch.object(avro_reading, "_schema", lambda *_: fastavro.parse_schema(avro_reading._bare(schema))):
        read = as_json(pa.array(values, pa.binary()), _SCHEMAS)

    assert read.to_pylist() == avro_reading.respelled(pa.array(rows, pa.binary())).to_pylist()


def test_a_missing_schema_names_each_address_of_the_registry_without_its_password() -> None:
    schemas = AvroSchemas("http://me:secret@reg1:8081,http://me:secret@reg2:8081")
    missing = SchemaRegistryError(404, 40403, "Schema not found")
    with (
        patch.object(SchemaRegistryClient, "get_schema", side_effect=missing),
        pytest.raises(ServerUnreachable, match=r"reg1:8081,.*reg2:8081 has no schema 7") as refused,
    ):
        as_json(pa.array([b"\0" + (7).to_bytes(4, "big")], pa.binary()), schemas)
    assert "secret" not in str(refused.value)
