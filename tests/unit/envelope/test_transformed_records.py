"""Records behind transforms: what is written of each, where it goes, and that it overtakes the rows of windows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.envelope.change_records import TopicRecords, change_records
from incsnap.envelope.changed_columns import names_of
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.record_encoder import READ, topics
from incsnap.envelope.records import overtaken_by
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceColumns, SourceConstants
from incsnap.envelope.table_format import Registers, TableFormat, table_format
from incsnap.envelope.table_view import view_of
from incsnap.errors import ConfigError
from incsnap.tables import Column, TableId, TableShape
from incsnap.tasks import blocks
from incsnap.tasks.bucket import BucketBatch, ChangeBlock, Delivery
from incsnap.transforms.chain import Chain, Step
from incsnap.transforms.changed_state import ExtractChangedRecordState
from incsnap.transforms.condition_parser import GROOVY, choice_of, condition_of
from incsnap.transforms.conditions import OneOf
from incsnap.transforms.content_router import ContentBasedRouter
from incsnap.transforms.edits import EditFields, HeaderToValue, SetSchemaMetadata, ValueToKey
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.headers import InsertHeader
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone
from incsnap.transforms.read_to_insert import ReadToInsertEvent
from incsnap.transforms.record_spec import Constant, ConvertTimestamp, EnvelopeField, ExtractField, KeepFields
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter
from incsnap.transforms.unwrap import ExtractNewRecordState

TOPIC, NOW = "p.d.t", 1_700_000_000_123_456
SHAPE = TableShape(TableId("d", "t"), (Column("id", "int"), Column("v", "varchar", charset="utf8mb4")), key=(0,))
#: An insertion, an update, one that changes the key, a deletion.
KINDS, EVENT_OF = [30, 31, 31, 32], [0, 1, 1, 2, 2, 3]
ROWS = [(1, "a"), (1, "a"), (1, "b"), (1, "b"), (9, "b"), (5, "x")]
OP = EnvelopeField("", "op", "__op")
PARTITIONS, BUCKETS = {TOPIC: 7, "all": 5, "gone": 3}, 4


def chain(*transforms: Any) -> Chain:
    return tuple(each if isinstance(each, Step) else Step(each) for each in transforms)


def made(*transforms: Any, schemas: bool = False) -> TableFormat:
    choice = FormatChoice("json", schemas)
    return table_format(
        SHAPE, TOPIC, EnvelopeSettings("p", "1", key=choice, value=choice, transforms=chain(*transforms))
    )


def columns(rows: Sequence[tuple[int, str | None]]) -> list[Any]:
    ids, texts = zip(*rows, strict=True)
    return [pa.array(ids, pa.int64()), pa.array(texts, pa.string())]


def changes(format_: TableFormat) -> list[TopicRecords]:
    source = SourceColumns(
        gtid=pa.array([f"u:{nth}" for nth in range(4)], pa.string()),
        ts_us=np.arange(4, dtype=np.int64) * 1_001,
        server_id=np.full(4, 7, np.int64),
        thread=pa.nulls(4, pa.int64()),
        file=pa.array(["b"] * 4, pa.string()),
        pos=np.arange(4, dtype=np.int64),
    )
    laid = changes_of_table(format_, columns(ROWS), np.array(EVENT_OF, np.int32), np.array(KINDS, np.uint8))
    of_topics = change_records(laid, source, None, PARTITIONS, now_us=NOW)
    for each in of_topics:
        each.records.validate(full=True)
    return of_topics


def rows(format_: TableFormat, given: Sequence[tuple[int, str | None]]) -> dict[int, Any]:
    return snapshot_records(format_, columns(given), SourceConstants("b", 4, 0), PARTITIONS, BUCKETS, now_us=NOW)


def lines(of_topic: TopicRecords) -> list[tuple[Any, Any]]:
    """Key and value of each record that is sent."""
    return [
        (json.loads(each["key"]), each["value"] and json.loads(each["value"]))
        for each in of_topic.records.to_pylist()
        if each["partition"] >= 0
    ]


def read_values_of(format_: TableFormat) -> list[Any]:
    """Return the values of rows that a SELECT has read."""
    batches = rows(format_, [(1, "a")]).values()
    return [json.loads(value) for each in batches for value in each.column("value").to_pylist()]


@pytest.mark.parametrize("schemas", [False, True])
def test_rows_that_were_read_show_insertions_and_changes_stay(schemas: bool) -> None:
    plain, inserted = made(schemas=schemas), made(ReadToInsertEvent(), schemas=schemas)
    assert [lines(each) for each in changes(inserted)] == [lines(each) for each in changes(plain)]
    assert (inserted.uniform, inserted.topic, inserted.key_identifies) == (True, plain.topic, plain.key_identifies)
    (before,), (behind,) = read_values_of(plain), read_values_of(inserted)
    if schemas:
        assert behind["schema"] == before["schema"]
        before, behind = before["payload"], behind["payload"]
    assert (before["op"], behind["op"], behind["source"]["snapshot"]) == ("r", "c", "incremental")
    assert {**behind, "op": "r"} == before


def test_added_fields_and_headers_of_rows_that_were_read_show_insertions() -> None:
    unwrap = ExtractNewRecordState("rewrite", (OP,), (OP,))
    kept = EditFields("e", "Value", ExtractField("__op"))
    for transforms, shown in (
        ((ReadToInsertEvent(), unwrap), "c"),
        ((unwrap, ReadToInsertEvent()), "r"),
    ):
        batches = rows(made(*transforms), [(1, "a")]).values()
        (headers,) = [each for batch in batches for each in batch.column("headers").to_pylist()]
        assert dict(headers)["__op"] == shown.encode()
        assert [each["__op"] for each in read_values_of(made(*transforms))] == [shown]
        assert read_values_of(made(*transforms, kept)) == [shown]


def test_cloud_events_of_rows_that_were_read_show_insertions() -> None:
    choice = FormatChoice("cloudevents", extended=True)
    settings = EnvelopeSettings("p", "1", value=choice, transforms=chain(ReadToInsertEvent()))
    (value,) = read_values_of(table_format(SHAPE, TOPIC, settings))
    assert value["iodebeziumop"] == "c"


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_bytes_of_rows_that_were_read_differ_by_the_operation_alone(kind: str) -> None:
    def values_of(*transforms: Any) -> list[bytes]:
        settings = EnvelopeSettings("p", "1", value=FormatChoice(kind), transforms=chain(*transforms))
        format_ = table_format(SHAPE, TOPIC, settings, Registers(value=lambda subject, schema, *_: 1))
        return [value for each in rows(format_, [(1, "a")]).values() for value in each.column("value").to_pylist()]

    (plain,), (inserted,) = values_of(), values_of(ReadToInsertEvent())
    assert [bytes(pair) for pair in zip(plain, inserted, strict=True) if len(set(pair)) > 1] == [b"rc"]


def test_unwrapped_rows_stand_in_binlog_order_with_the_deletions_between_them() -> None:
    (of_topic,) = changes(made(ExtractNewRecordState("rewrite-with-tombstone", (OP,))))
    living = {"__deleted": "false"}
    assert lines(of_topic) == [
        ({"id": 1}, {"id": 1, "v": "a", **living, "__op": "c"}),
        ({"id": 1}, {"id": 1, "v": "b", **living, "__op": "u"}),
        ({"id": 1}, {"id": 1, "v": "b", "__deleted": "true", "__op": "d"}),
        ({"id": 1}, None),
        ({"id": 9}, {"id": 9, "v": "b", **living, "__op": "c"}),
        ({"id": 5}, {"id": 5, "v": "x", "__deleted": "true", "__op": "d"}),
        ({"id": 5}, None),
    ]


def test_a_deletion_in_the_default_mode_is_a_json_null_not_a_tombstone() -> None:
    """Connect's JsonConverter writes a null that has a schema in this way."""
    (of_topic,) = changes(made(ExtractNewRecordState()))
    assert of_topic.records.column("value").to_pylist()[-1] == b"null"
    (of_topic,) = changes(made(ExtractNewRecordState(), schemas=True))
    last = json.loads(of_topic.records.column("value").to_pylist()[-1])
    assert (last["payload"], last["schema"]["name"], last["schema"]["optional"]) == (None, "p.d.t.Value", True)
    (of_topic,) = changes(made(ExtractNewRecordState("delete-to-tombstone")))
    assert of_topic.records.column("value").to_pylist()[-1] is None


