"""Schemas in a real registry, and records that Confluent's own reader reads by them."""

from __future__ import annotations

import json
import secrets
import urllib.request
from decimal import Decimal

import jsonschema  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from incsnap.connect.avro_schema import avro_json
from incsnap.connect.schema import Schema
from incsnap.envelope.avro_format import AvroStructs, AvroValues, avro_keys
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.record_encoder import READ
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import Registers, table_format
from incsnap.kafka.refusals import SinkRefused
from incsnap.kafka.registry import Registry
from incsnap.tables import Column, TableId, TableShape
from incsnap.transforms.chain import Step
from incsnap.transforms.edits import EditFields
from incsnap.transforms.record_spec import ExtractField, change_spec
from incsnap.transforms.unwrap import ExtractNewRecordState
from incsnap.types.modes import Modes
from tests.support.hand_made_view import hand_made_view
from tests.support.proto_reader import read_framed
from tests.support.registry import read_avro, registry_client

pytestmark = pytest.mark.servers

ENVELOPE = EnvelopeSettings("pre", "1.2.3")
SOURCE = SourceConstants("binlog.000001", 4, 1_600_000_000_000_000, 1)
NOW = 1_700_000_000_000_000
DECIMAL = Schema(
    "bytes",
    name="org.apache.kafka.connect.data.Decimal",
    version=1,
    parameters=(("scale", "2"), ("connect.decimal.precision", "10")),
)


@pytest.fixture
def topic() -> str:
    return f"avro{secrets.token_hex(4)}.shop.orders"


def configure(url: str, subject: str, compatibility: str) -> None:
    body = json.dumps({"compatibility": compatibility}).encode()
    header = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = urllib.request.Request(f"{url}/config/{subject}", body, header, method="PUT")
    with urllib.request.urlopen(request, timeout=60):
        pass


def record(**fields: Schema) -> str:
    return avro_json(Schema("struct", name="shop.Order", fields=tuple(fields.items())))


def test_confluents_reader_reads_keys_values_and_single_records(registry_url: str, topic: str) -> None:
    registry = Registry(registry_url, {})
    view = hand_made_view({"id": Schema("int64"), "note": Schema("string", optional=True), "paid": DECIMAL}, key=["id"])
    columns = [pa.array([-1, 2**62]), pa.array(["é", None]), pa.array([b"\x04\xd2", b"\xff"], pa.binary())]

    keys = avro_keys(view, change_spec(topic), ENVELOPE, registry.register).keys(columns)
    values = AvroValues(view, change_spec(topic), ENVELOPE, registry.register).reads(columns, SOURCE, NOW)
    schema = Schema("struct", name="shop.Note", version=1, fields=(("text", Schema("string")),))
    single = AvroStructs(registry.register).struct(f"{topic}.notes-value", schema, {"text": "hello"})

    assert [read_avro(registry_url, topic, key, key=True) for key in keys.to_pylist()] == [{"id": -1}, {"id": 2**62}]
    records = [read_avro(registry_url, topic, value) for value in values.to_pylist()]
    assert [(value["op"], value["before"], value["source"]["snapshot"]) for value in records] == [
        ("r", None, "incremental")
    ] * 2
    # The logical type decimal is known to every reader, not to Connect alone.
    assert [(value["after"]["note"], str(value["after"]["paid"])) for value in records] == [
        ("é", "12.34"),
        (None, "-0.01"),
    ]
    assert read_avro(registry_url, f"{topic}.notes", single) == {"text": "hello"}


