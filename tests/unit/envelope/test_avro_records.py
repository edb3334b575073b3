"""Avro records whole: wire format, before and after, source, transaction, as fastavro reads them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from incsnap.connect.schema import Schema
from incsnap.envelope.avro_format import AvroStructs, AvroValues, avro_keys
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import Changes, TransactionOrder
from incsnap.envelope.sources import SourceColumns
from incsnap.errors import IncsnapError
from incsnap.transforms.record_spec import change_spec
from tests.support.hand_made_view import hand_made_view
from tests.support.numbered_schemas import SchemasFrom300
from tests.support.source_columns import MOMENTS, NOW, SOURCE, SOURCE_BLOCK, two_events

TOPIC = "pre.shop.orders"
VIEW = hand_made_view(
    {"id": Schema("int64"), "name": Schema("string", optional=True), "raw": Schema("bytes")}, key=["id"]
)
COLUMNS = [
    pa.array([1, 2, 3], pa.int64()),
    pa.array(["one", None, ""], pa.string()),
    pa.array([b"\x00", b"", b"\xff\xfe"], pa.binary()),
]
ROWS = [
    {"id": 1, "name": "one", "raw": b"\x00"},
    {"id": 2, "name": None, "raw": b""},
    {"id": 3, "name": "", "raw": b"\xff\xfe"},
]
ENVELOPE = EnvelopeSettings("pre", "1.2.3")


class Registered(SchemasFrom300):
    """A registry in memory, with Avro's reader."""

    def read(self, data: bytes, subject: str) -> Any:
        assert data[0] == 0
        stream, schema = io.BytesIO(data[5:]), json.loads(self.schema_of(data, subject))
        value = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
        assert stream.read() == b""
        return value


def values(registered: Registered) -> AvroValues:
    return AvroValues(VIEW, change_spec(TOPIC), ENVELOPE, registered)


def test_a_key_is_a_zero_byte_the_schemas_number_and_the_record() -> None:
    registered = Registered()
    keys = avro_keys(VIEW, change_spec(TOPIC), ENVELOPE, registered).keys(COLUMNS)

    assert keys.type == pa.binary()
    assert keys.to_pylist()[1] == b"\x00\x00\x00\x01\x2c\x04"
    assert [registered.read(key, f"{TOPIC}-key") for key in keys.to_pylist()] == [{"id": n} for n in (1, 2, 3)]


def test_rows_of_a_snapshot_are_reads_with_their_source() -> None:
    registered = Registered()
    reads = values(registered).reads(COLUMNS, SOURCE, NOW)

    assert [registered.read(value, f"{TOPIC}-value") for value in reads.to_pylist()] == [
        {"before": None, "after": row, "source": SOURCE_BLOCK, "transaction": None, "op": "r", **MOMENTS}
        for row in ROWS
    ]


def test_a_truncation_has_neither_row() -> None:
    registered = Registered()
    truncation = registered.read(values(registered).truncation(SOURCE, NOW), f"{TOPIC}-value")

    assert truncation == {
        "before": None,
        "after": None,
        "source": SOURCE_BLOCK,
        "transaction": None,
        "op": "t",
        **MOMENTS,
    }


def changes(source: SourceColumns, order: TransactionOrder | None = None) -> list[dict[str, Any]]:
    """An insert of row 0, an update from 0 to 1, a deletion of 2; the first of event 0, the others of event 1."""
    registered = Registered()
    format_ = values(registered)
    what = Changes(
        before=np.array([-1, 0, 2]),
        after=np.array([0, 1, -1]),
        event=np.array([0, 1, 1]),
        row=np.array([0, 0, 1]),
        op=np.array([0, 1, 2], np.uint8),
        source=source,
        order=order,
        now_us=NOW,
    )
    written = format_.changes(COLUMNS, what)
    written.validate(full=True)
    return [registered.read(value, f"{TOPIC}-value") for value in written.to_pylist()]


