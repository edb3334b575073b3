"""Tests of the reading of records: rows, deletions, tombstones and places, whatever the values hold."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from incsnap.connect.schema import Schema
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.framed_json import json_ends
from incsnap.verify.avro_reading import NO_JSON
from incsnap.verify.edited_form import EditedRows
from incsnap.verify.record_reading import (
    DELETION,
    ROW,
    TOMBSTONE,
    TRUNCATED,
    UNREADABLE,
    RecordForm,
    read,
    read_keys,
    read_rows,
    read_values,
)
from tests.support.numbered_schemas import SchemasFrom300

PLAIN = RecordForm(envelope=True, key_schemas=False, schemas=False)
WITH_SCHEMAS = RecordForm(envelope=True, key_schemas=True, schemas=True)
SOURCE = {
    "version": "3",
    "snapshot": "false",
    "gtid": None,
    "file": "binlog.000012",
    "pos": 345,
    "row": 2,
    "query": "x",
}
#: Rows whose values look like other parts of a record.
ROWS: list[dict[str, object]] = [
    {"id": 1, "text": 'a "quoted" \\ {brace}', "payload": {"x": 1.5, "wkb": "AQ==", "srid": None}},
    {"id": 2, "text": '","after":{"id":9},"source":{', "after": "}"},
    {"id": 3, "text": '{"before":null,"after":{}}', "op": "d"},
    {},
]


def envelope(op: str, before: object, after: object, source: object = SOURCE) -> bytes:
    content = {"before": before, "after": after, "source": source, "transaction": None, "op": op, "ts_ms": 1}
    return json.dumps(content, separators=(",", ":")).encode()


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("form", [PLAIN, WITH_SCHEMAS], ids=["plain", "with schemas"])
def test_rows_and_places_are_cut_out_of_envelopes(row: object, form: RecordForm) -> None:
    values = [envelope("c", None, row), envelope("u", row, row), envelope("d", row, None), None]
    if form.schemas:
        schema = b'{"schema":{"type":"struct","fields":[{"field":"payload"}]},"payload":'
        values = [None if value is None else schema + value + b"}" for value in values]

    read = read_values(pa.array(values, pa.binary()), form).to_pydict()

    text = json.dumps(row, separators=(",", ":")).encode()
    assert read["state"] == [ROW, ROW, DELETION, TOMBSTONE]
    assert read["row"] == [text, text, None, None]
    assert (read["file"][0], read["pos"][0], read["row_number"][0]) == ("binlog.000012", 345, 2)
    assert read["file"][3] is None


@pytest.mark.parametrize("form", [PLAIN, WITH_SCHEMAS], ids=["plain", "with schemas"])
@pytest.mark.parametrize("odd", [None, b"", b"{}", b"null", envelope("x", None, {"id": 1})])
def test_rows_alone_are_those_of_whole_records(form: RecordForm, odd: bytes | None) -> None:
    rows = [row for row in ROWS if not {"after", "op"} & set(row)]
    values = [envelope(op, row if op in "ud" else None, None if op == "d" else row) for row in rows for op in "crud"]
    if form.schemas:
        schema = b'{"schema":{"type":"struct","fields":[{"field":"after"},{"field":"op"}]},"payload":'
        values = [schema + value + b"}" for value in values]
    for some in (pa.array([*values, None], pa.binary()), pa.array([odd, *values], pa.binary())):
        for part in (some, some.slice(3), some.slice(0, 0)):
            whole = read_values(part, form)

            states, read = read_rows(part, form)

            assert (states, read) == (whole.column("state"), whole.column("row"))


@pytest.mark.parametrize("row", [row for row in ROWS if {"after", "op"} & set(row)])
def test_columns_that_have_names_of_the_envelope_are_no_parts_of_it(row: object) -> None:
    values = pa.array([envelope("u", row, row), envelope("d", row, None)], pa.binary())

    states, rows = read_rows(values, replace(PLAIN, ambiguous=True))

    assert states.to_pylist() == [ROW, DELETION]
    assert rows.to_pylist() == [json.dumps(row, separators=(",", ":")).encode(), None]


@pytest.mark.parametrize("odd", [None, b'{"op":"x"}'], ids=["by places", "by patterns"])
def test_a_truncation_is_no_row_and_shows_its_place(odd: bytes | None) -> None:
    batch = read_values(pa.array([envelope("t", None, None), *([] if odd is None else [odd])], pa.binary()), PLAIN)

    first = batch.slice(0, 1).to_pylist()[0]
    assert (first["state"], first["row"], first["is_snapshot"]) == (TRUNCATED, None, False)
    assert (first["file"], first["pos"]) == ("binlog.000012", 345)


def test_rows_of_a_snapshot_are_marked() -> None:
    read = read_values(pa.array([envelope("r", None, {"id": 1}, {**SOURCE, "snapshot": "last"})], pa.binary()), PLAIN)

    assert read.column("is_snapshot").to_pylist() == [True]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("form", [PLAIN, WITH_SCHEMAS], ids=["plain", "with schemas"])
def test_a_record_tells_its_table_and_the_snapshot_that_has_read_it(row: object, form: RecordForm) -> None:
    snapshots = ["last_in_data_collection", True, None]
    sources: list[dict[str, object]] = [
        {**SOURCE, "snapshot": snapshot, "db": "shöp", "sequence": None, "table": 'a"b'} for snapshot in snapshots
    ]
    sources += [{**SOURCE}, {**SOURCE, "db": "d", "table": None}]
    values = [*(envelope("r", None, {"db": "x", "table": "y", **dict(row)}, source) for source in sources), None]  # type: ignore[call-overload]
    if form.schemas:
        values = [None if value is None else b'{"schema":{},"payload":' + value + b"}" for value in values]

    snapshot, table = read(pa.array(values, pa.binary()), form).source_columns()

    assert table.to_pylist() == ['shöp.a"b'] * 3 + [None] * 3
    assert snapshot.to_pylist() == ["last_in_data_collection", "true", "null", "false", "false", None]


def test_a_row_of_a_snapshot_that_names_no_file_has_no_place() -> None:
    source = {**SOURCE, "snapshot": "incremental", "file": "", "pos": 0}
    read = read_values(pa.array([envelope("r", None, {"id": 1}, source)], pa.binary()), PLAIN)

    assert (read.column("state").to_pylist(), read.column("file").to_pylist()) == ([ROW], [None])


@pytest.mark.parametrize("value", [b"", b"{}", b'{"id":1}', b"null", b"\x00\x00\x00\x00\x01abc"])
def test_other_values_are_unreadable(value: bytes) -> None:
    assert read_values(pa.array([value], pa.binary()), PLAIN).column("state").to_pylist() == [UNREADABLE]


def test_members_behind_the_columns_of_an_unwrapped_row_are_cut_off() -> None:
    edited = EditedRows(("__op", "__deleted"), deleted="__deleted")
    form = RecordForm(envelope=False, key_schemas=False, schemas=False, edited=edited)
    values = [
        b'{"id":1,"__op":"x","t":"a,\\"__op\\":1}","__op":"c","__deleted":"false"}',
        b'{"id":1,"__op":"d","__deleted":"true"}',
        b"null",
        None,
    ]

    read = read_values(pa.array(values, pa.binary()), form).to_pydict()

    assert read["row"] == [b'{"id":1,"__op":"x","t":"a,\\"__op\\":1}"}', None, None, None]
    assert read["state"] == [ROW, DELETION, DELETION, TOMBSTONE]


def test_keys_lose_their_schema() -> None:
    keys = pa.array([b'{"schema":{"type":"struct"},"payload":{"id":"},"}}'], pa.binary())

    assert read_keys(keys, WITH_SCHEMAS).to_pylist() == [b'{"id":"},"}']


@pytest.mark.parametrize("kind", ["json-schema", "ext-json"])
def test_json_with_the_id_of_its_schema_is_read_like_plain_json(kind: str) -> None:
    head, tail = json_ends(
        SchemasFrom300(), "s", Schema("struct", fields=(("id", Schema("int32")),)), FormatChoice(kind)
    )
    form = replace(PLAIN, key_frame=kind, value_frame=kind)
    row = {"id": 1, "text": '"payload":{"schemaId":7}}'}
    framed = [head + envelope("c", None, row) + tail, None, envelope("c", None, row), b"\x00", b""]

    read = read_values(pa.array(framed, pa.binary()), form).to_pydict()

    assert read["state"] == [ROW, TOMBSTONE, UNREADABLE, UNREADABLE, UNREADABLE]
    assert read["row"][0] == json.dumps(row, separators=(",", ":")).encode()
    keys = read_keys(pa.array([head + b'{"id":1}' + tail, b'{"id":1}'], pa.binary()), form)
    assert keys.to_pylist() == [b'{"id":1}', NO_JSON]
