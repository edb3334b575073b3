"""Changes that are too large for Kafka: where they stand, and how they are cut."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incsnap.envelope.change_records import change_records
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.oversized import ORIGIN, ROW_KEY, Shortening, key_text, with_row_keys
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.table_format import table_format
from incsnap.tables import Column, TableId, TableShape
from incsnap.types.modes import Modes
from tests.support.source_columns import source_columns

SHAPE = TableShape(
    TableId("shop", "docs"),
    (
        Column("id", "varchar", charset="utf8mb4"),
        Column("body", "longtext", charset="utf8mb4"),
        Column("picture", "longblob"),
        Column("kept", "longtext", charset="utf8mb4"),
    ),
    key=(0,),
)
MOST = 200_000
UPDATE = 31


class Small:
    """A Kafka that takes records of so many bytes."""

    def fits(self, topic: str, content: bytes) -> bool:
        return len(content) <= MOST

    def most(self, topic: str) -> int:
        return MOST


def updated(before: tuple[Any, ...], after: tuple[Any, ...], *columns: str) -> pa.RecordBatch:
    format_ = table_format(SHAPE, "t", EnvelopeSettings("pre", "1", Modes()))
    texts, types = list(zip(before, after, strict=True)), (pa.string(), pa.string(), pa.binary(), pa.string())
    images = [pa.array(values, kind) for values, kind in zip(texts, types, strict=True)]
    laid = changes_of_table(format_, images, np.zeros(2, np.int32), np.array([UPDATE], np.uint8))
    shortening = Shortening(Small(), columns)
    (of_topic,) = change_records(laid, source_columns(1), None, {"t": 1}, now_us=0, shortening=shortening)
    records: pa.RecordBatch = of_topic.records
    return records


def value_of(records: pa.RecordBatch) -> dict[str, Any]:
    value: bytes = records.column("value")[0].as_py()
    assert len(value) <= MOST
    return dict(json.loads(value))


def test_named_columns_are_cut_by_the_same_share_in_both_rows() -> None:
    rows = ("k", "a" * 300_000, b"\1" * 150_000, "kept"), ("k", "b" * 100_000, None, "kept too")
    value = value_of(updated(*rows, r"shop\.docs\.body", r"shop\.docs\.picture"))
    before, after = value["before"], value["after"]
    assert (before["id"], before["kept"], after["kept"], after["picture"]) == ("k", "kept", "kept too", None)
    assert 0 < len(after["body"]) < 100_000
    assert len(before["body"]) == pytest.approx(3 * len(after["body"]), rel=0.01)
    assert set(before["body"]) == {"a"}


def test_a_text_whose_characters_are_escaped_is_cut_until_it_fits() -> None:
    value = value_of(updated(("k", "\1" * 100_000, b"", ""), ("k", "plain" * 20_000, b"", ""), r".*\.body"))
    assert value["after"]["body"].startswith("plain")


def test_a_record_that_fits_stays_as_it_is_and_tells_its_place() -> None:
    records = updated(("k", "a" * 80_000, b"", ""), ("k", "a", b"", ""), r".*\.body")
    assert len(value_of(records)["before"]["body"]) == 80_000
    assert records.column(ORIGIN).to_pylist() == ["b:0, row 0, GTID u:1"]


def test_a_record_whose_named_columns_are_too_small_to_cut_stays_too_large() -> None:
    records = updated(("k", "", b"", "x" * 300_000), ("k", "a" * 80_000, b"", ""), r".*\.body")
    assert len(json.loads(records.column("value")[0].as_py())["before"]["kept"]) == 300_000


def test_small_records_have_no_place() -> None:
    assert ORIGIN not in updated(("k", "a", b"", ""), ("k", "b", b"", "")).schema.names


def test_a_large_record_whose_key_is_no_text_tells_its_row() -> None:
    records = updated(("k", "a" * 80_000, b"", ""), ("k", "a", b"", ""))
    index = records.schema.get_field_index("key")
    avro = records.set_column(index, "key", pa.array([b"\0\0\0\0\1\2k"], pa.binary()))
    view = table_format(SHAPE, "t", EnvelopeSettings("pre", "1", Modes())).view
    rows = [pa.array(["j", "k"]), pa.nulls(2), pa.nulls(2), pa.nulls(2)]
    assert with_row_keys(avro, view, rows, np.array([1])).column(ROW_KEY).to_pylist() == ["k"]
    assert ROW_KEY not in records.schema.names


def test_the_text_of_a_key_has_all_digits() -> None:
    assert key_text(b'{"n":12345678901234567890.1234567891,"m":0.5}') == "12345678901234567890.1234567891,0.5"
