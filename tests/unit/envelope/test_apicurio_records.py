"""Records in the form of Apicurio's converters, compared with what the real ones wrote (tests/golden)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incsnap.config.apicurio_settings import apicurio_settings
from incsnap.connect.schema import Schema
from incsnap.envelope.avro_format import AvroStructs, framed_id
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.framed_json import FramedStructs
from incsnap.envelope.json_format import JsonStructs
from incsnap.envelope.record_encoder import READ, Operation
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import Registers, table_format
from incsnap.tables import Column, TableId, TableShape
from incsnap.transforms.record_spec import BytesHeader, Constant

_LINES = (Path(__file__).parents[2] / "golden/apicurio_converters.jsonl").read_text().splitlines()
ABOUT, RECORDED = json.loads(_LINES[0]), [json.loads(line) for line in _LINES[1:]]
_SCALE = (("scale", "2"), ("connect.decimal.precision", "10"))
KEY = Schema("struct", name="p.shop.orders.Key", fields=(("id", Schema("int64")),))
ROW = Schema(
    "struct",
    name="p.shop.orders.Value",
    optional=True,
    fields=(
        ("id", Schema("int64")),
        ("note", Schema("string", optional=True)),
        (
            "paid",
            Schema("bytes", name="org.apache.kafka.connect.data.Decimal", version=1, parameters=_SCALE, optional=True),
        ),
        ("bin", Schema("bytes", optional=True)),
        ("f", Schema("float64", optional=True)),
        ("d", Schema("int32", name="io.debezium.time.Date", version=1, optional=True)),
    ),
)
ENVELOPE = Schema(
    "struct",
    name="p.shop.orders.Envelope",
    version=2,
    fields=(("before", ROW), ("after", ROW), ("op", Schema("string"))),
)
VALUES: dict[str, Any] = {
    "key": {"id": 7},
    "value": {
        "before": None,
        "after": {"id": 7, "note": 'é"', "paid": "BNI=", "bin": base64.b64encode(b"\1\xff").decode(), "f": 1.5, "d": 3},
        "op": "c",
    },
}
SCHEMAS = {"key": KEY, "value": ENVELOPE}
BASE = {"apicurio.registry.url": "http://r/apis/registry/v2"}


def options(recorded: dict[str, Any], *, avro: bool) -> str:
    return apicurio_settings({**BASE, **recorded["options"]}, avro=avro).frame


@pytest.mark.parametrize("recorded", [each for each in RECORDED if each["converter"] == "AvroConverter"], ids=str)
def test_avro_has_the_id_where_the_real_converter_puts_it(recorded: dict[str, Any]) -> None:
    frame, side = options(recorded, avro=True), recorded["side"]
    registered: list[str] = []
    structs = AvroStructs(lambda _subject, schema: registered.append(schema) or 5)  # type: ignore[func-returns-value]
    plain = structs.struct("t", SCHEMAS[side], VALUES[side])[5:]

    assert (framed_id(recorded["id"], frame) + plain).hex() == recorded["bytes"]
    assert json.loads(registered[0]) == ABOUT["schemas"]["AvroConverter"][side]
    in_header = [[f"apicurio.{side}.{frame}", f"{recorded['id']:016x}"], [f"apicurio.{side}.encoding", b"BINARY".hex()]]
    assert recorded["headers"] == (in_header if frame in ("globalId", "contentId") else [])


@pytest.mark.parametrize("recorded", [each for each in RECORDED if each["converter"] == "ExtJsonConverter"], ids=str)
def test_json_has_the_id_as_a_member(recorded: dict[str, Any]) -> None:
    side, registered = recorded["side"], []

    def register(_subject: str, schema: str) -> int:
        registered.append(schema)
        return int(recorded["id"])

    value = json.loads(json.dumps(VALUES[side]))
    if recorded["options"].get("decimal.format") == "NUMERIC" and side == "value":
        value["after"]["paid"] = 12.34
    structs = FramedStructs(JsonStructs(schemas=False), register, FormatChoice("ext-json"))

    assert structs.struct("t", SCHEMAS[side], value).hex() == recorded["bytes"]
    assert registered == [ABOUT["schemas"]["ExtJsonConverter"][side]]


TABLE = TableShape(TableId("shop", "orders"), (Column("id", "bigint", nullable=False), Column("qty", "int")), (0,))
SOURCE = SourceConstants("binlog.000001", 4, 1_600_000_000_000_000, 1)


class Numbers:
    """A registry that counts schemas from 300."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        return self.known.setdefault((subject, schema), 300 + len(self.known))


def test_the_ids_stand_behind_the_headers_of_transforms() -> None:
    registry, avro = Numbers(), FormatChoice("avro", frame="contentId")
    added = Constant("mine", "x")
    settings = EnvelopeSettings("p", "1", key=avro, value=avro, headers=(added,))
    made = table_format(TABLE, "p.shop.orders", settings, Registers(registry.register, registry.register))

    number = {subject.rpartition("-")[2]: each for (subject, _), each in registry.known.items()}
    of_key, of_value = (
        (
            BytesHeader(f"apicurio.{side}.contentId", "", number[side].to_bytes(8, "big")),
            BytesHeader(f"apicurio.{side}.encoding", "", b"BINARY"),
        )
        for side in ("key", "value")
    )
    headers = {kind: one.spec.headers for kind, one in made.encoders.items() if one is not None}
    assert headers[READ] == headers[Operation("u")] == (added, *of_key, *of_value)
    assert headers[Operation("")] == (added, *of_key)
    reads = made.encoders[READ]
    assert reads is not None
    assert reads.value is not None
    assert reads.value.reads([pa.array([1]), pa.array([2])], SOURCE, 0)[0].as_py()[:1] == b"\0"  # the union of `before`
    assert made.keys([pa.array([1]), pa.array([2])]).to_pylist() == [b"\2"]


def test_rows_as_json_are_between_the_id_and_a_brace() -> None:
    registry, choice = Numbers(), FormatChoice("ext-json")
    settings = EnvelopeSettings("p", "1", key=choice, value=choice)
    made = table_format(TABLE, "p.shop.orders", settings, Registers(registry.register, registry.register))
    reads = made.encoders[READ]
    assert reads is not None
    assert reads.value is not None
    columns = [pa.array([1]), pa.array([2])]
    value = json.loads(reads.value.reads(columns, SOURCE, 0)[0].as_py())
    numbers = {subject: number for (subject, _), number in registry.known.items()}

    assert made.keys(columns).to_pylist() == [b'{"schemaId":%d,"payload":{"id":1}}' % numbers["p.shop.orders-key"]]
    assert (value["schemaId"], value["payload"]["after"]) == (numbers["p.shop.orders-value"], {"id": 1, "qty": 2})
