"""Rows of an outbox table as events: what each is made of, where it goes, and that rows overtake each other as ever."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.envelope.change_records import TopicRecords, change_records
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.partitioner import bucket_of, partition
from incsnap.envelope.record_encoder import topics
from incsnap.envelope.records import overtaken_by
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import TableFormat, table_format
from incsnap.errors import ConfigError, ValueRefused
from incsnap.tables import Column, TableId, TableShape
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.own_topics import by_topic
from incsnap.transforms.chain import Step
from incsnap.transforms.outbox import EventRouter
from incsnap.transforms.record_spec import Constant, OutboxEvent, PlacedColumn
from incsnap.transforms.routers import RegexRouter
from incsnap.types.modes import Modes
from tests.support.source_columns import source_columns
from tests.unit.tasks.test_bucket import Ledger

TOPIC, NOW, BUCKETS = "p.d.outbox", 1_700_000_000_123_456, 4
COLUMNS = (
    Column("id", "int"),
    Column("aggregatetype", "varchar", charset="utf8mb4"),
    Column("aggregateid", "varchar", charset="utf8mb4"),
    Column("payload", "varchar", charset="utf8mb4"),
    Column("at", "datetime", fraction=6),
)
SHAPE = TableShape(TableId("d", "outbox"), COLUMNS, key=(0,))
EVENT = OutboxEvent(
    "outbox", "id", "aggregateid", "payload", "", "aggregatetype", "(?<routedByValue>.*)", "to.${routedByValue}"
)
Row = tuple[int, str | None, str | None, str | bytes | None]
ROWS: list[Row] = [(1, "a", "k1", "one"), (2, "b", "k2", None), (3, "a", "k1", " \t"), (4, "a", None, "four")]


def made(event: OutboxEvent = EVENT, *, updates: str = "warn", schemas: bool = False, **more: Any) -> TableFormat:
    choice = FormatChoice("json", schemas)
    chain = (Step(EventRouter(event, updates)),)
    return table_format(SHAPE, TOPIC, EnvelopeSettings("p", "1", key=choice, value=choice, transforms=chain, **more))


def columns(rows: list[Row]) -> list[Any]:
    ids, *texts = zip(*rows, strict=True)
    at = [None if id_ == 2 else 1_600_000_000_000_000 + 1_999 * id_ for id_ in ids]
    *texts, payloads = texts
    payload = pa.array(payloads, pa.binary() if any(isinstance(each, bytes) for each in payloads) else pa.string())
    return [
        pa.array(ids, pa.int64()),
        *(pa.array(each, pa.string()) for each in texts),
        payload,
        pa.array(at, pa.int64()),
    ]


def changes(format_: TableFormat, rows: list[Row], kinds: list[int], events: list[int]) -> list[TopicRecords]:
    """Return the records of some rows. `kinds`: type codes of the events. `events`: the event of each row."""
    laid = changes_of_table(format_, columns(rows), np.array(events, np.int32), np.array(kinds, np.uint8))
    of_topics = change_records(laid, source_columns(len(kinds)), None, {}, now_us=NOW)
    for each in of_topics:
        each.records.validate(full=True)
    return of_topics


def inserted(format_: TableFormat, rows: list[Row] = ROWS) -> Any:
    [of_topic] = changes(format_, rows, [30], [0] * len(rows))
    return of_topic.records


def sent(records: Any) -> list[tuple[str, Any, Any]]:
    return [(each["topic"], each["key"], each["value"]) for each in records.to_pylist()]


def test_an_inserted_row_is_its_event() -> None:
    assert sent(inserted(made())) == [
        ("to.a", b'"k1"', b'"one"'),
        ("to.b", b'"k2"', b"null"),
        ("to.a", b'"k1"', rb'" \t"'),
        ("to.a", b"null", b'"four"'),
    ]


def test_as_text_keys_and_values_are_as_they_are_and_a_null_is_nothing() -> None:
    text = FormatChoice("text")
    chain = (Step(EventRouter(EVENT, "warn")),)
    assert sent(
        inserted(table_format(SHAPE, TOPIC, EnvelopeSettings("p", "1", key=text, value=text, transforms=chain)))
    ) == [
        ("to.a", b"k1", b"one"),
        ("to.b", b"k2", None),
        ("to.a", b"k1", b" \t"),
        ("to.a", None, b"four"),
    ]
    numbers = (Step(EventRouter(replace(EVENT, payload="id"), "warn")),)
    format_ = table_format(SHAPE, TOPIC, EnvelopeSettings("p", "1", value=text, transforms=numbers))
    assert [value for _, _, value in sent(inserted(format_))] == [b"1", b"2", b"3", b"4"]


def test_bytes_have_no_text() -> None:
    shape = replace(SHAPE, columns=(*COLUMNS[:3], Column("payload", "blob"), COLUMNS[4]))
    envelope = EnvelopeSettings("p", "1", value=FormatChoice("text"), transforms=(Step(EventRouter(EVENT, "warn")),))
    with pytest.raises(ConfigError, match=r"names payload, which in d\.outbox has a type that is no text"):
        table_format(shape, TOPIC, envelope)


BLOB = replace(SHAPE, columns=(*COLUMNS[:3], Column("payload", "blob"), COLUMNS[4]))
RAW = (FormatChoice("bytes"), FormatChoice("json", schemas=True, raw=True))


def _values_of(shape: TableShape, value: FormatChoice, rows: list[Row] = ROWS, binary: str = "bytes") -> list[Any]:
    modes = Modes(binary_handling=binary)
    envelope = EnvelopeSettings("p", "1", modes, value=value, transforms=(Step(EventRouter(EVENT, "warn")),))
    return [value for _, _, value in sent(inserted(table_format(shape, TOPIC, envelope), rows))]


@pytest.mark.parametrize("value", RAW)
def test_a_payload_of_bytes_goes_out_as_it_is(value: FormatChoice) -> None:
    rows: list[Row] = [(1, "a", "k1", b"\xff\x00"), (2, "a", "k1", None), (3, "a", "k1", b"")]
    assert _values_of(BLOB, value, rows) == [b"\xff\x00", None, b""]


def test_a_payload_that_is_no_bytes_is_left_to_the_delegate_or_refused() -> None:
    bytes_alone, delegating = RAW
    own = b'{"schema":{"type":"string","optional":true},"payload":"one"}'
    assert _values_of(SHAPE, delegating)[0] == own
    with pytest.raises(ConfigError, match=r"names payload, which in d\.outbox is written as string, and the converter"):
        _values_of(SHAPE, bytes_alone)
    with pytest.raises(ConfigError) as error:
        _values_of(BLOB, bytes_alone, binary="base64")
    assert "binary.handling.mode=bytes" in error.value.hint


def test_a_key_of_bytes_goes_out_as_it_is() -> None:
    shape = replace(SHAPE, columns=(*COLUMNS[:2], Column("aggregateid", "varbinary", length=9), *COLUMNS[3:]))
    chain = (Step(EventRouter(EVENT, "warn")),)
    envelope = EnvelopeSettings("p", "1", key=FormatChoice("bytes"), transforms=chain)
    assert [key for _, key, _ in sent(inserted(table_format(shape, TOPIC, envelope)))] == [b"k1", b"k2", b"k1", None]


def test_an_empty_payload_is_a_tombstone_where_that_is_wanted() -> None:
    values = [value for _, _, value in sent(inserted(made(replace(EVENT, tombstones=True))))]
    assert values == [b'"one"', None, None, b'"four"']


def test_keys_and_values_bring_the_schemas_of_their_columns() -> None:
    [(_, key, value), *_] = sent(inserted(made(schemas=True)))
    assert json.loads(key) == {"schema": {"type": "string", "optional": True}, "payload": "k1"}
    assert json.loads(value) == {"schema": {"type": "string", "optional": True}, "payload": "one"}


def test_columns_are_placed_in_headers_behind_the_id() -> None:
    placed = (
        PlacedColumn("payload", "header", "what"),
        PlacedColumn("at", "header", "at"),
        PlacedColumn("no", "header", "no", True),
    )
    records = inserted(made(replace(EVENT, placed=placed)))
    assert records.column("headers").to_pylist()[:2] == [
        [("id", b"1"), ("what", b"one"), ("at", b"1600000000001999")],
        [("id", b"2"), ("what", None), ("at", None)],
    ]


def test_the_headers_of_all_records_stand_before_the_id() -> None:
    records = inserted(made(headers=(Constant("run", "7"),)))
    assert records.column("headers").to_pylist()[:2] == [
        [("run", b"7"), ("id", b"1")],
        [("run", b"7"), ("id", b"2")],
    ]


def test_columns_are_placed_beside_the_payload() -> None:
    placed = (PlacedColumn("aggregateid", "envelope", "who"), PlacedColumn("id", "envelope", "n"))
    values = [value for _, _, value in sent(inserted(made(replace(EVENT, placed=placed))))]
    assert values[:2] == [b'{"payload":"one","who":"k1","n":1}', b'{"payload":null,"who":"k2","n":2}']


def test_an_event_has_the_time_of_its_record_or_of_a_column() -> None:
    assert inserted(made()).column("timestamp").to_pylist() == [NOW // 1000] * 4
    own = inserted(made(replace(EVENT, timestamp="at"))).column("timestamp").to_pylist()
    assert own == [1_600_000_000_001, NOW // 1000, 1_600_000_000_005, 1_600_000_000_007]


def test_deletions_and_updates_are_no_events_but_overtake_rows(caplog: pytest.LogCaptureFixture) -> None:
    rows: list[Row] = [(1, "a", "k", "x"), (2, "a", "k", "x"), (2, "a", "k", "y")]
    with caplog.at_level(logging.WARNING):
        [of_topic] = changes(made(), rows, [32, 31], [0, 1, 1])
    assert of_topic.records.column("partition").to_pylist() == [-1, -1]
    assert len(overtaken_by(of_topic.records)) == 2
    assert "d.outbox: 1 updates of an outbox table, whose events are its inserted rows; they are skipped" in caplog.text


def test_an_update_stops_the_job_where_that_is_wanted() -> None:
    rows: list[Row] = [(2, "a", "k", "x"), (2, "a", "k", "y")]
    with pytest.raises(ValueRefused, match=r"invalid\.behavior=fatal stops"):
        changes(made(updates="fatal"), rows, [31], [0, 0])
    changes(made(updates="fatal"), rows, [32], [0, 0])


EXPANDED = replace(EVENT, expands=True)
DOCUMENTS: list[Row] = [(1, "a", "k", '{"n": null, "b": [1.0]} '), (2, "a", "k", "[1]"), (3, "a", "k", None)]


def test_a_payload_of_json_is_a_struct_and_what_is_none_stays_text(caplog: pytest.LogCaptureFixture) -> None:
    assert [value for _, _, value in sent(inserted(made(EXPANDED), DOCUMENTS))] == [b'{"b":[1.0]}', b'"[1]"', b"null"]
    assert (
        "1 payloads stay text, because they cannot be expanded as JSON; the last reason: it does not begin with {"
        in caplog.text
    )
    tombstones = replace(EXPANDED, tombstones=True, keeps_nulls=True)
    values = [value for _, _, value in sent(inserted(made(tombstones), DOCUMENTS))]
    assert values == [b'{"n":null,"b":[1.0]}', b'"[1]"', None]


def test_each_expanded_payload_has_its_own_schema() -> None:
    first, second, third = (
        json.loads(value) for _, _, value in sent(inserted(made(EXPANDED, schemas=True), DOCUMENTS))
    )
    doubles = {"type": "array", "items": {"type": "double", "optional": True}, "optional": True, "field": "b"}
    assert first["schema"] == {"type": "struct", "fields": [doubles], "optional": True, "name": "payload"}
    assert second["schema"] == third["schema"] == {"type": "string", "optional": True}


def test_an_expanded_payload_stands_in_an_envelope() -> None:
    format_ = made(replace(EXPANDED, placed=(PlacedColumn("id", "envelope", "number"),)))
    assert [value for _, _, value in sent(inserted(format_, DOCUMENTS))] == [
        b'{"payload":{"b":[1.0]},"number":1}',
        b'{"payload":"[1]","number":2}',
        b'{"payload":null,"number":3}',
    ]


def test_a_payload_that_is_no_text_is_not_expanded() -> None:
    format_ = made(replace(EXPANDED, payload="id"))
    assert [value for _, _, value in sent(inserted(format_, DOCUMENTS))] == [b"1", b"2", b"3"]


def test_all_rows_of_the_table_are_in_one_bucket_and_in_order() -> None:
    format_ = made()
    rows: list[Row] = [(number, "ab"[number % 2], f"k{number % 3}", str(number)) for number in range(50)]
    read = snapshot_records(format_, columns(rows), SourceConstants("b", 4, 0), {}, BUCKETS, now_us=NOW)
    [changed] = changes(format_, rows, [30], [0] * 50)
    assert set(bucket_of(format_.topic, changed.bucket_partition, BUCKETS).tolist()) == read.keys()
    [records] = read.values()
    assert sent(records) == sent(changed.records)
    assert topics(TOPIC, format_.envelope.transforms, "none") == ()


def test_rows_that_were_read_are_sent_to_their_topics_less_those_that_were_overtaken(tmp_path: Path) -> None:
    format_, buffers, ledger = made(), WindowBuffers(str(tmp_path)), Ledger()
    read = snapshot_records(format_, columns(ROWS), SourceConstants("b", 4, 0), {}, BUCKETS, now_us=NOW)
    [(bucket, _)] = read.items()
    file = buffers.write_window("w", read)
    [gone] = changes(format_, ROWS[:1], [32], [0])
    [new] = changes(format_, [(9, "c", "k9", "new")], [30], [0])
    rows = [
        blocks.release(1, bucket, 0, blocks.ReleaseOrder(file, "d.outbox", "")),
        blocks.events(1, bucket, 1, TOPIC, "d.outbox", gone.records),
        blocks.events(1, bucket, 2, "", "d.outbox", new.records),
    ]
    counts = write_bucket(
        iter([blocks.to_arrow(rows, "1:d")]), buffers, ledger, lambda topic: {"to.a": 7}.get(topic, 1)
    )
    assert ledger.committed == [
        ("to.b", b'"k2"', b"null"),
        ("to.a", b'"k1"', rb'" \t"'),
        ("to.a", b"null", b'"four"'),
        ("to.c", b'"k9"', b'"new"'),
    ]
    assert (counts.reads, counts.discarded, counts.events) == (3, 1, 1)


def test_an_event_goes_to_the_partition_of_its_key() -> None:
    by_name = dict(by_topic("", inserted(made()), lambda topic: 11))
    assert [*by_name] == ["to.a", "to.b"]
    records = by_name["to.a"]
    assert records.column("partition").to_pylist() == partition(records.column("key"), 11).tolist()
    assert len(set(records.column("partition").to_pylist())) == 2


def test_an_event_goes_to_the_partition_that_its_row_names() -> None:
    placed = (PlacedColumn("no", "partition", "no", True), PlacedColumn("id", "partition", "id"))
    records = inserted(made(replace(EVENT, placed=placed)), [(2, "a", "k1", "x"), (0, "a", "k1", "y")])
    [(_, of_topic)] = by_topic("", records, lambda topic: 3)
    assert of_topic.column("partition").to_pylist() == [2, 0]
    with pytest.raises(ValueRefused, match=r"to partition 2 of to\.a, which has 2"):
        list(by_topic("", records, lambda topic: 2))


def test_an_event_without_a_partition_of_its_own_goes_to_that_of_its_key() -> None:
    records = inserted(made(replace(EVENT, placed=(PlacedColumn("id", "partition", "id"),))), [(1, "a", "k1", "x")])
    index = records.schema.get_field_index("place")
    [(_, of_topic)] = by_topic("", records.set_column(index, "place", pa.nulls(1, pa.int32())), lambda topic: 11)
    assert of_topic.column("partition").to_pylist() == partition(of_topic.column("key"), 11).tolist()


@pytest.mark.parametrize("value", [None, "", "ü", "x" * 250])
def test_a_row_that_names_no_possible_topic_is_refused(value: str | None) -> None:
    event = replace(EVENT, replacement="${routedByValue}")
    with pytest.raises(ValueRefused, match="Kafka allows no such name"):
        inserted(made(event), [(1, value, "k", "x")])


def test_what_the_pattern_does_not_match_is_the_topic_itself() -> None:
    assert sent(inserted(made(replace(EVENT, regex="b", replacement="of-b"))))[0][0] == "a"
    assert sent(inserted(made(replace(EVENT, regex="b", replacement="of-b"))))[1][0] == "of-b"


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (replace(EVENT, route="kind"), "route.by.field names kind, which in d.outbox is none of the columns"),
        (replace(EVENT, route="id"), "route.by.field names id, which in d.outbox is no text"),
        (replace(EVENT, timestamp="id"), "table.field.event.timestamp names id, which in d.outbox is no DATETIME"),
        (replace(EVENT, placed=(PlacedColumn("no", "header", "no"),)), "additional.placement names no, which"),
        (replace(EVENT, placed=(PlacedColumn("at", "partition", "at"),)), "names at, which in d.outbox is no INT"),
    ],
)
def test_a_table_without_the_columns_is_refused_by_name(event: OutboxEvent, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        made(event)
    assert why in str(refused.value)
    assert "predicate" in (refused.value.hint or "")


def test_a_time_that_is_written_as_text_is_no_time_of_an_event() -> None:
    with pytest.raises(ConfigError, match="no DATETIME that is written as a number"):
        made(replace(EVENT, timestamp="at"), modes=Modes(time_precision="isostring"))


def test_no_transform_may_stand_behind_the_router() -> None:
    chain = (Step(EventRouter(EVENT)), Step(RegexRouter(".*", "x")))
    with pytest.raises(ConfigError, match="stands behind outbox"):
        table_format(SHAPE, TOPIC, EnvelopeSettings("p", "1", transforms=chain))
