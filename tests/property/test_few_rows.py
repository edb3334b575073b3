"""Tests of tables that are written together: their records equal those of each table alone, damaged or not."""

from __future__ import annotations

import random
import struct
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.protocol import wire_types as t
from incsnap.config.frames import frame_settings
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.snapshot.offset import OpenCounts, TopicLayout
from incsnap.tasks import blocks, formats, small_tables
from incsnap.tasks.partitions import SlicePart
from incsnap.tasks.slice_rows import slice_rows
from incsnap.tasks.transaction_metadata import Border
from incsnap.transforms.unwrap import MODES
from tests.support import binlog_bytes as made
from tests.support.numbered_schemas import NumberedSchemas
from tests.support.packets import lenenc_string, packed_decimal, row_image, rows_event, table_map
from tests.support.stream_in_memory import slice_of

_JSON, _AVRO = "org.apache.kafka.connect.json.JsonConverter", "io.confluent.connect.avro.AvroConverter"
_PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
_APICURIO = "io.apicurio.registry.utils.converter."
_CHARSETS = ((255, "utf8mb4"), (63, "binary"))
#: Type code, metadata and bytes of values. The fourth value is rare. Some values are damaged, or are refused in some
#: modes.
_TYPES: dict[str, tuple[int, bytes, list[bytes]]] = {
    "int": (t.LONG, b"", [struct.pack("<i", n) for n in (0, 1, -7, 2**31 - 1)]),
    "bigint": (t.LONGLONG, b"", [struct.pack("<q", n) for n in (0, -1, 2**62)]),
    "tinyint": (t.TINY, b"", [b"\x00", b"\x01", b"\xff"]),
    "varchar": (t.VARCHAR, b"\x2c\x01", [b"\x00\x00", b'\x03\x00a"%', "\x05\x00päß".encode(), b"\x02\x00\xff\xfe"]),
    "decimal": (t.NEWDECIMAL, b"\x0c\x02", [packed_decimal(n, 12, 2) for n in (0, -12345, 99)]),
    "datetime": (
        t.DATETIME2,
        b"\x06",
        [b"\x99\xb0\x0c\x10\x83\x00\x00\x07", b"\x80" + bytes(7), b"\x8c\xb2" + bytes(6), b"\xff" * 8],
    ),
    "date": (t.DATE, b"", [b"\x21\xc8\x0f", bytes(3)]),
    "double": (t.DOUBLE, b"\x08", [struct.pack("<d", n) for n in (0.5, -0.0, 1e300)]),
}
_FORMATS: list[dict[str, str]] = [
    {},
    {"value.converter": _JSON, "value.converter.schemas.enable": "true"},
    {f"{side}.converter{more}": what for side in ("key", "value")
     for more, what in (("", _AVRO), (".schema.registry.url", "http://r"))},
    *({f"{side}.converter{more}": what for side in ("key", "value")
       for more, what in (("", _PROTOBUF), (".schema.registry.url", "http://r"), (f".{nulls}.for.nullables", "true"))}
      for nulls in ("wrapper", "optional")),
    {f"{side}.converter{more}": what for side in ("key", "value")
     for more, what in (("", f"{_APICURIO}AvroConverter"), (".apicurio.registry.url", "http://r/apis/registry/v2"))},
    {f"{side}.converter{more}": what for side in ("key", "value")
     for more, what in (("", f"{_APICURIO}ExtJsonConverter"), (".apicurio.registry.url", "http://r/apis/registry/v2"))},
]  # fmt: skip
_SETTINGS: list[dict[str, list[str]]] = [
    {"tombstones.on.delete": ["false"]},
    {"skipped.operations": ["u", "c,d"]},
    {"skip.messages.without.change": ["true"]},
    {"message.key.columns": ["shop.t.*:c1", "shop.t0000[02]:c2,c1"]},
    {"provide.transaction.metadata": ["true"]},
    {"column.exclude.list": [r"shop\.t.*\.c2", r"shop\.t00001\.c.*"]},
    {"column.mask.with.3.chars": [r"shop\.t.*\.c[12]"]},
    {"time.precision.mode": ["connect", "isostring"]},
    {"decimal.handling.mode": ["string", "double"]},
]
_START = "transforms."
_TRANSFORMS: dict[str, dict[str, list[str]]] = {
    "route": {
        "type": ["org.apache.kafka.connect.transforms.RegexRouter"],
        "regex": [r"(.*)\.t0000[01]"],
        "replacement": ["$1.both"],
    },
    "logical": {
        "type": ["io.debezium.transforms.ByLogicalTableRouter"],
        "topic.regex": [r"(.*)\.t0000(.)"],
        "topic.replacement": ["$1.all", "$1.$2"],
        "key.enforce.uniqueness": ["true", "false"],
    },
    "filter": {
        "type": ["io.debezium.transforms.Filter"],
        "language": ["jsr223.groovy"],
        "condition": ["value.op == 'u'", "value.op != 'd'", "value.op in ['c', 'd']"],
        "topic.regex": [r"p\.shop\..*"],
        "null.handling.mode": ["keep", "drop"],
    },
    "unwrap": {
        "type": ["io.debezium.transforms.ExtractNewRecordState"],
        "delete.tombstone.handling.mode": list(MODES),
        "add.fields": ["", "op", "op,table,db,source.ts_ns,ts_ms:when,row,snapshot,gtid,file,version"],
        "add.headers": ["", "op,table", "total_order,id,server_id"],
    },
    "again": {
        "type": ["org.apache.kafka.connect.transforms.RegexRouter"],
        "regex": [".*"],
        "replacement": ["gone"],
        "predicate": ["tombstone", "one"],
    },
}
_PREDICATES = {
    "predicates": "tombstone,one",
    "predicates.tombstone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    "predicates.one.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.one.pattern": ".*2",
}


