"""Records of snapshot rows and of changes: fields, order, keys, tombstones, headers, partitions, buckets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.columns.variable import variable
from incsnap.envelope import snapshot_records as records_module
from incsnap.envelope.change_records import change_records
from incsnap.envelope.column_rules import ColumnRules, TransformRule
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.json_rows import json_objects
from incsnap.envelope.masks import Transform
from incsnap.envelope.partitioner import bucket_of, partition
from incsnap.envelope.record_encoder import READ
from incsnap.envelope.records import OPERATION, RECORDS, overtaken_by
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.snapshot_records import RecordsTooLarge, snapshot_records
from incsnap.envelope.sources import SourceColumns, SourceConstants
from incsnap.envelope.table_format import TableFormat, table_format
from incsnap.envelope.table_view import view_of
from incsnap.errors import BinlogError, IncsnapError
from incsnap.tables import Column, TableId, TableShape
from incsnap.types.modes import Modes

SHAPE = TableShape(
    TableId("shop", 'o"x'),
    (Column("id", "int"), Column('na"me', "varchar", charset="utf8mb4"), Column("n", "int")),
    key=(0,),
)
ENVELOPE = EnvelopeSettings("pre", "1.2.3", Modes(), tombstones=True)
NOW = 1_700_000_000_123_456
WRITE, UPDATE, DELETE = 30, 31, 32


Row = tuple[int, str | None, int | None]


def format_of(shape: TableShape = SHAPE, topic: str = "t", envelope: EnvelopeSettings = ENVELOPE) -> TableFormat:
    return table_format(shape, topic, envelope)


def columns(rows: Sequence[Row]) -> list[Any]:
    ids, names, ns = zip(*rows, strict=True) if rows else ((), (), ())
    return [pa.array(ids, pa.int64()), pa.array(names, pa.string()), pa.array(ns, pa.int64())]


def sources(events: int) -> SourceColumns:
    return SourceColumns(
        gtid=pa.array([f"uuid:{i}" if i % 3 else None for i in range(events)], pa.string()),
        ts_us=np.arange(events, dtype=np.int64) * 1_001,
        server_id=np.full(events, 7, np.int64),
        thread=pa.array([i if i % 2 else None for i in range(events)], pa.int64()),
        file=pa.array(["binlog.000001"] * events, pa.string()),
        pos=np.arange(events, dtype=np.int64) + 2**33,
    )


def changes(events: Sequence[tuple[int, Sequence[Row]]], **settings: Any) -> list[dict[str, Any]]:
    """The records of events given as (type code, images), as plain values."""
    images = [image for _, event in events for image in event]
    event = np.repeat(np.arange(len(events), dtype=np.int32), [len(images) for _, images in events])
    kinds = np.array([kind for kind, _ in events], np.uint8)
    shape = settings.pop("shape", SHAPE)
    envelope = EnvelopeSettings("pre", "1.2.3", Modes(), **settings)
    laid = changes_of_table(format_of(shape, envelope=envelope), columns(images), event, kinds)
    batches = [of_topic.records for of_topic in change_records(laid, sources(len(events)), None, {"t": 5}, now_us=NOW)]
    for batch in batches:
        assert batch.schema == RECORDS.append(OPERATION)
        batch.validate(full=True)
    records = [record for batch in batches for record in batch.select(RECORDS.names).to_pylist()]
    return [{k: v if k == "partition" or v is None else json.loads(v) for k, v in r.items()} for r in records]


def test_a_row_is_one_json_object_and_a_key_holds_the_keys_columns_in_its_order() -> None:
    view = view_of(TableShape(SHAPE.id, SHAPE.columns, key=(2, 0)), ColumnRules())
    rows = columns([(1, 'a"b', None), (2, None, 5)])
    assert json_objects(view.fields, rows, Modes()).to_pylist() == [
        b'{"id":1,"na\\"me":"a\\"b","n":null}',
        b'{"id":2,"na\\"me":null,"n":5}',
    ]
    assert json_objects(view.key, rows, Modes()).to_pylist() == [b'{"n":null,"id":1}', b'{"n":5,"id":2}']


def test_a_snapshot_row_has_debeziums_fields_in_debeziums_order() -> None:
    source = SourceConstants("binlog.000007", 2**34, 1_600_000_000_000_001, server_id=9, gtid="u:1-5")
    by_bucket = snapshot_records(format_of(), columns([(1, "a", 2)]), source, {"t": 1}, 1, now_us=NOW)
    assert by_bucket[0].column("value").to_pylist() == [
        b'{"before":null,"after":{"id":1,"na\\"me":"a","n":2},"source":{"version":"1.2.3","connector":"mysql","name":"pre",'
        b'"ts_ms":1600000000000,"snapshot":"incremental","db":"shop","sequence":null,"ts_us":1600000000000001,'
        b'"ts_ns":1600000000000001000,"table":"o\\"x","server_id":9,"gtid":"u:1-5","file":"binlog.000007","pos":17179869184,'
        b'"row":0,"thread":null,"query":null},"transaction":null,"op":"r","ts_ms":1700000000123,"ts_us":1700000000123456,'
        b'"ts_ns":1700000000123456000}'
    ]
    assert by_bucket[0].column("key").to_pylist() == [b'{"id":1}']


def test_rows_encoded_bit_by_bit_are_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    source, rows = SourceConstants("binlog.000007", 4, 0), columns([(at, "a" * at, None) for at in range(50)])
    (whole,) = snapshot_records(format_of(), rows, source, {"t": 1}, 1, now_us=NOW).values()
    monkeypatch.setattr(records_module, "_ENCODED_AT_ONCE", 100)
    (bitwise,) = snapshot_records(format_of(), rows, source, {"t": 1}, 1, now_us=NOW).values()
    assert bitwise.equals(whole)


def test_records_of_a_chunk_are_given_up_as_soon_as_they_are_too_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "_ENCODED_AT_ONCE", 1)
    source, made = SourceConstants("binlog.000007", 4, 0), format_of()
    encoder = made.encoders[READ]
    assert encoder is not None
    assert encoder.value is not None
    value, encoded = encoder.value, list[int]()

    class Counting:
        def reads(self, rows: Any, *rest: Any) -> Any:
            encoded.append(len(rows[0]))
            return value.reads(rows, *rest)

    counted = replace(encoder, value=Counting())  # type: ignore[arg-type]
    counting = replace(made, encoders={**made.encoders, READ: counted})
    with pytest.raises(RecordsTooLarge):
        snapshot_records(
            counting, columns([(at, "a", 2) for at in range(50)]), source, {"t": 1}, 1, now_us=NOW, most=2_000
        )
    assert sum(encoded) < 10
    assert (
        len(snapshot_records(made, columns([(1, "a" * 5_000, 2)]), source, {"t": 1}, 1, now_us=NOW, most=2_000)[0]) == 1
    )


def test_a_change_has_debeziums_fields_in_debeziums_order() -> None:
    images = columns([(1, "a", 2), (1, None, 2)])
    laid = changes_of_table(format_of(), images, np.zeros(2, np.int32), np.array([UPDATE], np.uint8))
    (of_topic,) = change_records(laid, sources(1), None, {"t": 1}, now_us=NOW)
    batch = of_topic.records
    assert batch.column("value").to_pylist() == [
        b'{"before":{"id":1,"na\\"me":"a","n":2},"after":{"id":1,"na\\"me":null,"n":2},"source":{"version":"1.2.3",'
        b'"connector":"mysql","name":"pre","ts_ms":0,"snapshot":"false","db":"shop","sequence":null,"ts_us":0,"ts_ns":0,'
        b'"table":"o\\"x","server_id":7,"gtid":null,"file":"binlog.000001","pos":8589934592,"row":0,"thread":null,'
        b'"query":null},"transaction":null,"op":"u","ts_ms":1700000000123,"ts_us":1700000000123456,'
        b'"ts_ns":1700000000123456000}'
    ]


def summary(records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return (op or None, key's id, before's n, after's n, row, headers) of each record."""
    lines = []
    for record in records:
        value = record["value"] or {"op": None, "before": None, "after": None, "source": {"row": None}}
        key = (record["key"] or {"id": None})["id"]
        ns = [(value[image] or {"n": None})["n"] for image in ("before", "after")]
        headers = tuple((record[h] or {"id": None})["id"] for h in ("old_key", "new_key"))
        lines.append((value["op"], key, *ns, value["source"]["row"], headers))
    return lines