def test_rows_of_a_snapshot_are_unwrapped_alike() -> None:
    (of_bucket,) = rows(made(ExtractNewRecordState("rewrite", (OP,))), [(3, "c")]).values()
    assert json.loads(of_bucket.column("value")[0].as_py()) == {"id": 3, "v": "c", "__deleted": "false", "__op": "r"}


def test_added_headers_stand_behind_debeziums_own() -> None:
    headers = (OP, EnvelopeField("source", "pos", "pos"), EnvelopeField("source", "sequence", "none"))
    (of_topic,) = changes(made(ExtractNewRecordState("rewrite-with-tombstone", headers=headers)))
    assert of_topic.records.column("headers").to_pylist()[1:4] == [
        [("__op", b"u"), ("pos", b"1"), ("none", None)],
        [("__op", b"d"), ("pos", b"2"), ("none", None)],
        [("__op", b"d"), ("pos", b"2"), ("none", None), ("__op", b"d")],
    ]
    assert of_topic.records.column("new_key").to_pylist()[2] == b'{"id":9}'
    (read,) = rows(made(ExtractNewRecordState(headers=headers)), [(3, "c")]).values()
    assert read.column("headers").to_pylist() == [[("__op", b"r"), ("pos", b"4"), ("none", None)]]


def test_a_field_that_the_row_has_already_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"adds the field v to d\.t") as caught:
        made(ExtractNewRecordState("tombstone", (EnvelopeField("", "op", "v"),)))
    assert "add.fields.prefix" in caught.value.hint


