"""Protobuf records whole: wire format, before and after, source, transaction, as google.protobuf reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incsnap.connect.proto_columns import single_messages
from incsnap.connect.proto_schema import ProtoStyle, proto_file
from incsnap.connect.schema import Schema, decimal_schema
from incsnap.envelope.control_schemas import NOTIFICATION_VALUE, SCHEMA_CHANGE_VALUE, TRANSACTION_VALUE
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.format import Changes, TransactionOrder
from incsnap.envelope.proto_format import ProtoStructs, ProtoValues, proto_keys
from incsnap.envelope.record_encoder import Operation
from incsnap.envelope.table_format import Registers, TableFormat, table_format
from incsnap.errors import ConfigError, IncsnapError
from incsnap.tables import Column, TableId, TableShape
from incsnap.transforms.chain import Step
from incsnap.transforms.edits import EditFields, ValueToKey
from incsnap.transforms.record_spec import EnvelopeField, ExtractField, HoistField, KeepFields, change_spec
from incsnap.transforms.unwrap import ExtractNewRecordState
from tests.support.hand_made_view import hand_made_view
from tests.support.proto_reader import ProtoRegistry, message_class, read_by_confluent, read_message
from tests.support.source_columns import MOMENTS, NOW, SOURCE, SOURCE_BLOCK, two_events

TOPIC = "pre.shop.orders"
VIEW = hand_made_view(
    {"id": Schema("int64"), "name": Schema("string", optional=True), "raw": Schema("bytes")}, key=["id"]
)
COLUMNS = [
    pa.array([1, 2, 0], pa.int64()),
    pa.array(["one", None, ""], pa.string()),
    pa.array([b"\x00", b"", b"\xff\xfe"], pa.binary()),
]
DEFAULT, OPTIONAL = FormatChoice("protobuf"), FormatChoice("protobuf", optional=True)
#: The source block without presence: NULL looks like 0 or the empty text.
BLOCK = {**SOURCE_BLOCK, "sequence": "", "thread": 0}


def settings(choice: FormatChoice) -> EnvelopeSettings:
    return EnvelopeSettings("pre", "1.2.3", key=choice, value=choice)


def rows(choice: FormatChoice) -> list[dict[str, Any]]:
    """The rows of COLUMNS. Without presence NULL looks like the empty text."""
    null = None if choice.optional else ""
    return [
        {"id": 1, "name": "one", "raw": b"\x00"},
        {"id": 2, "name": null, "raw": b""},
        {"id": 0, "name": "", "raw": b"\xff\xfe"},
    ]


def test_a_key_is_a_zero_byte_the_schemas_number_the_index_and_the_message() -> None:
    registry = ProtoRegistry()
    keys = proto_keys(VIEW, change_spec(TOPIC), settings(DEFAULT), registry).keys(COLUMNS).to_pylist()

    assert keys[1] == b"\x00\x00\x00\x01\x2c" + b"\x00" + b"\x08\x02"
    assert keys[2] == b"\x00\x00\x00\x01\x2c" + b"\x00", "a key of zeros has no bytes of its own"
    assert [registry.read(key, f"{TOPIC}-key") for key in keys] == [{"id": n} for n in (1, 2, 0)]
    assert read_by_confluent(keys[1], message_class(registry.schemas[0][1])).id == 2


@pytest.mark.parametrize("choice", [DEFAULT, OPTIONAL])
def test_rows_of_a_snapshot_are_reads_with_their_source(choice: FormatChoice) -> None:
    registry = ProtoRegistry()
    reads = ProtoValues(VIEW, change_spec(TOPIC), settings(choice), registry).reads(COLUMNS, SOURCE, NOW)

    block = {**BLOCK, "sequence": None, "thread": None} if choice.optional else BLOCK
    assert [registry.read(value, f"{TOPIC}-value") for value in reads.to_pylist()] == [
        {"before": None, "after": row, "source": block, "transaction": None, "op": "r", **MOMENTS}
        for row in rows(choice)
    ]


def test_a_truncation_has_neither_row() -> None:
    registry = ProtoRegistry()
    truncation = ProtoValues(VIEW, change_spec(TOPIC), settings(DEFAULT), registry).truncation(SOURCE, NOW)

    assert registry.read(truncation, f"{TOPIC}-value") == {
        "before": None,
        "after": None,
        "source": BLOCK,
        "transaction": None,
        "op": "t",
        **MOMENTS,
    }


def changed(order: TransactionOrder | None = None) -> Changes:
    """An insert of row 0, an update from 0 to 1, a deletion of 2; the first of event 0, the others of event 1."""
    return Changes(
        before=np.array([-1, 0, 2]),
        after=np.array([0, 1, -1]),
        event=np.array([0, 1, 1]),
        row=np.array([0, 0, 300]),
        op=np.array([0, 1, 2], np.uint8),
        source=two_events(pa.array([None, "UPDATE é"], pa.string())),
        order=order,
        now_us=NOW,
    )


def changes(order: TransactionOrder | None = None) -> list[dict[str, Any]]:
    registry = ProtoRegistry()
    values = ProtoValues(VIEW, change_spec(TOPIC), settings(OPTIONAL), registry).changes(COLUMNS, changed(order))
    values.validate(full=True)
    return [registry.read(value, f"{TOPIC}-value") for value in values.to_pylist()]


def test_changes_have_the_rows_that_belong_to_them() -> None:
    first, second, third = rows(OPTIONAL)
    records = changes()

    assert [(value["op"], value["before"], value["after"]) for value in records] == [
        ("c", None, first),
        ("u", first, second),
        ("d", third, None),
    ]
    assert {key: records[2][key] for key in ("transaction", *MOMENTS)} == {"transaction": None, **MOMENTS}


def test_changes_name_their_event_and_their_number_within_it() -> None:
    sources = [value["source"] for value in changes()]

    assert list(sources[0]) == list(BLOCK)
    names = ("snapshot", "ts_ms", "ts_us", "ts_ns", "server_id", "gtid", "file", "pos", "row", "thread", "query")
    assert [sources[0][name] for name in names] == [
        *("false", 1, 1_001, 1_001_000, 7, "uuid:1", "binlog.000001", 4, 0, None, None)
    ]
    assert [sources[2][name] for name in names] == [
        *("false", 2, 2_002, 2_002_000, 2**32 - 1, "uuid:2", "binlog.000002", 2**40, 300, 12, "UPDATE é")
    ]


def test_changes_bring_their_order_in_the_transaction() -> None:
    order = TransactionOrder(total=np.array([1, 1, 300]), of_table=np.array([1, 1, 2]))

    assert [value["transaction"] for value in changes(order)] == [
        {"id": "uuid:1", "total_order": 1, "data_collection_order": 1},
        {"id": "uuid:2", "total_order": 1, "data_collection_order": 1},
        {"id": "uuid:2", "total_order": 300, "data_collection_order": 2},
    ]


def test_a_null_that_the_schema_forbids_names_table_and_column() -> None:
    values = ProtoValues(VIEW, change_spec(TOPIC), settings(DEFAULT), ProtoRegistry())
    with pytest.raises(IncsnapError, match=r"Field shop\.orders\.raw has a null"):
        values.reads([COLUMNS[0], COLUMNS[1], pa.nulls(3, pa.binary())], SOURCE, NOW)


def test_single_records_are_written_by_their_schemas() -> None:
    registry = ProtoRegistry()
    structs = ProtoStructs(registry, ProtoStyle(optional=True))

    def read(schema: Schema, value: Any) -> Any:
        return registry.read(structs.struct("t-value", schema, value), "t-value")

    notice = {"id": "é", "type": "T", "aggregate_type": "A", "timestamp": 2**40}
    entry = {"key": "a", "value": "b"}
    assert read(NOTIFICATION_VALUE, {**notice, "additional_data": {"a": "b"}}) == {
        **notice,
        "additional_data": [entry],
    }
    assert read(NOTIFICATION_VALUE, {**notice, "additional_data": None}) == {**notice, "additional_data": []}
    ended = {"status": "END", "id": "u:1", "event_count": 3, "ts_ms": 5}
    counts = [{"data_collection": "a.b", "event_count": 3}]
    assert read(TRANSACTION_VALUE, {**ended, "data_collections": counts}) == {**ended, "data_collections": counts}
    begun = {"status": "BEGIN", "id": "u:1", "ts_ms": 5}
    assert read(TRANSACTION_VALUE, begun) == {**begun, "event_count": None, "data_collections": []}
    change = {"source": {**BLOCK, "sequence": None, "thread": None}, "ts_ms": 5, "databaseName": "d", "ddl": "CREATE"}
    assert read(SCHEMA_CHANGE_VALUE, {**change, "tableChanges": []}) == {
        **change,
        "schemaName": None,
        "tableChanges": [],
    }
    assert len(registry.schemas) == 3


SHAPE = TableShape(
    TableId("shop", "orders"), (Column("id", "int", nullable=False), Column("v", "varchar", charset="utf8mb4")), (0,)
)
_TEXTS = [pa.array([1, 2], pa.int64()), pa.array(["a", None], pa.string())]


def behind(registry: ProtoRegistry, *transforms: Any, choice: FormatChoice = DEFAULT) -> TableFormat:
    chain = tuple(each if isinstance(each, Step) else Step(each) for each in transforms)
    envelope = EnvelopeSettings("pre", "1", key=choice, value=choice, transforms=chain)
    return table_format(SHAPE, TOPIC, envelope, Registers(registry, registry))


def written(made: TableFormat) -> tuple[list[bytes], list[bytes]]:
    """Keys and values of rows that a SELECT has read."""
    encoder = made.encoders[Operation("r")]
    assert encoder is not None
    assert encoder.key is not None
    assert encoder.value is not None
    return encoder.key.keys(_TEXTS).to_pylist(), encoder.value.reads(_TEXTS, SOURCE, NOW).to_pylist()


def test_rows_without_an_envelope_have_the_added_fields_behind_their_columns() -> None:
    registry = ProtoRegistry()
    unwrap = ExtractNewRecordState(fields=(EnvelopeField("", "op", "__op"), EnvelopeField("source", "row", "__row")))
    keys, values = written(behind(registry, unwrap, choice=OPTIONAL))

    assert [registry.read(key, f"{TOPIC}-key") for key in keys] == [{"id": 1}, {"id": 2}]
    assert [registry.read(value, f"{TOPIC}-value") for value in values] == [
        {"id": 1, "v": "a", "__op": "r", "__row": 0},
        {"id": 2, "v": None, "__op": "r", "__row": 0},
    ]


def test_edited_rows_and_keys_have_the_schema_behind_the_edits() -> None:
    registry = ProtoRegistry()
    unwrap, rename = ExtractNewRecordState(), KeepFields((), (), (("v", "text"),))
    hoist = HoistField("row")
    steps = (EditFields("a", "Value", rename), EditFields("b", "Value", hoist), EditFields("c", "Key", hoist))
    made = behind(registry, unwrap, *steps)
    keys, values = written(made)

    assert [registry.read(key, f"{TOPIC}-key") for key in keys] == [{"row": {"id": 1}}, {"row": {"id": 2}}]
    assert [registry.read(value, f"{TOPIC}-value") for value in values] == [
        {"row": {"id": 1, "text": "a"}},
        {"row": {"id": 2, "text": ""}},
    ]


@pytest.mark.parametrize(
    ("field", "name", "index", "expected"),
    [
        ("id", "Int32Value", b"\x02\x08", [{"value": 1}, {"value": 2}]),
        ("v", "StringValue", b"\x02\x0e", [{"value": "a"}, None]),
    ],
)
def test_a_key_that_is_one_value_is_in_its_wrapper(field: str, name: str, index: bytes, expected: list[Any]) -> None:
    registry = ProtoRegistry()
    steps = (ValueToKey("k", (field,)), EditFields("e", "Key", ExtractField(field)))
    keys, _ = written(behind(registry, ExtractNewRecordState(), *steps))

    ((_, text),) = [each for each in registry.schemas if each[0] == f"{TOPIC}-key"]
    assert message_class(text, index[1] // 2).DESCRIPTOR.full_name == f"google.protobuf.{name}"
    assert keys[0][5:7] == index
    assert read_by_confluent(keys[0], message_class(text, index[1] // 2)).value == (expected[0] or {})["value"]
    assert [key and registry.read(key, f"{TOPIC}-key") for key in keys] == expected


def test_a_value_that_is_one_struct_is_its_message() -> None:
    point = Schema("struct", True, "io.debezium.data.geometry.Point", fields=(("x", Schema("float64")),))
    values = pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float64())]))
    first, second = single_messages(point, values, ProtoStyle()).to_pylist()

    assert read_message(first, proto_file(point, ProtoStyle())[0]) == {"x": 1.5}
    assert second is None


def test_a_key_that_is_one_decimal_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"one org\.apache\.kafka\.connect\.data\.Decimal") as caught:
        proto_file(decimal_schema(10, 2, optional=False), ProtoStyle())
    assert "decimal.handling.mode=string" in caught.value.hint
