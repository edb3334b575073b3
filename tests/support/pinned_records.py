"""Digests of the records of fixed rows. A release must not change them without raising `RECORD_FORM`.

Each digest covers one part, so a new part adds a digest and leaves the others. Run this module after `RECORD_FORM` was
raised or a part was added: it writes the file again. It refuses to write changed digests under the old number.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.config.record_form import RECORD_FORM
from incsnap.connect.json_schema import schema_json
from incsnap.envelope.change_records import change_records
from incsnap.envelope.column_rules import ColumnRules, TransformRule
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.masks import Transform
from incsnap.envelope.records import RECORDS
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceColumns, SourceConstants
from incsnap.envelope.table_format import Registers, table_format
from incsnap.tables import Column, TableId, TableShape
from incsnap.types.column_type import describe
from tests.support.all_modes import ALL_MODES

FILE = Path(__file__).with_suffix(".json")

_TABLE = TableId("shop", "orders")


def _text(type_: str) -> tuple[Column, list[bytes]]:
    return Column("c", type_, length=40, charset="utf8mb4"), ['a"\\\n\x01 é漢😀'.encode(), b""]


def _bytes(type_: str) -> tuple[Column, list[bytes]]:
    return Column("c", type_, length=9, charset="binary"), [b"\x00\xff\xfe~", b""]


_POINT = struct.pack("<IBIdd", 4326, 1, 1, 1.5, -2.0)
_DATETIMES = [b"2024-02-29 23:59:59.123456", b"0069-01-01 00:00:00.000000", b"0000-00-00 00:00:00.000000"]
_EXAMPLES = [
    (Column("c", "tinyint"), [b"-128", b"127"]),
    (Column("c", "smallint"), [b"-32768", b"7"]),
    (Column("c", "mediumint"), [b"-8388608", b"7"]),
    (Column("c", "int"), [b"-2147483648", b"7"]),
    (Column("c", "bigint"), [b"-9223372036854775808", b"7"]),
    (Column("u", "bigint", unsigned=True), [b"18446744073709551615", b"7"]),
    (Column("c", "year"), [b"2024", b"0000"]),
    (Column("c", "decimal", precision=10, scale=2), [b"-12345678.90", b"0.00"]),
    (Column("w", "decimal", precision=65, scale=30), [b"-" + b"9" * 35 + b"." + b"9" * 30, b"0." + b"0" * 30]),
    (Column("c", "float"), [b"0.10000000149011612", b"-1e30", b"16777216"]),
    (Column("c", "double"), [b"0.1", b"-1.7976931348623157e308", b"1e21", b"100000"]),
    (Column("c", "bit", length=1), [b"1", b"0"]),
    (Column("w", "bit", length=33), [b"8589934591", b"0"]),
    *(_text(type_) for type_ in ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")),
    (Column("c", "enum", charset="utf8mb4", values=("a", "é")), ["é".encode(), b"a"]),
    (Column("c", "set", charset="utf8mb4", values=("a", "b")), [b"a,b", b""]),
    *(_bytes(type_) for type_ in ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")),
    (Column("c", "json"), [b'{"a": [1, 1.5, null, "\\u00e9 : ,"]}', b'""']),
    *((Column("c", type_), [_POINT]) for type_ in ("geometry", "point")),
    (Column("c", "vector"), [struct.pack("<3f", 0.1, -2, 1e30), b""]),
    (Column("c", "date"), [b"2024-02-29", b"0069-12-31", b"0000-00-00"]),
    (Column("n", "date", nullable=False), [b"2024-02-29", b"0000-00-00"]),
    (Column("c", "time", fraction=6), [b"-838:59:59.000000", b"23:59:59.999999"]),
    (Column("c", "datetime", fraction=6), _DATETIMES),
    (Column("m", "datetime", fraction=3), [text[:-3] for text in _DATETIMES]),
    (Column("c", "timestamp", fraction=6), _DATETIMES[:1]),
]

_RULES = ColumnRules(
    exclude=(r"shop\.orders\.gone",),
    transforms=(
        TransformRule("truncate", (r"shop\.orders\.name",), Transform("truncate", 3)),
        TransformRule("hash.v2", (r"shop\.orders\.who",), Transform("hash_v2", algorithm="SHA-256", salt="s")),
    ),
)
_AVRO, _SCHEMAS = FormatChoice("avro"), FormatChoice("json", schemas=True)
_PROTOBUF = FormatChoice("protobuf", optional=True)
_ENVELOPES = {
    "JSON": EnvelopeSettings("p", "0"),
    "JSON with schemas": EnvelopeSettings("p", "0", key=_SCHEMAS, value=_SCHEMAS),
    "Avro": EnvelopeSettings("p", "0", key=_AVRO, value=_AVRO, schema_names="avro"),
    "Protobuf": EnvelopeSettings("p", "0", key=_PROTOBUF, value=_PROTOBUF),
    "another key": EnvelopeSettings("p", "0", rules=ColumnRules(keys=((r"shop\.orders", ("name", "id")),))),
    "masks": EnvelopeSettings("p", "0", rules=_RULES),
    "without tombstones and deletions": EnvelopeSettings("p", "0", tombstones=False, skipped=frozenset("dt")),
    "transactions": EnvelopeSettings("p", "0", transactions=True),
}
_SHAPE = TableShape(
    _TABLE,
    (
        Column("id", "bigint", nullable=False),
        Column("name", "varchar", length=40, charset="utf8mb4", nullable=False),
        Column("who", "varchar", length=40, charset="utf8mb4"),
        Column("gone", "int"),
        Column("at", "datetime", fraction=6, nullable=False),
    ),
    key=(0, 4),
)
_ROWS = [
    [1, 1, 1, 2, 2, 3],
    ["first", "second", "second", "thîrd", "fourth", "x"],
    ["me", None, "you", "me", "me", ""],
    [None, 7, 7, 7, 7, 7],
    # A time in the year 1, which Debezium writes as 2001. An identity keeps the year 1.
    [0, 0, 0, -60_000_001, 60_000_001, -62_135_000_000_000_000],
]
#: An insertion, an update, an update of the key, and a deletion: the events, and the event of each row image.
_KINDS, _EVENT_OF = [30, 31, 31, 32], [0, 1, 1, 2, 2, 3]
_TOPIC = "p.shop.orders"
_PARTITIONS, _BUCKETS, _NOW_US = 7, 3, 1_700_000_000_123_456


def parts() -> dict[str, str]:
    """Return the digest of each part by the part's name."""
    digests = {}
    for column, texts in _EXAMPLES:
        digests[f"type {column.type} {column.name}"] = _digest(_of_type(column, texts))
    for name, envelope in _ENVELOPES.items():
        digests[f"rows, {name}"] = _digest(_of_rows(envelope))
        digests[f"changes, {name}"] = _digest(_of_changes(envelope))
    return digests