def test_a_logical_table_puts_the_physical_one_into_the_key() -> None:
    format_ = made(ByLogicalTableRouter(".*", "all"))
    (of_topic,) = changes(format_)
    assert of_topic.topic == "all"
    assert lines(of_topic)[0][0] == {"id": 1, "__dbz__physicalTableIdentifier": TOPIC}
    (read,) = rows(format_, [(1, "a")]).values()
    assert read.column("key")[0] == of_topic.records.column("key")[0]


DROPPING = {
    "a filter": (Filter("f", OneOf(("op",), ("c", "r")), keeps_empty=False),),
    "unwrap, mode drop": (ExtractNewRecordState("drop"),),
    "all but rows that are read": (Filter("f", OneOf(("op",), ("r",)), keeps_empty=False),),
    "records of a moved key": (Step(Drop(), HasHeaderKey("__debezium.newkey")),),
    "tombstones go elsewhere": (Step(RegexRouter(".*", "gone"), RecordIsTombstone()),),
    "moved keys go elsewhere": (Step(RegexRouter(".*", "gone"), HasHeaderKey("__debezium.newkey")),),
    "tombstones have another key": (Step(ByLogicalTableRouter(".*", "all"), RecordIsTombstone()),),
    "only moved rows have another key": (Step(ByLogicalTableRouter(".*", "all"), HasHeaderKey("__debezium.oldkey")),),
    "a logical table, unwrapped": (ByLogicalTableRouter(".*", "all"), ExtractNewRecordState()),
    "keys of values": (ExtractNewRecordState(), ValueToKey("k", ("v",)), EditFields("x", "Key", ExtractField("v"))),
    "a filter by columns": (Filter("f", condition_of("value.after.v == 'b' || value.before.v == 'nothing'", GROOVY)),),
    "a filter of rows by columns": (ExtractNewRecordState(), Filter("f", condition_of("value.v != 'a'", GROOVY))),
    "topics by columns": (
        ContentBasedRouter("r", choice_of("value.after.v == 'b' ? 'all' : (value.op == 'd' ? 'gone' : null)", GROOVY)),
        ExtractNewRecordState(),
        ValueToKey("k", ("v",)),
    ),
    "nothing": (),
}


