"""Comparisons of a real table with records that are written by hand, in forms of topics without a job of their own."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Mapping, Sequence

import fastavro
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from incsnap.config.apicurio_settings import URL
from incsnap.config.load import read
from incsnap.kafka.apicurio import ApicurioRegistry
from incsnap.tables import TableId
from incsnap.verify.evidence import connector_offsets
from incsnap.verify.report import TableReport, write_differences
from incsnap.verify.verification import Choice, verify_tables
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from tests.support.faulty_topic import deliver_everything, send
from tests.support.kafka import Read
from tests.support.spark_session import launched_session

pytestmark = pytest.mark.servers

_CONFLUENT = "io.confluent.connect.json.JsonSchemaConverter"
_CONNECT = "org.apache.kafka.connect.transforms"
FORMS = {
    "JSON": {},
    "JSON Schema": {
        f"{side}.converter{setting}": value
        for side in ("key", "value")
        for setting, value in {"": _CONFLUENT, ".schema.registry.url": "http://nobody"}.items()
    },
    "edited rows": {
        "transforms": "unwrap,left,marked",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.add.fields": "op",
        "transforms.left.type": f"{_CONNECT}.ReplaceField$Value",
        "transforms.left.exclude": "w",
        "transforms.marked.type": f"{_CONNECT}.InsertField$Value",
        "transforms.marked.static.field": "origin",
        "transforms.marked.static.value": "shop",
    },
    "cast and hoisted rows": {
        "transforms": "unwrap,cast,hoisted",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.add.fields": "op",
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
        "transforms.cast.type": f"{_CONNECT}.Cast$Value",
        "transforms.cast.spec": "v:string,__deleted:boolean",
        "transforms.hoisted.type": f"{_CONNECT}.HoistField$Value",
        "transforms.hoisted.field": "row",
    },
    "Avro with ids in headers": {
        "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
        "value.converter.apicurio.registry.auto-register": "true",
        "schema.name.adjustment.mode": "avro",
    },
}
_ROWS_ALONE = ("edited rows", "cast and hoisted rows")
_API = "value.converter.apicurio.registry.url"
_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "v", "type": ["null", "int"]},
        {"name": "w", "type": ["null", "string"]},
    ],
}
_SOURCE = [("version", "string"), ("snapshot", "string"), ("file", "string"), ("pos", "long"), ("row", "int")]
_ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", _ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "fields": [{"name": name, "type": type_} for name, type_ in _SOURCE],
            },
        },
        {"name": "op", "type": "string"},
    ],
}


def record(form: str, op: str, row: Mapping[str, object], pos: int, number: int) -> Read:
    """Return a record of `row` at the place `pos` of the binlog. A snapshot's row has no place, as at a job's start.

    `number`: id of the schema of Avro values.
    """
    head = b"\0\0\0\1\7" if form == "JSON Schema" else b""
    key, value = json.dumps({"id": row["id"]}, separators=(",", ":")), dict(row)
    if form == "edited rows":
        value = {"id": row["id"], "v": row["v"], "__op": op, "origin": "shop"}
    elif form == "cast and hoisted rows":
        value = {"row": {**row, "v": str(row["v"]), "__deleted": False, "__op": op}}
    else:
        is_read = op == "r"
        place = {"file": "" if is_read else "binlog.000001", "pos": pos, "row": 0}
        source = {"version": "3", "snapshot": "true" if is_read else "false", "gtid": None, **place, "query": None}
        value = {"before": None, "after": dict(row), "source": source, "transaction": None, "op": op, "ts_ms": 1}
        if form == "Avro with ids in headers":
            written = io.BytesIO()
            fastavro.schemaless_writer(written, fastavro.parse_schema(_ENVELOPE), value)
            return Read(
                0, 0, key.encode(), written.getvalue(), (("apicurio.value.globalId", number.to_bytes(8, "big")),)
            )
    return json_record({"id": row["id"]}, value, head)


def json_record(key: object, value: object, head: bytes = b"") -> Read:
    """Return a record of JSON. `head` stands before its key and value."""
    written_key, written_value = (head + json.dumps(each, separators=(",", ":")).encode() for each in (key, value))
    return Read(0, 0, written_key, written_value)


def compared(
    spark: SparkSession,
    play: CapturedDatabase,
    table: TableId,
    prefix: str,
    properties: Mapping[str, str],
    records: Sequence[Read],
) -> TableReport:
    """Write the topic of `table` in the name of a connector that has delivered everything, and compare the two.

    `prefix`: the connector's `topic.prefix`. `properties`: its settings beside.
    """
    topic = f"{prefix}.{table}"
    admin = AdminClient({"bootstrap.servers": play.kafka})
    admin.create_topics([NewTopic(topic, 1)], request_timeout=30)[topic].result(30)
    send(play.kafka, topic, records)
    file = write_properties(play.folder / f"{prefix}.properties", {**properties, "topic.prefix": prefix})
    with play.connect() as connection:
        offsets = deliver_everything(connection, play.kafka, prefix)
    places = {"bootstrap.servers": play.kafka, "offset.storage.topic": offsets}
    worker = write_properties(play.folder / "worker.properties", places)
    choice = Choice((str(table),), offsets=connector_offsets(file, worker), lists_history=True)
    (report,) = verify_tables(spark, read(str(file), str(worker)).settings, choice)
    return report


def test_each_form_is_read_and_keys_with_an_odd_history_are_listed(play: CapturedDatabase, registry_url: str) -> None:
    api = registry_url.replace("/apis/ccompat/v7", "/apis/registry/v2")
    registry = ApicurioRegistry({URL: api, "apicurio.registry.auto-register": "true"}, "avro")
    number = registry.register(f"{play.prefix}-value", json.dumps(_ENVELOPE))
    table = TableId(play.database, "t")
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table.sql} (id INT PRIMARY KEY, v INT, w VARCHAR(9))")
        cursor.execute(f"INSERT INTO {table.sql} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd')")
    own = {**play.properties(), "table.include.list": f"{play.database}\\.t"}
    with launched_session(read(str(write_properties(play.folder / "all.properties", own))).settings) as spark:
        for form, more in FORMS.items():
            prefix = f"{play.prefix}-{form.replace(' ', '')}"
            again = [("u", {"id": 2, "v": v, "w": "b"}, pos) for v, pos in ((1, 20), (2, 30), (1, 20), (2, 30))]
            sent = [("r", {"id": 1, "v": 1, "w": "a"}, 0), ("c", {"id": 2, "v": 2, "w": "b"}, 10), *again]
            sent += [("c", {"id": 3, "v": 9, "w": "c"}, 40), ("c", {"id": 7, "v": 7, "w": "z"}, 50)]
            more = {**more, _API: api} if form == "Avro with ids in headers" else more

            report = compared(
                spark, play, table, prefix, {**own, **more}, [record(form, *each, number) for each in sent]
            )

            write_differences([report], play.folder / form)
            lines = map(json.loads, (play.folder / form / f"{table}.jsonl").read_text().splitlines())
            named = {(line["key"]["id"], line["kind"]) for line in lines}
            rows_alone = form in _ROWS_ALONE
            history = set() if rows_alone else {(2, "sent_twice"), (2, "back_in_time")}
            expected = {(3, "wrong" if rows_alone else "stale"), (4, "missing"), (7, "extra"), *history}
            assert (form, report.refused, named) == (form, "", expected)
            keys = map(json.loads, (play.folder / form / f"{table}.keys.jsonl").read_text().splitlines())
            assert {key["id"] for key in keys} == {3, 4, 7}


def test_a_row_of_a_hidden_table_in_the_same_topic_is_not_extra(play: CapturedDatabase) -> None:
    table = TableId(play.database, "t")
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table.sql} (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {table.sql} VALUES (1)")
    own = {**play.properties(), "table.include.list": f"{play.database}\\..*"}
    records = [
        json_record({"id": number}, {
            "before": None,
            "after": {"id": number},
            "source": {"version": "3", "snapshot": "false", "db": play.database, "sequence": None, "table": name,
                       "gtid": None, "file": "binlog.000001", "pos": 10 + number, "row": 0},
            "transaction": None,
            "op": "c",
            "ts_ms": 1,
        })
        for number, name in ((1, "t"), (2, "hidden"), (3, "t"))
    ]  # fmt: skip
    with launched_session(read(str(write_properties(play.folder / "all.properties", own))).settings) as spark:
        report = compared(spark, play, table, play.prefix, own, records)

    kinds = {each.key: each.kind for each in report.differences}
    assert (report.refused, kinds) == ("", {b'{"id":2}': "unverifiable", b'{"id":3}': "extra"})


def test_converted_times_and_flattened_points_are_compared(play: CapturedDatabase) -> None:
    table = TableId(play.database, "stops")
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table.sql} (id INT PRIMARY KEY, at DATETIME(3), place POINT)")
        rows = ", ".join(f"({number}, '2024-02-29 23:59:58.007', POINT(1, 2))" for number in (1, 2, 3))
        cursor.execute(f"INSERT INTO {table.sql} VALUES {rows}, (4, NULL, NULL)")
    own = {
        **play.properties(),
        "table.include.list": f"{play.database}\\.stops",
        "transforms": "unwrap,text,flat",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.add.fields": "op",
        "transforms.text.type": f"{_CONNECT}.TimestampConverter$Value",
        "transforms.text.field": "at",
        "transforms.text.target.type": "string",
        "transforms.text.format": "yyyy/MM/dd HH:mm:ss.SSS",
        "transforms.flat.type": f"{_CONNECT}.Flatten$Value",
        "transforms.flat.delimiter": "_",
    }
    # Well-known binary of POINT(1, 2): little-endian, the type 1, and two doubles.
    wkb = base64.b64encode(struct.pack("<BIdd", 1, 1, 1.0, 2.0)).decode()
    right = {"at": "2024/02/29 23:59:58.007", "place_x": 1.0, "place_y": 2.0, "place_wkb": wkb, "place_srid": None}
    sent: dict[int, dict[str, object]] = {
        1: right,
        2: {**right, "at": "2024/02/29 23:59:58.006"},
        3: {**right, "place_y": 3.0},
        4: dict.fromkeys(right),
    }
    records = [json_record({"id": key}, {"id": key, **row, "__op": "c"}) for key, row in sent.items()]
    with launched_session(read(str(write_properties(play.folder / "all.properties", own))).settings) as spark:
        report = compared(spark, play, table, play.prefix, own, records)

        named = {(each.key, each.kind, tuple(each.columns)) for each in report.differences}
        wrong = {(b'{"id":2}', "wrong", ("at",)), (b'{"id":3}', "wrong", ("place_y",))}
        assert (report.refused, named) == ("", wrong)

        of_marks = {
            **own,
            "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
            "transforms.text.field": "__deleted",
        }
        report = compared(spark, play, table, f"{play.prefix}-marks", of_marks, [])

        assert "change __deleted, which marks deletions" in report.refused
