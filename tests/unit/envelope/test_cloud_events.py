"""CloudEvents in JSON, compared byte for byte with those of Debezium's own class (tests/golden)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incsnap.connect.schema import Schema
from incsnap.envelope.cloud_events import CloudEvents
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.format import Changes, TransactionOrder
from incsnap.envelope.record_encoder import READ, Operation
from incsnap.envelope.sources import SourceColumns, SourceConstants
from incsnap.envelope.table_format import struct_format, table_format
from incsnap.errors import ConfigError
from incsnap.tables import Column, TableId, TableShape
from incsnap.transforms.chain import Step
from incsnap.transforms.unwrap import ExtractNewRecordState

_LINES = (Path(__file__).parents[2] / "golden/cloud_events.jsonl").read_text().splitlines()
RECORDED = [json.loads(line) for line in _LINES[1:]]
US = 1_600_000_000_000_000
TABLE = TableShape(
    TableId("shop", "orders"),
    (Column("id", "bigint", nullable=False), Column("note", "varchar", charset="utf8mb4")),
    (0,),
)
IMAGES = [pa.array([7, 7]), pa.array([None, 'é"'])]
ALL = {
    "read": SourceConstants("binlog.000001", 4, US, 1),
    "truncate": SourceConstants("binlog.000001", 4, US, 1, snapshot="false"),
}


def choice(options: dict[str, str]) -> FormatChoice:
    schemas, extended = (
        options.get(f"{name}.enable", "true") == "true" for name in ("json.schemas", "extension.attributes")
    )
    return FormatChoice("cloudevents", schemas, extended=extended)


def values(options: dict[str, str]) -> CloudEvents:
    settings = EnvelopeSettings("p", "3.6.1.Final", value=choice(options))
    made = table_format(TABLE, "p.shop.orders", settings).encoders[READ]
    assert made is not None
    assert isinstance(made.value, CloudEvents)
    return made.value


def changes(op: int, before: int, after: int, *, known: bool) -> Changes:
    one = np.zeros(1, np.int64)
    source = SourceColumns(
        pa.array(["u:5" if known else None]),
        one + US,
        one + 1,
        pa.array([9 if known else None], pa.int64()),
        pa.array(["binlog.000001"]),
        one + 4,
        pa.array([None], pa.string()),
    )
    order = TransactionOrder(one + 1, one + 2) if known else None
    return Changes(one + before, one + after, one, one, np.full(1, op, np.uint8), source, order, 1)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: f"{each['record']} {each['options']}")
def test_events_are_those_of_debeziums_class(recorded: dict[str, Any]) -> None:
    format_ = values(recorded["options"])
    match recorded["record"]:
        case "read":
            value = format_.reads([column.slice(1) for column in IMAGES], ALL["read"], 1)[0].as_py()
        case "update":
            value = format_.changes(IMAGES, changes(1, 0, 1, known=True))[0].as_py()
        case "delete":
            value = format_.changes(IMAGES, changes(2, 0, -1, known=False))[0].as_py()
        case "truncate":
            value = format_.truncation(ALL["truncate"], 1)
        case _:
            value = struct_format(choice(recorded["options"])).struct("t", Schema("struct"), {})
    assert (None if value is None else value.decode()) == recorded["value"]


def test_a_row_without_its_envelope_is_refused() -> None:
    settings = EnvelopeSettings("p", "1", value=choice({}), transforms=(Step(ExtractNewRecordState()),))
    with pytest.raises(ConfigError, match="needs Debezium's envelope"):
        table_format(TABLE, "p.shop.orders", settings)


def test_a_tombstone_has_no_value() -> None:
    made = table_format(TABLE, "p.shop.orders", EnvelopeSettings("p", "1", value=choice({}))).encoders[Operation("")]
    assert made is not None
    assert not made.has_bytes