@pytest.mark.parametrize("name", DROPPING)
def test_a_change_overtakes_a_windows_row_whatever_a_transform_does(name: str) -> None:
    """A row that a SELECT has read and an event of it meet in one bucket, under one identity."""
    format_ = made(*DROPPING[name])
    overtaken: dict[int, set[bytes]] = {}
    for of_topic in changes(format_):
        owners = bucket_of(format_.topic, of_topic.bucket_partition, BUCKETS)
        for owner in set(owners.tolist()):
            of_bucket = of_topic.records.filter(pa.array(owners == owner))
            overtaken.setdefault(owner, set()).update(overtaken_by(of_bucket).to_pylist())
    read = rows(format_, [(1, "a"), (9, "b"), (5, "x"), (77, "untouched")])
    for bucket, records in read.items():
        ids = [_row(value)["id"] for value in records.column("value").to_pylist()]
        met = [identity in overtaken.get(bucket, ()) for identity in overtaken_by(records).to_pylist()]
        assert met == [id_ != 77 for id_ in ids]
    assert sum(map(len, read.values())) == {"a filter by columns": 1, "a filter of rows by columns": 3}.get(name, 4)


def _row(value: bytes) -> Any:
    """The row that the value of a read row shows."""
    decoded = json.loads(value)
    return decoded.get("after", decoded)


def test_a_filter_by_columns_sends_the_rows_that_it_is_true_of() -> None:
    (of_topic,) = changes(made(Filter("f", condition_of("value.after.v == 'b' || value.before.id == 5", GROOVY))))
    assert [(key["id"], value and value["op"]) for key, value in lines(of_topic)] == [
        (1, "u"),
        (1, None),
        (9, "c"),
        (5, "d"),
        (5, None),
    ]


def test_a_null_is_less_than_any_value_in_groovy() -> None:
    for condition, kept in (("value.v < 'a'", 1), ("value.v >= 'a'", 0), ("!('a' > value.v)", 0)):
        unwrapped = made(ExtractNewRecordState(), Filter("f", condition_of(condition, GROOVY)))
        assert sum(map(len, rows(unwrapped, [(1, None)]).values())) == kept


def test_a_router_by_columns_names_the_topic_of_each_record() -> None:
    choice = choice_of("value.before.id == 1 ? 'ones' : value.after.v == 'b' ? 'bees' : null", GROOVY)
    (of_topic, *more) = changes(made(ContentBasedRouter("r", choice)))
    sent = [(each["topic"], each["key"]) for of in (of_topic, *more) for each in of.records.to_pylist()]
    assert sorted(sent) == sorted(
        [
            (TOPIC, b'{"id":1}'),  # c: nothing before, and v is a
            ("ones", b'{"id":1}'),  # u
            ("ones", b'{"id":1}'),  # d of the moved key
            (TOPIC, b'{"id":1}'),  # its tombstone
            ("bees", b'{"id":9}'),  # c of the moved key
            (TOPIC, b'{"id":5}'),  # d
            (TOPIC, b'{"id":5}'),  # its tombstone
        ]
    )


def test_a_key_of_the_value_is_also_that_of_deletions_and_tombstones() -> None:
    steps = (ExtractNewRecordState("delete-to-tombstone"), ValueToKey("k", ("v", "id")))
    (of_topic,) = changes(made(*steps))
    assert lines(of_topic) == [
        ({"v": "a", "id": 1}, {"id": 1, "v": "a"}),
        ({"v": "b", "id": 1}, {"id": 1, "v": "b"}),
        ({"v": "b", "id": 1}, None),
        ({"v": "b", "id": 9}, {"id": 9, "v": "b"}),
        ({"v": "x", "id": 5}, None),
    ]


