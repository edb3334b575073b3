"""Tables with few rows are encoded together, with the same records as if each was encoded alone."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol import wire_types as t
from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import TableRows, table_rows
from incsnap.columns.images import layout_of
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.errors import BinlogError
from incsnap.snapshot.offset import TopicLayout
from incsnap.tasks import blocks, small_tables
from incsnap.tasks.partitions import SlicePart
from incsnap.tasks.slice_rows import slice_rows
from incsnap.tasks.table_plans import TablePlans
from incsnap.tasks.transaction_metadata import WHOLE
from incsnap.transforms.unwrap import MODES
from tests.support import binlog_bytes as made
from tests.support.packets import row_image, rows_event, table_map
from tests.support.stream_in_memory import slice_of

CHARSETS = ((255, "utf8mb4"),)
LAYOUT = TopicLayout(2, {"p.shop.t00000": 3, "p.shop.t00001": 1, "p.shop.t00002": 7})
Event = tuple[int, bytes]
Records = dict[tuple[int, str, str], list[dict[str, Any]]]
#: A field of a table map's optional metadata: the columns of the primary key.
_KEY = (8, b"\x00")


def map_of(table: int, columns: int = 2, *, key: bool = True) -> Event:
    names = [f"c{number}%" for number in range(columns)]
    fields = [_KEY] if key else []
    body = table_map(names, [t.LONG] * columns, b"", fields, nullable=~1 & ((1 << columns) - 1), table_id=7 + table)
    return kinds.TABLE_MAP, body.replace(b"\x06orders", f"\x06t{table:05}".encode())


def image(*values: int | None) -> bytes:
    return row_image([None if value is None else struct.pack("<i", value) for value in values])


def insertion(table: int, *rows: Sequence[int | None]) -> Event:
    return made.WRITE, rows_event(len(rows[0]), [image(*row) for row in rows], table_id=7 + table)


def update(table: int, *rows: Sequence[int | None]) -> Event:
    images = [image(*row) for row in rows]
    return made.UPDATE, rows_event(len(rows[0]), images, update=True, table_id=7 + table)


def deletion(table: int, *rows: Sequence[int | None]) -> Event:
    return made.DELETE, rows_event(len(rows[0]), [image(*row) for row in rows], table_id=7 + table)


def settings_of(**more: str) -> Settings:
    properties = {
        "database.hostname": "127.0.0.1",
        "database.user": "u",
        "database.password": "p",
        "database.server.id": "1",
        "topic.prefix": "p",
        "bootstrap.servers": "k:9092",
        "checkpoint.location": "unused",
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return from_properties(properties, {}).settings


def written(slice_: Slice, settings: Settings) -> tuple[Records, set[str]]:
    """Return the records by bucket, topic and table, and the tables that were encoded together."""
    part = SlicePart(1, LAYOUT, 0, slice_, CHARSETS, WHOLE)
    by_table: Records = {}
    joined: set[str] = set()
    for _, bucket, _, kind, topic, table, block in slice_rows(part, settings, 5):
        for records in blocks.decode(block):
            runs = blocks.runs_of(kind, topic, table, records)
            joined |= {run.table for run in runs if kind == blocks.TABLES}
            for run, of_table in blocks.by_run(records, runs):
                by_table.setdefault((bucket, run.topic, run.table), []).extend(of_table.to_pylist())
    return by_table, joined


def both(slice_: Slice, monkeypatch: pytest.MonkeyPatch, **more: str) -> set[str]:
    """Return the tables that were encoded together. Before that, compare the records with those of each table alone."""
    together, joined = written(slice_, settings_of(**more))
    with monkeypatch.context() as patch:
        patch.setattr(small_tables, "_MOST_IMAGES", 0)
        alone, none = written(slice_, settings_of(**more))
    assert not none
    assert together == alone
    assert together
    return joined


CHANGES = [
    [map_of(0), insertion(0, (1, 2), (2, None)), map_of(1, key=False), insertion(1, (1, 2)), map_of(2, 9)],
    [
        map_of(2, 9),
        insertion(2, range(9), (7, *[None] * 8)),
        map_of(0),
        update(0, (1, 2), (1, None)),
        deletion(0, (2, 1)),
    ],
    [map_of(1, key=False), update(1, (1, 2), (2, 2)), deletion(1, (2, 2))],
]
SCHEMAS = {
    "value__converter__schemas__enable": "true",
    "value__converter": "org.apache.kafka.connect.json.JsonConverter",
}
UNWRAP = {"transforms": "u", "transforms__u__type": "io.debezium.transforms.ExtractNewRecordState"}
ROUTED = {"transforms": "r", "transforms__r__topic__replacement": "all", "transforms__r__replacement": "all"}
LOGICAL = "io.debezium.transforms.ByLogicalTableRouter"
FORMS: list[dict[str, str]] = [
    {},
    SCHEMAS,
    {"tombstones__on__delete": "false"},
    {"skipped__operations": "u"},
    {"skipped__operations": "c,u,d"},
    {"column__exclude__list": "shop\\.t.*\\.c0%"},
    {"column__mask__with__3__chars": "shop\\.t.*\\.c1%"},
    {"skip__messages__without__change": "true", "column__exclude__list": "shop\\.t.*\\.c1%"},
    {"message__key__columns": "shop.t00001:c1%;shop.t00002:c0%"},
    {"message__key__columns": "shop.t00002:c1%,c0%"},
    {"provide__transaction__metadata": "true"},
    *(
        {**UNWRAP, "transforms__u__delete__tombstone__handling__mode": mode, **more}
        for mode in MODES
        for more in (
            {},
            {"transforms__u__add__fields": "op,table,db,source.ts_ms,ts_us,row,snapshot,transaction.total_order"},
            {"transforms__u__add__headers": "op,table,gtid", "provide__transaction__metadata": "true"},
            {**SCHEMAS, "transforms__u__add__fields": "op:what,pos", "transforms__u__add__headers": "op"},
        )
    ),
    {
        **UNWRAP,
        "transforms__u__predicate": "p",
        "predicates": "p",
        "predicates__p__type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates__p__pattern": ".*[02]",
    },
    # No table, the first table alone or the last table alone has columns.
    *(
        {**UNWRAP, "column__include__list": columns, "transforms__u__add__fields": "op"}
        for columns in ("shop\\.other\\.c", "shop\\.t00000\\..*", "shop\\.t00002\\..*")
    ),
    {**ROUTED, "transforms__r__type": "org.apache.kafka.connect.transforms.RegexRouter", "transforms__r__regex": ".*"},
    {**ROUTED, "transforms__r__type": LOGICAL, "transforms__r__topic__regex": "(.*)"},
    {**UNWRAP, **ROUTED, "transforms": "r,u", "transforms__r__type": LOGICAL, "transforms__r__topic__regex": "(.*)"},
    *(
        {
            "transforms": "f",
            "transforms__f__type": "io.debezium.transforms.Filter",
            "transforms__f__language": "jsr223.groovy",
            "transforms__f__condition": condition,
            "transforms__f__topic__regex": "p\\.shop\\..*",
            "transforms__f__null__handling__mode": nulls,
        }
        for condition in ("value.op == 'u'", "value.op != 'd'")
        for nulls in ("keep", "drop")
    ),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form) or "plain")
def test_together_gives_what_each_gives_by_itself(form: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    if form.get("skipped__operations") == "c,u,d":
        assert written(slice_of(*CHANGES), settings_of(**form)) == ({}, set())
        return
    assert both(slice_of(*CHANGES), monkeypatch, **form) == {"shop.t00000", "shop.t00001", "shop.t00002"}


OTHERWISE: list[dict[str, str]] = [
    {
        "transforms": "r",
        "transforms__r__type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms__r__regex": ".*",
        "transforms__r__replacement": "gone",
        "transforms__r__predicate": "t",
        "predicates": "t",
        "predicates__t__type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    },
    {"transforms": "d", "transforms__d__type": "org.apache.kafka.connect.transforms.Filter"},
]


@pytest.mark.parametrize("form", OTHERWISE, ids=["two topics", "all dropped"])
def test_another_form_is_written_table_by_table(form: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not both(slice_of(*CHANGES), monkeypatch, **form)


def test_a_table_in_which_a_row_moves_is_written_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    slice_ = slice_of([map_of(0), insertion(0, (1, 1))], [map_of(1), insertion(1, (1, 1)), update(1, (1, 1), (2, 1))])
    assert both(slice_, monkeypatch) == {"shop.t00000"}


def test_a_table_of_two_shapes_is_written_by_itself_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    slice_ = slice_of(
        [map_of(0), insertion(0, (1, 1))], [map_of(0, 3), insertion(0, (1, 1, 1)), map_of(1), insertion(1, (1, 1))]
    )
    assert both(slice_, monkeypatch) == {"shop.t00001"}


def test_many_rows_go_by_whole_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [(number, number) for number in range(small_tables._MOST_IMAGES + 1)]
    slice_ = slice_of([map_of(0), insertion(0, *many), map_of(1), insertion(1, *many[:-1])])
    assert both(slice_, monkeypatch) == {"shop.t00001"}


def test_damaged_rows_of_small_tables_are_reported_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    short = insertion(0, (1, 1))
    slice_ = slice_of(
        [map_of(0), (short[0], short[1][:-1]), insertion(0, (2, 2)), map_of(1), insertion(1, (1, 1))],
        [map_of(2, 9), insertion(2, (1, 1))],
    )
    with pytest.raises(BinlogError, match=r"shop\.t0000[02]: the rows event"):
        written(slice_, settings_of())
    lenient = {
        "event__processing__failure__handling__mode": "skip",
        "inconsistent__schema__handling__mode": "skip",
    }
    assert both(slice_, monkeypatch, **lenient) == {"shop.t00001"}


def test_a_table_with_a_value_of_no_form_is_written_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = small_tables.encoded_tables

    def refusing(tables: Sequence[small_tables.SmallTable]) -> Any:
        return None if any(table.plan.name == "shop.t00003" for table in tables) else refuse(tables)

    monkeypatch.setattr("incsnap.tasks.slice_records.encoded_tables", refusing)
    slice_ = slice_of([each for table in range(6) for each in (map_of(table), insertion(table, (1, 2)))])
    assert both(slice_, monkeypatch) == {f"shop.t0000{table}" for table in (0, 1, 2, 4, 5)}


def test_tables_that_are_written_by_themselves_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incsnap.tasks.slice_records.encoded_tables", lambda *_: None)
    many = [(number, number) for number in range(small_tables._MOST_IMAGES + 1)]
    slice_ = slice_of(
        [map_of(0), insertion(0, (1, 1)), map_of(1), insertion(1, *many), map_of(2), insertion(2, (1, 1))]
    )
    rows = [*slice_rows(SlicePart(1, TopicLayout(1), 0, slice_, CHARSETS, WHOLE), settings_of(), 5)]
    assert [row[5] for row in rows] == ["shop.t00000", "shop.t00001", "shop.t00002"]


def test_blocks_of_many_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [each for table in range(6) for each in (map_of(table), insertion(table, (1, 2)))]
    monkeypatch.setattr("incsnap.tasks.slice_records._BLOCK_BYTES", 1_500)
    part = SlicePart(1, TopicLayout(1), 0, slice_of(events), CHARSETS, WHOLE)
    rows = [*slice_rows(part, settings_of(), 5)]
    assert {row[3] for row in rows} == {blocks.TABLES}
    assert [len(records) for row in rows for records in blocks.decode(row[6])] == [2, 2, 2]
    assert np.all(np.diff([row[2] for row in rows]) > 0)


def test_no_more_values_are_looked_at_than_go_into_the_next_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of values take far more memory than the slice, above all if all values are NULL."""
    events = [each for table in range(6) for each in (map_of(table, 3), insertion(table, (1, None, None)))]
    monkeypatch.setattr(small_tables, "_MOST_VALUES", 6)
    walked: list[str] = []
    walk = TableRows.walked

    def watched(rows: TableRows, *how: Any) -> Any:
        walked.append(str(rows.shape.id))
        return walk(rows, *how)

    monkeypatch.setattr(TableRows, "walked", watched)
    part = SlicePart(1, TopicLayout(1), 0, slice_of(events), CHARSETS, WHOLE)
    rows = slice_rows(part, settings_of(), 5)
    seen = [([len(records) for records in blocks.decode(row[6])], len(walked)) for row in rows]
    assert seen == [([2], 3), ([2], 5), ([2], 6)]