def test_changes_have_the_rows_that_belong_to_them() -> None:
    records = changes(two_events())

    assert [(value["op"], value["before"], value["after"]) for value in records] == [
        ("c", None, ROWS[0]),
        ("u", ROWS[0], ROWS[1]),
        ("d", ROWS[2], None),
    ]
    assert {key: records[2][key] for key in ("transaction", *MOMENTS)} == {"transaction": None, **MOMENTS}


def test_changes_name_their_event_and_their_number_within_it() -> None:
    sources = [value["source"] for value in changes(two_events())]

    assert list(sources[0]) == list(SOURCE_BLOCK)
    names = ("snapshot", "ts_ms", "ts_us", "ts_ns", "server_id", "gtid", "file", "pos", "row", "thread", "query")
    assert [sources[0][name] for name in names] == [
        *("false", 1, 1_001, 1_001_000, 7, "uuid:1", "binlog.000001", 4, 0, None, None)
    ]
    assert [sources[2][name] for name in names] == [
        *("false", 2, 2_002, 2_002_000, 2**32 - 1, "uuid:2", "binlog.000002", 2**40, 1, 12, None)
    ]


def test_changes_bring_the_statement_where_it_is_asked_for() -> None:
    records = changes(two_events(pa.array(["INSERT é", None], pa.string())))

    assert [value["source"]["query"] for value in records] == ["INSERT é", None, None]


def test_changes_bring_their_order_in_the_transaction() -> None:
    order = TransactionOrder(total=np.array([1, 1, 300]), of_table=np.array([1, 1, 2]))

    assert [value["transaction"] for value in changes(two_events(), order)] == [
        {"id": "uuid:1", "total_order": 1, "data_collection_order": 1},
        {"id": "uuid:2", "total_order": 1, "data_collection_order": 1},
        {"id": "uuid:2", "total_order": 300, "data_collection_order": 2},
    ]


def test_a_null_that_the_schema_forbids_names_table_and_column() -> None:
    with pytest.raises(IncsnapError, match=r"Field shop\.orders\.raw has a null"):
        values(Registered()).reads([COLUMNS[0], COLUMNS[1], pa.nulls(3, pa.binary())], SOURCE, NOW)


def test_another_shape_of_the_table_is_another_schema_of_the_same_subject() -> None:
    registered = Registered()
    AvroValues(VIEW, change_spec(TOPIC), ENVELOPE, registered)
    AvroValues(VIEW, change_spec(TOPIC), ENVELOPE, registered)
    AvroValues(hand_made_view({"id": Schema("int64")}), change_spec(TOPIC), ENVELOPE, registered)

    assert [subject for subject, _ in registered.schemas] == [f"{TOPIC}-value"] * 2


def test_a_single_record_is_written_by_its_schema() -> None:
    schema = Schema(
        "struct",
        name="io.debezium.connector.common.Notification",
        version=1,
        fields=(
            ("id", Schema("string")),
            ("additional_data", Schema("map", optional=True, items=Schema("string"))),
            ("bytes", Schema("bytes", optional=True)),
            ("tables", Schema("array", items=Schema("struct", name="a.T", fields=(("rows", Schema("int64")),)))),
            ("snapshot", Schema("string", optional=True, default="false")),
        ),
    )
    registered = Registered()
    structs = AvroStructs(registered)
    given = {"id": "é", "additional_data": {"a": "b"}, "bytes": "AP8=", "tables": [{"rows": 2**40}], "snapshot": "last"}
    missing: dict[str, Any] = {"id": "", "additional_data": None, "tables": []}

    structs_read = [registered.read(structs.struct("t-value", schema, value), "t-value") for value in (given, missing)]

    assert structs_read == [
        {**given, "bytes": b"\x00\xff"},
        {**missing, "bytes": None, "snapshot": "false"},
    ]
    assert len(registered.schemas) == 1