def test_keys_of_the_string_converter_are_what_java_prints() -> None:
    choice = FormatChoice("text")
    settings = EnvelopeSettings("p", "1", key=choice)
    assert table_format(SHAPE, TOPIC, settings).keys(columns([(7, "x")])).to_pylist() == [b"Struct{id=7}"]
    one = chain(ExtractNewRecordState(), ValueToKey("k", ("v",)), EditFields("x", "Key", ExtractField("v")))
    encoder = table_format(SHAPE, TOPIC, replace(settings, transforms=one)).encoders[READ]
    assert encoder is not None
    assert encoder.key is not None
    assert encoder.key.keys([pa.array([1, 2]), pa.array(["ä b", None])]).to_pylist() == ["ä b".encode(), None]
    two = chain(ExtractNewRecordState(), ValueToKey("k", ("v", "id")))
    encoder = table_format(SHAPE, TOPIC, replace(settings, transforms=two)).encoders[READ]
    assert encoder is not None
    assert encoder.key is not None
    keys = encoder.key.keys([pa.array([1, 2]), pa.array(["a", None])]).to_pylist()
    assert keys == [b"Struct{v=a,id=1}", b"Struct{id=2}"]
    binary = TableShape(TableId("d", "t"), (Column("id", "binary", precision=4),), key=(0,))
    with pytest.raises(ConfigError, match="StringConverter has no text for the field id"):
        table_format(binary, TOPIC, settings)


def test_a_field_that_the_value_does_not_have_is_named_with_those_that_it_has() -> None:
    with pytest.raises(ConfigError, match=r"asks for w, which records of d\.t do not have; they have id, v"):
        made(ExtractNewRecordState(), ValueToKey("k", ("w",)))
    with pytest.raises(ConfigError, match="asks for the column w, which is none of the columns"):
        made(Filter("f", condition_of("value.after.w == 1", GROOVY)))
    for condition, why in (
        ("value.after.v == 1", "compares v with 1, which is of another type"),
        ("value.after.id == true", "compares id with True, which is of another type"),
        ("value.after.id in [1.5]", r"which Groovy never finds there \(write id == 1\.5"),
        ("[3000000000].contains(value.after.id)", "in a list with 3000000000, which Groovy never finds there"),
    ):
        with pytest.raises(ConfigError, match=why):
            made(Filter("f", condition_of(condition, GROOVY)))
    with pytest.raises(ConfigError, match="are envelopes with before and after"):
        made(ValueToKey("k", ("v",)))


def test_headers_name_the_columns_that_an_update_has_changed() -> None:
    state = ExtractChangedRecordState("changed", "same")
    (of_topic,) = changes(made(state, ExtractNewRecordState("rewrite-with-tombstone", headers=(OP,))))
    none = [("changed", b"[]"), ("same", b"[]")]
    assert of_topic.records.column("headers").to_pylist() == [
        [*none, ("__op", b"c")],
        [("changed", b'["v"]'), ("same", b'["id"]'), ("__op", b"u")],
        [*none, ("__op", b"d")],
        [*none, ("__op", b"d"), ("__op", b"d")],
        [*none, ("__op", b"c")],
        [*none, ("__op", b"d")],
        [*none, ("__op", b"d"), ("__op", b"d")],
    ]
    (read,) = rows(made(state), [(3, "c")]).values()
    assert read.column("headers").to_pylist() == [none]
    (other,) = changes(made(RegexRouter(".*", "all"), state))
    assert other.records.column("headers").to_pylist()[3] is None


def test_names_of_columns_are_quoted_as_in_a_list_of_connect() -> None:
    shape = TableShape(TableId("d", "t"), (Column("id", "int"), Column('a"b\\c', "int")), key=(0,))
    fields = view_of(shape, ColumnRules()).fields
    lists = names_of(fields, [np.array([True]), np.array([True])], np.array([False, True]))
    assert lists.to_pylist() == ["[]", r'["id","a\"b\\c"]']


def test_a_list_of_columns_is_no_field_of_the_value() -> None:
    moved = HeaderToValue("m", ("changed",), ("changed",), moves=True)
    with pytest.raises(ConfigError, match="is written as a header alone"):
        made(ExtractChangedRecordState("changed"), ExtractNewRecordState("drop"), moved)