def _chosen(rng: random.Random) -> Settings:
    """Return random settings. Settings that do not fit together are left out."""
    given: dict[str, str] = {
        "database.hostname": "127.0.0.1",
        "database.user": "u",
        "database.password": "p",
        "database.server.id": "1",
        "topic.prefix": "p",
        "checkpoint.location": "unused",
        "event.processing.failure.handling.mode": rng.choice(("fail", "skip")),
        "inconsistent.schema.handling.mode": rng.choice(("fail", "skip")),
    }
    for setting in rng.sample(_SETTINGS, rng.choice((0, 0, 1, 1, 2, 3))):
        given |= {name: rng.choice(values) for name, values in setting.items()}
    names = [name for name in _TRANSFORMS if rng.random() < (0.6 if name == "unwrap" else 0.15)]
    if names:
        given |= {"transforms": ",".join(names), **_PREDICATES}
    for name in names:
        given |= {f"{_START}{name}.{option}": rng.choice(values) for option, values in _TRANSFORMS[name].items()}
    if "unwrap" in names and rng.random() < 0.2:
        given[f"{_START}unwrap.predicate"] = "one"
    if rng.random() < 0.15 and "column.mask.with.3.chars" not in given:
        return frame_settings(given).settings
    given |= {"bootstrap.servers": "k:9092", **rng.choice(_FORMATS)}
    return from_properties(given, {}).settings


def _table(number: int, names: list[str], *, key: bool) -> tuple[int, bytes]:
    codes, meta = [_TYPES[name][0] for name in names], b"".join(_TYPES[name][1] for name in names)
    fields = [(2, b"\xfc\xff\x00"), *([(8, b"\x00")] if key else [])]
    columns = [f"c{index}" for index in range(len(names))]
    body = table_map(columns, codes, meta, fields, nullable=~1 & ((1 << len(names)) - 1), table_id=7 + number)
    return kinds.TABLE_MAP, body.replace(lenenc_string(b"orders"), lenenc_string(f"t{number:05}".encode()))


def _events(rng: random.Random, number: int, names: list[str]) -> list[tuple[int, bytes]]:
    def image(key: bytes | None = None) -> list[bytes | None]:
        values = [None if rng.random() < 0.25 else value(name) for name in names]
        return [key or value(names[0]), *values[1:]]

    def value(name: str) -> bytes:
        of_type = _TYPES[name][2]
        return rng.choice(of_type if rng.random() < 0.02 else of_type[:3])

    def update() -> list[list[bytes | None]]:
        before = image()
        after = image(None if rng.random() < 0.05 else before[0])
        return [before, before if rng.random() < 0.3 else after]

    events = []
    for kind in rng.choices((made.WRITE, made.UPDATE, made.DELETE), k=rng.randint(1, 3)):
        rows = [row for _ in range(rng.randint(1, 2)) for row in (update() if kind == made.UPDATE else [image()])]
        body = rows_event(len(names), [row_image(row) for row in rows], update=kind == made.UPDATE, table_id=7 + number)
        if rng.random() < 0.01:
            body = body[: rng.randint(12, len(body) - 1)]
        events.append((kind, body))
    return events


def _written(part: SlicePart, settings: Settings) -> tuple[Any, int]:
    """Return the records by bucket, topic and table, or the first error; and how many tables were written together."""
    by_table: dict[tuple[int, str, str], list[Any]] = {}
    joined = 0
    try:
        for _, bucket, _, kind, topic, table, block in slice_rows(part, settings, 5):
            for records in blocks.decode(block):
                runs = blocks.runs_of(kind, topic, table, records)
                joined += len(runs) if kind == blocks.TABLES else 0
                for run, of_table in blocks.by_run(records, runs):
                    assert len(of_table)
                    rows = [{name: each for name, each in row.items() if name != "headers" or each}
                            for row in of_table.to_pylist()]  # fmt: skip
                    by_table.setdefault((bucket, run.topic, run.table), []).extend(rows)
    except IncsnapError as error:
        return str(error), joined
    return by_table, joined


@given(st.integers(0, 2**32))
def test_together_gives_what_each_gives_by_itself(seed: int) -> None:
    rng = random.Random(seed)
    settings = _chosen(rng)
    tables = [[rng.choice(("int", "varchar", "bigint")), *rng.choices(sorted(_TYPES), k=3)] for _ in range(4)]
    keyed = [rng.random() < 0.8 for _ in tables]
    transactions = []
    for _ in range(rng.randint(1, 3)):
        touched = rng.sample(range(len(tables)), rng.randint(1, len(tables)))
        transactions.append(
            [each for n in touched for each in (_table(n, tables[n], key=keyed[n]), *_events(rng, n, tables[n]))]
        )
    topics = {f"p.shop.t{number:05}": rng.randint(1, 5) for number in range(len(tables))}
    layout = TopicLayout(rng.randint(1, 3), {**topics, "p.shop.both": 3, "p.shop.all": 2, "gone": 4})
    begun = OpenCounts(5, (("shop.t00000", 3),)) if rng.random() < 0.3 else None
    part = SlicePart(1, layout, 0, slice_of(*transactions), _CHARSETS, Border(begun, rng.random() < 0.3))
    with patch.object(formats, "_registry", lambda url, client, kind: _REGISTRY):
        together, _ = _written(part, settings)
        with patch.object(small_tables, "_MOST_IMAGES", 0):
            alone, none = _written(part, settings)
    assert none == 0
    assert together == alone


_REGISTRY = NumberedSchemas()