def test_inserts_updates_and_deletes_in_binlog_order() -> None:
    records = changes(
        [
            (WRITE, [(1, "a", 10), (2, "b", 20)]),
            (UPDATE, [(1, "a", 10), (1, "a", 11), (2, "b", 20), (2, "b", 21)]),
            (DELETE, [(1, "a", 11), (2, "b", 21)]),
            (WRITE, [(1, "a", 12)]),
        ]
    )
    none = (None, None)
    assert summary(records) == [
        ("c", 1, None, 10, 0, none),
        ("c", 2, None, 20, 1, none),
        ("u", 1, 10, 11, 0, none),
        ("u", 2, 20, 21, 1, none),
        ("d", 1, 11, None, 0, none),
        (None, 1, None, None, None, none),
        ("d", 2, 21, None, 1, none),
        (None, 2, None, None, None, none),
        ("c", 1, None, 12, 0, none),
    ]
    assert records[0]["value"]["source"]["gtid"] is None
    assert [r["value"]["source"]["gtid"] for r in records[2:4]] == ["uuid:1"] * 2
    assert [r["value"]["source"]["thread"] for r in records[2:5]] == [1, 1, None]
    assert [r["value"]["source"]["pos"] - 2**33 for r in records if r["value"]] == [0, 0, 1, 1, 2, 2, 3]


