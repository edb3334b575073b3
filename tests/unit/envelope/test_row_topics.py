"""Rows that say which topic they go to, without an envelope: route.by.field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incsnap.envelope.change_records import change_records
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.records import overtaken_by
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import TableFormat, table_format
from incsnap.envelope.table_templates import table_templates
from incsnap.errors import ConfigError, ValueRefused
from incsnap.tables import Column, TableId, TableShape
from incsnap.tasks.bucket import sent
from incsnap.tasks.own_topics import by_topic
from incsnap.transforms.chain import Step
from incsnap.transforms.record_spec import EnvelopeField, Route
from incsnap.transforms.unwrap import ExtractNewRecordState
from tests.support.source_columns import source_columns

TOPIC, INSERT, UPDATE, DELETE = "p.d.parcels", 30, 31, 32
SHAPE = TableShape(
    TableId("d", "parcels"), (Column("id", "int"), Column("lane", "varchar", charset="utf8mb4")), key=(0,)
)
Rows = list[tuple[int, str | None]]


def made(mode: str = "tombstone", column: str = "lane", *headers: EnvelopeField) -> TableFormat:
    unwrap = ExtractNewRecordState(mode, (), headers, Route("unwrap", column))
    return table_format(SHAPE, TOPIC, EnvelopeSettings("p", "1", transforms=(Step(unwrap),)))


def columns(rows: Rows) -> list[Any]:
    ids, lanes = zip(*rows, strict=True)
    return [pa.array(ids, pa.int64()), pa.array(lanes, pa.string())]


def changed(format_: TableFormat, rows: Rows, kinds: list[int], events: list[int]) -> Any:
    laid = changes_of_table(format_, columns(rows), np.array(events, np.int32), np.array(kinds, np.uint8))
    [of_topic] = change_records(laid, source_columns(len(kinds)), None, {TOPIC: 5}, now_us=0)
    of_topic.records.validate(full=True)
    assert of_topic.topic == TOPIC
    return of_topic.records


def topics_and_values(records: Any) -> list[tuple[str, Any]]:
    return [(each["topic"], each["value"]) for each in sent((), records)[1].to_pylist()]


ROWS: Rows = [(1, "north"), (2, None), (3, " \t"), (4, "south")]
READ = [
    ("north", b'{"id":1,"lane":"north"}'),
    (TOPIC, b'{"id":2,"lane":null}'),
    (TOPIC, rb'{"id":3,"lane":" \t"}'),
    ("south", b'{"id":4,"lane":"south"}'),
]


def test_a_row_goes_to_the_topic_in_its_column_or_to_that_of_its_table() -> None:
    assert topics_and_values(changed(made(), ROWS, [INSERT], [0] * 4)) == READ


def test_rows_that_are_read_go_there_too() -> None:
    by_bucket = snapshot_records(made(), columns(ROWS), SourceConstants("b", 4, 0), {TOPIC: 5}, 3, now_us=0)
    assert sorted(pair for records in by_bucket.values() for pair in topics_and_values(records)) == sorted(READ)


def test_an_update_goes_where_the_row_is_now_and_a_deletion_where_it_was() -> None:
    rows: Rows = [(1, "north"), (1, "south"), (1, "south")]
    records = changed(made("rewrite-with-tombstone"), rows, [UPDATE, DELETE], [0, 0, 1])
    assert topics_and_values(records) == [
        ("south", b'{"id":1,"lane":"south","__deleted":"false"}'),
        ("south", b'{"id":1,"lane":"south","__deleted":"true"}'),
        # A tombstone has no row that could say so.
        (TOPIC, None),
    ]
    [deletion] = topics_and_values(changed(made("delete-to-tombstone"), rows[:1], [DELETE], [0]))
    assert deletion == ("north", None)


def test_a_deletion_that_is_dropped_overtakes_its_row_all_the_same() -> None:
    records = changed(made("drop"), [(1, "north"), (2, "south")], [DELETE, INSERT], [0, 1])
    assert topics_and_values(records) == [("south", b'{"id":2,"lane":"south"}')]
    assert len(overtaken_by(records)) == 2


def test_headers_stay() -> None:
    records = changed(made("tombstone", "lane", EnvelopeField("", "op", "__op")), ROWS[:1], [INSERT], [0])
    assert records.column("headers").to_pylist() == [[("__op", b"c")]]


def test_each_topic_has_partitions_of_its_own() -> None:
    by_name = dict(
        by_topic(TOPIC, changed(made(), ROWS, [INSERT], [0] * 4), {TOPIC: 1, "north": 1, "south": 50}.__getitem__)
    )
    assert {topic: len(records) for topic, records in by_name.items()} == {"north": 1, TOPIC: 2, "south": 1}
    assert by_name["south"].column("partition").to_pylist() > [0]


def test_such_a_table_is_written_by_itself() -> None:
    assert table_templates(made()) is None


def test_what_kafka_allows_for_no_name_is_told_with_the_value() -> None:
    with pytest.raises(ValueRefused, match=r"d\.parcels: transforms\.unwrap\.route\.by\.field .* lane is 'naïve'"):
        changed(made(), [(1, "naïve")], [INSERT], [0])


@pytest.mark.parametrize(("column", "why"), [("nobody", "is none of the columns"), ("id", "is no text")])
def test_a_table_without_such_a_column_is_refused_by_name(column: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"route.by.field names {column}, which in d.parcels {why}") as error:
        made("tombstone", column)
    assert "predicate" in (error.value.hint or "")