def test_headers_become_fields_in_the_order_of_the_setting() -> None:
    unwrap = ExtractNewRecordState("drop", headers=(OP,))
    moved = HeaderToValue("m", ("h", "__op", "gone", "__op"), ("f", "op", "x", "again"), moves=True)
    (of_topic,) = changes(made(InsertHeader(Constant("h", "text")), unwrap, moved))
    assert list(lines(of_topic)[0][1].items()) == [("id", 1), ("v", "a"), ("f", "text"), ("op", "c"), ("again", "c")]


def test_the_schema_of_a_missing_value_has_the_names_and_the_converted_times_of_the_transforms() -> None:
    shape = TableShape(TableId("d", "t"), (Column("id", "int"), Column("at", "datetime")), key=(0,))
    named = SetSchemaMetadata("Value", "com.x.Row", 3)
    converted = EditFields("c", "Value", ConvertTimestamp("at", "string", "yyyy-MM-dd", "milliseconds"))
    choice = FormatChoice("json", schemas=True)
    transforms = chain(ExtractNewRecordState(), named, converted, EditFields("r", "Value", KeepFields((), ("id",), ())))
    format_ = table_format(shape, TOPIC, EnvelopeSettings("p", "1", key=choice, value=choice, transforms=transforms))
    (deletion,) = {each.null_value for each in format_.encoders.values() if each is not None and each.null_value}
    schema = json.loads(deletion)["schema"]
    assert (schema["name"], schema["version"], schema["optional"]) == ("com.x.Row", 3, True)
    assert [(each["field"], each["type"]) for each in schema["fields"]] == [("id", "int32"), ("at", "string")]


@pytest.mark.parametrize("text", ["12", "1.5", "true", "2024-01-01", "[a]"])
def test_a_header_that_is_no_text_is_no_field_of_the_value(text: str) -> None:
    moved = HeaderToValue("m", ("h",), ("f",), moves=True)
    with pytest.raises(ConfigError, match="no text"):
        made(InsertHeader(Constant("h", text)), ExtractNewRecordState("drop"), moved)


def test_a_window_has_no_dropped_rows() -> None:
    assert rows(made(Filter("f", OneOf(("op",), ("c",)))), [(1, "a")]) == {}
    assert topics(TOPIC, chain(Drop()), "none") == ()
    assert rows(made(Drop()), [(1, "a")]) == {}


def test_dropped_records_are_neither_sent_nor_counted() -> None:
    (of_topic,) = changes(made(Filter("f", OneOf(("op",), ("c",)), keeps_empty=False)))
    block = pa.py_buffer(blocks.encode(of_topic.records))
    delivery = Delivery(
        BucketBatch(1, "d", 0, [ChangeBlock(blocks.EVENTS, TOPIC, "d.t", block)]), WindowBuffers("/nowhere")
    )
    sent = [
        json.loads(value)["op"]
        for outgoing in delivery.records()
        for value in outgoing.records.column("value").to_pylist()
    ]
    assert sent == ["c", "c"]
    assert delivery.counts.events == 2


def test_headers_of_all_records_stand_before_those_of_transforms_also_on_tombstones_and_read_rows() -> None:
    steps = chain(ExtractNewRecordState("rewrite-with-tombstone", headers=(OP,)))
    format_ = table_format(SHAPE, TOPIC, EnvelopeSettings("p", "1", transforms=steps, headers=(Constant("run", "7"),)))

    of_changes = [each["headers"] for of_topic in changes(format_) for each in of_topic.records.to_pylist()]
    of_rows = [each["headers"] for batch in rows(format_, ROWS[:1]).values() for each in batch.to_pylist()]

    assert of_rows == [[("run", b"7"), ("__op", b"r")]]
    assert len(of_changes) == 7
    assert {headers[0] for headers in of_changes} == {("run", b"7")}
    assert {headers[1][0] for headers in of_changes} == {"__op"}


def test_a_predicate_sees_the_headers_of_all_records() -> None:
    step = Step(RegexRouter(".*", "all"), HasHeaderKey("run"))
    settings = EnvelopeSettings("p", "1", transforms=(step,), headers=(Constant("run", "7"),))

    assert [each.topic for each in changes(table_format(SHAPE, TOPIC, settings))] == ["all"]