def test_a_key_change_is_a_deletion_a_tombstone_and_a_creation() -> None:
    moving = [(UPDATE, [(1, "a", 10), (5, "a", 11), (2, "b", 20), (2, "b", 21)])]
    assert summary(changes(moving)) == [
        ("d", 1, 10, None, 0, (None, 5)),
        (None, 1, None, None, None, (None, 5)),
        ("c", 5, None, 11, 0, (1, None)),
        ("u", 2, 20, 21, 1, (None, None)),
    ]
    assert summary(changes(moving, tombstones=False)) == [
        ("d", 1, 10, None, 0, (None, 5)),
        ("c", 5, None, 11, 0, (1, None)),
        ("u", 2, 20, 21, 1, (None, None)),
    ]


def test_without_tombstones_a_deletion_is_one_record() -> None:
    assert summary(changes([(DELETE, [(1, "a", 10)])], tombstones=False)) == [("d", 1, 10, None, 0, (None, None))]


def test_a_table_without_key_has_null_keys_in_partition_0() -> None:
    records = changes([(UPDATE, [(1, "a", 1), (2, "a", 1)])], shape=TableShape(SHAPE.id, SHAPE.columns))
    assert [(r["key"], r["partition"], r["value"]["op"]) for r in records] == [(None, 0, "u")]


def test_no_images_give_no_records() -> None:
    assert changes([]) == []
    source = SourceConstants("f", 4, 0)
    assert snapshot_records(format_of(), columns([]), source, {"t": 3}, 2, now_us=NOW) == {}


def test_skipped_operations_leave_no_records_and_overtake_nothing() -> None:
    events = [(WRITE, [(1, "a", 1)]), (UPDATE, [(2, "a", 1), (3, "a", 1)]), (DELETE, [(4, "a", 1)])]
    assert [r["value"]["op"] for r in changes(events, skipped=frozenset("ud"))] == ["c"]
    assert changes(events, skipped=frozenset("cud")) == []