def test_json_behind_the_id_of_its_schema_fits_the_schema(registry_url: str, topic: str) -> None:
    registry = Registry(registry_url, {}, "json-schema")
    choice = FormatChoice("json-schema")
    settings = EnvelopeSettings("pre", "1.2.3", key=choice, value=choice)
    columns = (Column("id", "bigint", nullable=False), Column("note", "varchar", charset="utf8mb4"))
    shape = TableShape(TableId("shop", "orders"), (*columns, Column("paid", "decimal", precision=10, scale=2)), (0,))
    made = table_format(shape, topic, settings, Registers(registry.register, registry.register))
    rows = [pa.array([-1, 2**62]), pa.array(["é", None]), pa.array([Decimal("12.34"), None], pa.decimal128(10, 2))]
    reads = made.encoders[READ]
    assert reads is not None
    assert reads.value is not None
    values = reads.value.reads(rows, SOURCE, NOW).to_pylist()
    keys = made.keys(rows).to_pylist()

    with registry_client(registry_url) as client:
        schemas = {side: client.get_latest_version(f"{topic}-{side}") for side in ("key", "value")}
    assert [each[:1] for each in (*keys, *values)] == [b"\0"] * 4
    for side, records in (("key", keys), ("value", values)):
        number, text = schemas[side].schema_id, str(schemas[side].schema.schema_str)
        assert {int.from_bytes(each[1:5], "big") for each in records} == {number}
        for each in records:
            jsonschema.Draft7Validator(json.loads(text)).validate(json.loads(each[5:]))
    decoded = [json.loads(each[5:]) for each in values]
    assert [value["after"]["note"] for value in decoded] == ["é", None]
    assert json.loads(keys[0][5:]) == {"id": -1}
    again = Registry(registry_url, {"use.latest.version": "true"}, "json-schema")
    assert again.register(f"{topic}-key", str(schemas["key"].schema.schema_str)) == schemas["key"].schema_id
    with pytest.raises(SinkRefused, match="is not that of the table"):
        again.register(f"{topic}-key", '{"type":"object"}')


def test_a_second_address_is_asked_where_the_first_one_is_dead(registry_url: str, topic: str) -> None:
    number = Registry(f"http://127.0.0.1:1,{registry_url}", {"max.retries": "0"}).register(f"{topic}-key", '"int"')
    with registry_client(registry_url) as client:
        assert client.get_latest_version(f"{topic}-key").schema_id == number


@pytest.mark.parametrize("optional", [False, True])
def test_protobuf_behind_the_id_of_its_schema_is_read_by_the_registrys_text(
    registry_url: str, topic: str, optional: bool
) -> None:
    registry = Registry(registry_url, {}, "protobuf")
    choice = FormatChoice("protobuf", optional=optional)
    settings = EnvelopeSettings("pre", "1.2.3", Modes(time_precision="connect"), key=choice, value=choice)
    columns = (
        Column("id", "bigint", nullable=False),
        Column("note", "varchar", charset="utf8mb4"),
        Column("paid", "decimal", precision=10, scale=2),
        Column("day", "date"),
        Column("small", "smallint"),
        Column("at", "datetime", fraction=3),
        Column("place", "point"),
    )
    made = table_format(
        TableShape(TableId("shop", "orders"), columns, (0,)), topic, settings, Registers(*[registry.register] * 2)
    )
    rows = [
        pa.array([-1, 2**62]),
        pa.array(["é", None]),
        pa.array([Decimal("12.34"), None], pa.decimal128(10, 2)),
        pa.array([19_000, None], pa.int32()),
        pa.array([-7, None], pa.int64()),
        pa.array([1_709_210_096_789_000, None], pa.int64()),
        pa.array([None, None], pa.binary()),
    ]
    reads = made.encoders[READ]
    assert reads is not None
    assert reads.value is not None
    values, keys = reads.value.reads(rows, SOURCE, NOW).to_pylist(), made.keys(rows).to_pylist()

    with registry_client(registry_url) as client:
        schemas = {side: client.get_latest_version(f"{topic}-{side}") for side in ("key", "value")}
    texts = {side: str(schema.schema.schema_str) for side, schema in schemas.items()}
    for side, records in (("key", keys), ("value", values)):
        assert schemas[side].schema.schema_type == "PROTOBUF"
        assert {int.from_bytes(each[1:5], "big") for each in records} == {schemas[side].schema_id}
    assert [read_framed(key, texts["key"]) for key in keys] == [{"id": -1}, {"id": 2**62}]
    first, second = (read_framed(value, texts["value"])["after"] for value in values)
    assert first == {
        "id": -1,
        "note": "é",
        "paid": (b"\x04\xd2", 2),
        "day": 19_000,
        "small": -7,
        "at": 1_709_210_096_789,
        "place": None,
    }
    nulls = {"note": None, "small": None} if optional else {"note": "", "small": 0}
    assert second == {"id": 2**62, "paid": None, "day": None, "at": None, "place": None, **nulls}
    again = Registry(registry_url, {"use.latest.version": "true"}, "protobuf")
    assert again.register(f"{topic}-value", texts["value"]) == schemas["value"].schema_id
    with pytest.raises(SinkRefused, match="is not that of the table"):
        again.register(f"{topic}-key", texts["value"])