def pinned() -> dict[str, Any]:
    """Return the file's content: `form` is the number, `parts` are its digests."""
    document: dict[str, Any] = json.loads(FILE.read_text())
    return document


def changed() -> list[str]:
    """Return the parts of the file whose digest is different now."""
    now = parts()
    return [name for name, digest in pinned()["parts"].items() if now.get(name) != digest]


def _of_type(column: Column, texts: list[bytes]) -> Iterator[Any]:
    type_ = describe(column, _TABLE)
    nothing = [None] if column.nullable else []
    canonical = type_.from_text(pa.array([*texts, *nothing], pa.binary()))
    yield str(canonical.type)
    for modes in ALL_MODES:
        yield schema_json(type_.schema(modes))
        yield from type_.to_json(canonical, modes).to_pylist()
        yield from type_.connect(canonical, modes).to_pylist()


def _of_rows(envelope: EnvelopeSettings) -> Iterator[Any]:
    registered: list[Any] = []
    source = SourceConstants("binlog.000007", 2**33, 1_600_000_000_654_321, 5, "u:1-9")
    format_ = table_format(_SHAPE, _TOPIC, envelope, _registers(registered))
    by_bucket = snapshot_records(format_, _columns(), source, {_TOPIC: _PARTITIONS}, _BUCKETS, now_us=_NOW_US)
    for bucket, records in sorted(by_bucket.items()):
        yield bucket
        yield from _lines(records)
    yield registered


def _of_changes(envelope: EnvelopeSettings) -> Iterator[Any]:
    registered: list[Any] = []
    events = len(_KINDS)
    source = SourceColumns(
        gtid=pa.array([f"u:{nth}" for nth in range(events)], pa.string()),
        ts_us=np.arange(events, dtype=np.int64) * 1_001,
        server_id=np.full(events, 7, np.int64),
        thread=pa.array([None, 1, 2, 3], pa.int64()),
        file=pa.array(["binlog.000001"] * events, pa.string()),
        pos=np.arange(events, dtype=np.int64) + 2**33,
    )
    format_ = table_format(_SHAPE, _TOPIC, envelope, _registers(registered))
    laid = changes_of_table(format_, _columns(), np.array(_EVENT_OF, np.int32), np.array(_KINDS, np.uint8))
    numbers = np.arange(1, len(laid.events) + 1, dtype=np.int64)
    order = TransactionOrder(numbers, numbers) if envelope.transactions else None
    (of_topic,) = change_records(laid, source, order, {_TOPIC: _PARTITIONS}, now_us=_NOW_US)
    yield from _lines(of_topic.records.select(RECORDS.names))
    yield registered


def _columns() -> list[Any]:
    given = zip(_SHAPE.columns, _ROWS, strict=True)
    return [pa.array(values, describe(column, _TABLE).arrow) for column, values in given]


def _registers(registered: list[Any]) -> Registers:
    def register(*what: Any) -> int:
        registered.append(what)
        return len(registered)

    return Registers(register, register)


def _lines(records: pa.RecordBatch) -> Iterator[Any]:
    assert records.schema == RECORDS
    yield from zip(*(column.to_pylist() for column in records.columns), strict=True)


def _digest(content: Iterator[Any]) -> str:
    return hashlib.sha256("\n".join(map(repr, content)).encode()).hexdigest()[:16]


def _write() -> None:
    if pinned()["form"] == RECORD_FORM and (other := changed()):
        sys.exit(f"Raise RECORD_FORM first: of {', '.join(other)} the records have another form than they had.")
    FILE.write_text(json.dumps({"form": RECORD_FORM, "parts": parts()}, indent=1) + "\n")


if __name__ == "__main__":
    _write()