def test_an_update_that_changes_nothing_of_what_is_written_can_be_left_out() -> None:
    """Columns that are left out do not count, a NULL differs from a text, and what a mask hides is no change."""
    rows = [
        (1, "a", 2),
        (1, "a", 3),
        (1, "a", 2),
        (1, None, 2),
        (1, "abc", 2),
        (1, "abd", 2),
        (1, None, 2),
        (1, None, 9),
    ]
    cut = TransformRule("cut", (r"shop\..*na.*",), Transform("truncate", 2))
    rules = ColumnRules(exclude=(r"shop\..*\.n",), transforms=(cut,))
    events = [(UPDATE, rows)]
    assert len(changes(events)) == 4
    assert len(changes(events, skip_unchanged=True)) == 4
    (kept,) = changes(events, skip_unchanged=True, rules=rules)
    assert [kept["value"][side]['na"me'] for side in ("before", "after")] == ["a", None]


def test_another_message_key_leaves_the_primary_key_as_identity() -> None:
    """The row 5 gets the identity 6 while its message key stays; a window row of either must be discarded."""
    envelope = EnvelopeSettings("pre", "1.2.3", rules=ColumnRules(keys=((r"shop\..*", ("n",)),)))
    images = columns([(5, "a", 1), (6, "a", 1), (7, "a", 1), (7, "a", 2)])
    laid = changes_of_table(format_of(envelope=envelope), images, np.zeros(4, np.int32), np.array([UPDATE], np.uint8))
    (of_topic,) = change_records(laid, sources(1), None, {"t": 1}, now_us=NOW)
    batch = of_topic.records
    assert batch.column("key").to_pylist() == [b'{"n":1}', b'{"n":1}', b'{"n":1}', b'{"n":2}']
    assert batch.column("identity").to_pylist() == [b'{"id":6}', b'{"id":7}', b'{"id":7}', b'{"id":7}']
    assert batch.column("old_identity").to_pylist() == [b'{"id":5}', None, None, None]
    assert set(overtaken_by(batch).to_pylist()) == {b'{"id":5}', b'{"id":6}', b'{"id":7}'}
    rows = snapshot_records(format_of(envelope=envelope), images, SourceConstants("f", 4, 0), {"t": 1}, 1, now_us=NOW)
    assert overtaken_by(rows[0]).to_pylist() == [b'{"id":5}', b'{"id":6}', b'{"id":7}', b'{"id":7}']


def test_a_default_that_the_key_s_schema_shows_is_no_part_of_a_row_s_identity() -> None:
    """An ALTER of the DEFAULT between the chunk and the event: both are of one row all the same."""
    envelope = EnvelopeSettings("pre", "1.2.3", Modes(), key=FormatChoice(schemas=True))
    before, after = (replace(SHAPE, defaults=((0, str(default)),)) for default in (0, 7))
    images = columns([(number, "a", 1) for number in range(5, 7)])
    read = snapshot_records(
        format_of(before, envelope=envelope), images, SourceConstants("f", 4, 0), {"t": 1}, 1, now_us=NOW
    )[0]
    events = np.arange(2, dtype=np.int32)
    laid = changes_of_table(format_of(after, envelope=envelope), images, events, np.full(2, DELETE, np.uint8))
    (of_topic,) = change_records(laid, sources(2), None, {"t": 1}, now_us=NOW)

    assert set(read.column("key").to_pylist()).isdisjoint(of_topic.records.column("key").to_pylist())
    assert set(overtaken_by(read).to_pylist()) == set(overtaken_by(of_topic.records).to_pylist())


def test_a_key_that_holds_values_alone_is_its_own_identity() -> None:
    rows = snapshot_records(format_of(), columns([(5, "a", 1)]), SourceConstants("f", 4, 0), {"t": 1}, 1, now_us=NOW)
    assert rows[0].column("identity").to_pylist() == [None]