@pytest.mark.parametrize("form", [{}, UNWRAP, SCHEMAS], ids=["envelopes", "rows", "schemas"])
def test_names_of_columns_count_in_whole_columns_too(form: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of 200 NULLs has 30 bytes in the binlog and 3 KB in Kafka."""
    rows = [insertion(0, (number, *[None] * 199)) for number in range(4)]
    monkeypatch.setattr("incsnap.tasks.slice_records._BLOCK_BYTES", 2_000)
    monkeypatch.setattr(small_tables, "_MOST_IMAGES", 0)
    part = SlicePart(1, TopicLayout(1), 0, slice_of([map_of(0, 200), *rows]), CHARSETS, WHOLE)
    batches = [records for row in slice_rows(part, settings_of(**form), 5) for records in blocks.decode(row[6])]
    assert [len(records) for records in batches] == [1, 1, 1, 1]


def test_names_of_columns_count_as_bytes_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = [each for table in range(4) for each in (map_of(table, 200), insertion(table, (1, *[None] * 199)))]
    monkeypatch.setattr("incsnap.tasks.slice_records._BLOCK_BYTES", 4_000)
    rows = [*slice_rows(SlicePart(1, TopicLayout(1), 0, slice_of(wide), CHARSETS, WHOLE), settings_of(), 5)]
    assert [len(records) for row in rows for records in blocks.decode(row[6])] == [1, 1, 1, 1]


def test_a_table_of_many_values_goes_by_whole_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_tables, "_MOST_VALUES_OF_ONE", 8)
    few, many = [(1, 1, 1, 1), (2, 2, 2, 2)], [(1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)]
    slice_ = slice_of([map_of(0, 4), insertion(0, *few), map_of(1, 4), insertion(1, *many)])
    assert both(slice_, monkeypatch) == {"shop.t00000"}


def test_equal_parts_of_table_plans_are_shared_and_plans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without these limits 10,000 tables of 40 columns took 600 MB in each worker."""
    layout_of.cache_clear()  # another test may have used this layout column by column
    slice_ = slice_of([each for table in range(6) for each in (map_of(table, 5), insertion(table, (1, 2, 3, 4, 5)))])
    maps = [rows.table_map for rows in table_rows(slice_, CHARSETS)]
    plans, settings = TablePlans(), settings_of()
    one, other = (plans.of(settings, each, ()) for each in maps[:2])
    assert one is not None
    assert other is not None
    assert one.layout is other.layout
    assert "_steps" not in vars(one.layout)
    for own, others in zip(one.templates.row.texts, other.templates.row.texts, strict=True):
        assert own[1] is others[1]
    monkeypatch.setattr(TablePlans, "_MOST_COLUMNS", 15)
    known = []
    for each in maps[2:]:
        assert plans.of(settings, each, ()) is plans.of(settings, each, ())
        known.append(len(plans._known))
    assert known == [3, 1, 2, 3]