def test_keys_that_are_one_value_have_the_file_of_wrappers_as_their_schema(registry_url: str, topic: str) -> None:
    registry = Registry(registry_url, {}, "protobuf")
    choice = FormatChoice("protobuf")
    chain = (Step(ExtractNewRecordState()), Step(EditFields("e", "Key", ExtractField("id"))))
    settings = EnvelopeSettings("pre", "1.2.3", key=choice, value=choice, transforms=chain)
    shape = TableShape(TableId("shop", "orders"), (Column("id", "bigint", nullable=False),), (0,))
    encoder = table_format(shape, topic, settings, Registers(*[registry.register] * 2)).encoders[READ]
    assert encoder is not None
    assert encoder.key is not None
    keys = encoder.key.keys([pa.array([0, -1])]).to_pylist()

    with registry_client(registry_url) as client:
        schema = client.get_latest_version(f"{topic}-key")
    assert {int.from_bytes(key[1:5], "big") for key in keys} == {schema.schema_id}
    assert [read_framed(key, str(schema.schema.schema_str)) for key in keys] == [{"value": 0}, {"value": -1}]


def test_a_schema_has_one_number_however_often_and_by_whomever_it_is_registered(registry_url: str, topic: str) -> None:
    first = Registry(registry_url, {}).register(f"{topic}-value", record(id=Schema("int64")))
    again = Registry(registry_url, {"normalize.schemas": "true"}).register(f"{topic}-value", record(id=Schema("int64")))

    assert first == again


def test_a_new_optional_column_is_a_new_version_of_the_subject(registry_url: str, topic: str) -> None:
    registry = Registry(registry_url, {})
    subject = f"{topic}-value"
    first = registry.register(subject, record(id=Schema("int64")))
    configure(registry_url, subject, "BACKWARD")

    second = registry.register(subject, record(id=Schema("int64"), note=Schema("string", optional=True)))

    assert second != first
    with registry_client(registry_url) as client:
        assert client.get_versions(subject) == [1, 2]


def test_an_incompatible_schema_is_refused_by_subject_and_field(registry_url: str, topic: str) -> None:
    registry = Registry(registry_url, {})
    subject = f"{topic}-value"
    registry.register(subject, record(id=Schema("int64"), qty=Schema("int32")))
    configure(registry_url, subject, "FULL")

    with pytest.raises(SinkRefused) as caught:
        registry.register(subject, record(id=Schema("string"), qty=Schema("int32"), more=Schema("int32")))

    text = f"{caught.value.message}\n{caught.value.hint}"
    for part in (subject, "id: long became string", "more: added (int)", f"{registry_url}/config/{subject}", "NONE"):
        assert part in text
    assert not caught.value.resumable


def test_without_registration_the_schema_is_looked_up(registry_url: str, topic: str) -> None:
    subject, schema = f"{topic}-value", record(id=Schema("int64"))
    reader = Registry(registry_url, {"auto.register.schemas": "false"})
    with pytest.raises(SinkRefused, match=r"auto\.register\.schemas=false") as caught:
        reader.register(subject, schema)
    assert schema in caught.value.hint

    number = Registry(registry_url, {}).register(subject, schema)

    assert reader.register(subject, schema) == number


def test_the_latest_version_is_used_if_it_fits_the_table(registry_url: str, topic: str) -> None:
    subject, schema = f"{topic}-value", record(id=Schema("int64"))
    number = Registry(registry_url, {}).register(subject, schema)
    latest = Registry(registry_url, {"use.latest.version": "true"})

    assert latest.register(subject, schema) == number
    with pytest.raises(SinkRefused, match=r"qty: added \(int\)"):
        latest.register(subject, record(id=Schema("int64"), qty=Schema("int32")))


def test_an_invalid_schema_fails_with_the_registrys_message(registry_url: str, topic: str) -> None:
    with pytest.raises(SinkRefused, match="status 422"):
        Registry(registry_url, {}).register(f"{topic}-value", '{"type":"nonsense"}')