def test_a_zero_date_is_another_row_than_the_epoch_that_keys_write_for_it() -> None:
    day = Column("day", "date", nullable=False)
    format_ = format_of(TableShape(TableId("shop", "days"), (day,), key=(0,)))
    images = [pa.array([None, 0], pa.int32())]
    laid = changes_of_table(format_, images, np.zeros(2, np.int32), np.array([UPDATE], np.uint8))
    (of_topic,) = change_records(laid, sources(1), None, {"t": 1}, now_us=NOW)

    assert of_topic.records.column("key").to_pylist() == [b'{"day":0}']
    assert set(overtaken_by(of_topic.records).to_pylist()) == {b'{"day":null}', b'{"day":0}'}


def test_text_past_two_gib_is_refused_with_what_to_lower() -> None:
    with pytest.raises(IncsnapError, match="2 GiB") as caught:
        variable(np.array([0, 2**31]), b"", pa.binary())
    assert "incremental.snapshot.chunk.size" in caught.value.hint


def test_an_event_that_changes_no_rows_is_an_error() -> None:
    with pytest.raises(BinlogError, match="event of type 19"):
        changes([(19, [(1, "a", 1)])])


rows = st.lists(st.tuples(st.integers(0, 50), st.none() | st.text(max_size=3), st.none() | st.integers(0, 9)))


@given(st.lists(st.tuples(st.sampled_from([23, 24, 25, WRITE, UPDATE, DELETE]), rows)), st.booleans())
def test_any_changes_give_the_records_of_a_plain_loop(events: list[tuple[int, list[Row]]], tombstones: bool) -> None:
    events = [(kind, images + images if kind in (24, UPDATE) else images) for kind, images in events]
    expected: list[tuple[Any, ...]] = []
    none = (None, None)
    for kind, images in events:
        if kind in (23, WRITE):
            expected += [("c", id_, None, n, row, none) for row, (id_, _, n) in enumerate(images)]
        elif kind in (25, DELETE):
            for row, (id_, _, n) in enumerate(images):
                expected += [("d", id_, n, None, row, none)] + [(None, id_, None, None, None, none)] * tombstones
        else:
            for row, (old, new) in enumerate(zip(images[::2], images[1::2], strict=True)):
                if old[0] == new[0]:
                    expected.append(("u", old[0], old[2], new[2], row, none))
                    continue
                headers = (None, new[0])
                expected.append(("d", old[0], old[2], None, row, headers))
                expected += [(None, old[0], None, None, None, headers)] * tombstones
                expected.append(("c", new[0], None, new[2], row, (old[0], None)))
    records = changes(events, tombstones=tombstones)
    assert summary(records) == expected
    keys = pa.array([json.dumps(r["key"], separators=(",", ":")) for r in records], pa.binary())
    assert [r["partition"] for r in records] == partition(keys, 5).tolist()


@given(rows, st.integers(1, 6), st.integers(1, 4))
def test_buckets_share_a_chunk_and_keep_its_order(chunk: list[Row], partitions: int, buckets: int) -> None:
    source = SourceConstants("f", 4, 0)
    by_bucket = snapshot_records(format_of(), columns(chunk), source, {"t": partitions}, buckets, now_us=NOW)
    expected: dict[int, list[Any]] = {}
    keys = json_objects(format_of().view.key, columns(chunk), Modes())
    places = partition(keys, partitions)
    for row, place, owner in zip(chunk, places.tolist(), bucket_of("t", places, buckets).tolist(), strict=True):
        expected.setdefault(owner, []).append((place, row))
    got = {}
    for owner, batch in by_bucket.items():
        batch.validate(full=True)
        afters = [json.loads(v)["after"] for v in batch.column("value").to_pylist()]
        places_of = batch.column("partition").to_pylist()
        got[owner] = [(p, tuple(a.values())) for p, a in zip(places_of, afters, strict=True)]
        assert [json.loads(k)["id"] for k in batch.column("key").to_pylist()] == [a["id"] for a in afters]
    assert got == expected
