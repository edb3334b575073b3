"""Tests of the golden files' tools: texts are written back unchanged, and the comparison misses nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.golden.avro_form import AvroForm
from tests.golden.comparison import ABSENT, compare, settled
from tests.golden.golden_file import read_golden, read_json, read_plain, whole_record, write_golden
from tests.golden.statements import statements
from tests.golden.written_json import Number, dump, parse, shortened
from tests.support.kafka import Read


@pytest.mark.parametrize(
    "text",
    [
        '{"b":1,"a":[0.1,1.0E7,-0.0,1e-5,18446744073709551615,null,true]}',
        r'"\u0001\b\n\f\r\t\"\\/é€ \uD83D\uDE00 \u001F"',
        '"\x7f\u2028"',
        "{}",
        "[[],{}]",
    ],
)
def test_json_is_written_back_as_it_was_read(text: str) -> None:
    assert dump(parse(text)) == text


@pytest.mark.parametrize("text", ['{"a": 1}', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\/"'])
def test_json_in_another_spelling_is_refused(text: str) -> None:
    with pytest.raises(AssertionError, match="not written back"):
        read_json(text.encode())


def test_numbers_are_equal_by_their_text_alone() -> None:
    assert parse("1.0") == Number("1.0")
    assert parse("1.0") != parse("1.00")
    assert parse("1.0") != "1.0"
    assert parse("1.0") != 1


def test_only_long_strings_are_shortened_and_by_their_content() -> None:
    assert shortened({"a": ["x" * 3000]}) == {"a": ["x" * 3000]}
    assert shortened("x" * 3001).endswith(", 3001 characters")
    assert shortened("x" * 3001) != shortened("x" * 3000 + "y")


def test_a_golden_file_holds_the_records_it_was_made_of(tmp_path: Path) -> None:
    reads = [
        Read(0, 0, b'{"schema":{"type":"int32"},"payload":1}', b'{"a":1.50}', (("h", b"x"),)),
        Read(0, 1, None, None),
    ]
    write_golden(tmp_path / "g.json", {"about": "it"}, {"t": reads}, read_json)
    golden = read_golden(tmp_path / "g.json")
    assert golden.about == {"about": "it"}
    assert golden.topics == {"t": [whole_record(read, read_json) for read in reads]}
    assert golden.topics["t"][0]["key"] == {"schema": {"type": "int32"}, "payload": 1}


def test_bytes_without_json_are_held_as_they_are_and_so_is_the_partition(tmp_path: Path) -> None:
    reads = [Read(0, 0, b"1", b'{"a":1}'), Read(2, 0, b"\xff", b'{"a": 1}')]
    write_golden(tmp_path / "g.json", {}, {"t": reads}, read_plain)
    assert read_golden(tmp_path / "g.json").topics["t"] == [
        {"key": 1, "value": {"a": 1}},
        {"key": {"bytes": "ff"}, "value": {"bytes": b'{"a": 1}'.hex()}, "partition": 2},
    ]


def change(op: str = "c", gtid: int = 5, pos: int = 10, **more: Any) -> dict[str, Any]:
    source = {"ts_ms": 1, "ts_us": 1000, "ts_ns": 1000000, "version": "x", "file": "f", "server_id": 1, "thread": 2}
    source |= {"gtid": f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{gtid}", "pos": pos}
    return {"key": {"id": 1}, "value": {"op": op, "after": {"id": 1}, "source": source, **more}}


def places(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    differences = compare("c", settled({"c.t": left}), settled({"c.t": right}))
    return [(each.place, each.theirs, each.ours) for each in differences]


def test_positions_and_times_of_another_server_are_no_difference() -> None:
    ours = [change(gtid=907, pos=4), change(gtid=911, pos=99)]
    ours[0]["value"]["source"] |= {"ts_ms": 7, "ts_us": 7123, "version": "y"}
    assert places([change(), change(gtid=6, pos=11)], ours) == []


def test_another_partition_is_a_difference() -> None:
    assert places([change()], [{**change(), "partition": 1}]) == [("partition", 0, 1)]


def test_events_of_one_transaction_differ_from_events_of_two() -> None:
    assert [place for place, _, _ in places([change(), change(pos=11)], [change(), change(gtid=6, pos=11)])] == [
        "value.source.gtid"
    ]


def test_a_record_that_is_missing_is_one_difference_and_moves_no_other() -> None:
    left = [change("c"), change("d", gtid=6, pos=11), change("t", gtid=7, pos=12), change("c", gtid=8, pos=13)]
    right = [change("c"), change("d", gtid=6, pos=11), change("c", gtid=8, pos=13)]
    assert [(place, ours) for place, _, ours in places(left, right)] == [("record", ABSENT)]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"after": {"id": 2}}, "value.after.id"),
        ({"after": {"id": True}}, "value.after.id"),
        ({"after": {}}, "value.after.id"),
        ({"extra": None}, "value.extra"),
    ],
)
def test_every_field_is_compared(more: dict[str, Any], place: str) -> None:
    assert [each for each, _, _ in places([change()], [change(**more)])] == [place]


def test_the_order_of_fields_is_compared() -> None:
    other = change()
    other["value"] = dict(reversed(other["value"].items()))
    assert [place for place, _, _ in places([change()], [other])] == ["value (order)"]


def test_avro_is_decoded_by_the_schema_whose_number_stands_before_it() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
            {"name": "f", "type": ["null", "double"]},
        ],
    }
    body = io.BytesIO()
    bare = json.loads(json.dumps(schema).replace("logicalType", "ignored"))
    fastavro.schemaless_writer(body, fastavro.parse_schema(bare), {"d": b"\x01", "f": 0.5})
    form = AvroForm({7: json.dumps(schema)}.__getitem__)
    decoded = form(b"\x00\x00\x00\x00\x07" + body.getvalue())
    assert decoded == {"schema": schema, "payload": {"d": "AQ==", "f": Number("0.5")}}
    with pytest.raises(AssertionError):
        form(b"\x00\x00\x00\x00\x07" + body.getvalue() + b"\x00")


@pytest.mark.parametrize("name", ["schema.sql", "changes.sql"])
def test_the_statements_are_read_whole(name: str) -> None:
    texts = statements(name)
    assert len(texts) > 50
    assert not [text for text in texts if text.startswith("--") or text.endswith(";")]
