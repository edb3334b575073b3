"""The product's records for events of the modelled server, and the reader of such records.

The binlog position of an event is its version, and the server id is its transaction. A snapshot row has its version in
the column `v`, and its server id is the number of the chunk's reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, permutations
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.config.topics import topic_of
from incsnap.envelope.change_records import TopicRecords, change_records
from incsnap.envelope.records import OPERATION, RECORDS
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.sources import SourceColumns
from incsnap.tables import Column, TableId, TableShape
from incsnap.tasks.formats import format_of
from tests.property.mysql_model import KEYS, columns_of
from tests.property.server_model import TABLES, Event, Row, keys_of
from tests.property.topic_model import Record

#: The values of one record, for `RECORDS`.
Line = tuple[Any, ...]

BUCKETS = 2
_PROPERTIES = {
    "database.hostname": "modelled",
    "database.user": "u",
    "database.password": "p",
    "database.server.id": "1",
    "topic.prefix": "t",
    "database.include.list": "db",
    "bootstrap.servers": "modelled:9092",
    "checkpoint.location": "/nowhere",
    "message.key.columns": "db.b:k",
    "snapshot.mode": "no_data",
}
#: The record key of table b is only the first column of its primary key, so its rows have an identity beside the key.
SETTINGS: Settings = from_properties(_PROPERTIES, {}).settings
#: Topic of the events of table a with the transforms `TOPICS_BY_COLUMNS`.
_ELSEWHERE = "t.elsewhere"
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium.transforms."


def _behind_unwrap(**transforms: dict[str, str]) -> Settings:
    """Return settings under which records of table a are flat rows that pass through `transforms`.

    `transforms`: of each transform its options.
    """
    unwrap = {
        "type": f"{_DEBEZIUM}ExtractNewRecordState",
        "delete.tombstone.handling.mode": "rewrite",
        "add.fields": "op,source.pos,source.server_id",
        "predicate": "a",
    }
    steps = {"unwrap": unwrap, **transforms}
    properties = {
        **_PROPERTIES,
        "transforms": ",".join(steps),
        "predicates": "a",
        "predicates.a.type": f"{_CONNECT}predicates.TopicNameMatches",
        "predicates.a.pattern": r"t\.db\.a",
    }
    for name, options in steps.items():
        properties |= {f"transforms.{name}.{option}": value for option, value in options.items()}
    return from_properties(properties, {}).settings


_BY_VALUE = {"type": f"{_CONNECT}ValueToKey", "fields": "v", "predicate": "a"}
_GROOVY = {"language": "jsr223.groovy", "topic.regex": r"t\.db\.a"}
PLAIN, KEYS_OF_VALUES, TOPICS_BY_COLUMNS, DROPPED = "plain", "keys of values", "topics by columns", "events dropped"
#: Transforms of table a -> the settings. The column `v` of an event's row is 0, that of a row which is read is not. So
#: each change gives the row another key or another topic, and no record says that it is gone from the old one.
CHAINS = {
    PLAIN: SETTINGS,
    KEYS_OF_VALUES: _behind_unwrap(keys=_BY_VALUE),
    TOPICS_BY_COLUMNS: _behind_unwrap(
        keys=_BY_VALUE,
        router={
            **_GROOVY,
            "type": f"{_DEBEZIUM}ContentBasedRouter",
            "topic.expression": f"value.v == 0 ? '{_ELSEWHERE}' : null",
        },
    ),
    #: All events of the table are dropped, and rows that are read are sent.
    DROPPED: _behind_unwrap(filter={**_GROOVY, "type": f"{_DEBEZIUM}Filter", "condition": "value.v > 0"}),
}
TOPICS = {table: topic_of(SETTINGS, table) for table in TABLES}
_OF_TOPIC = {**{topic: table for table, topic in TOPICS.items()}, _ELSEWHERE: TableId("db", "a")}
#: Topic -> number of partitions.
PARTITIONS = dict(zip(TOPICS.values(), (2, 3), strict=True))
_SHAPES = {
    table: TableShape(
        table,
        tuple(Column(name, type_, nullable=False) for name, type_ in columns_of(table)),
        tuple(range(len(KEYS[table]))),
    )
    for table in TABLES
}
#: Types of rows events.
_UPDATE, _DELETE = 31, 32
#: Placeholders in a template, for the version and the transaction of an event.
_VERSION, _TRANSACTION = 7_000_000_001, 8_000_000_001
_KINDS = {"put": _UPDATE, "rekey": _UPDATE, "delete": _DELETE}


def encoded(
    arrived: Sequence[tuple[int, Event]], *, chain: str = PLAIN
) -> Iterator[tuple[int, TableId, bool, pa.RecordBatch]]:
    """Yield (bucket, table, whether the records are rows, records) for (transaction, event) pairs, in order for each
    table. `chain`: one of `CHAINS`."""
    for table in TABLES:
        of_table = [each for each in arrived if each[1].table == table and each[1].kind in (*_KINDS, "truncate")]
        for truncates, run in groupby(of_table, lambda each: each[1].kind == "truncate"):
            if truncates:
                records = _truncations(run)
                yield from ((bucket, table, False, records) for bucket in range(BUCKETS))
                continue
            lines_by_bucket: dict[int, list[Line]] = {}
            for transaction, event in run:
                for bucket, line in templates(chain, table)[event.kind, event.key, event.new_key]:
                    lines_by_bucket.setdefault(bucket, []).append(_filled(line, transaction, event))
            for bucket, lines in sorted(lines_by_bucket.items()):
                yield bucket, table, True, _batch(lines)


@cache
def templates(chain: str, table: TableId) -> Mapping[tuple[str, Row, Row], Sequence[tuple[int, Line]]]:
    """Return (bucket, record) pairs for every possible event of the table.

    Encoding each event by itself would take most of a run.
    """
    keys = keys_of(table)
    every = [Event(kind, table, _VERSION, key) for kind in ("put", "delete") for key in keys]
    every += [Event("rekey", table, _VERSION, *pair) for pair in permutations(keys, 2)]
    of_event: dict[tuple[str, Row, Row], list[tuple[int, Line]]] = {}
    for event in every:
        of_event[event.kind, event.key, event.new_key] = [
            line for of_topic in _changes(CHAINS[chain], table, event) for line in _lines(of_topic)
        ]
    return of_event


def _lines(of_topic: TopicRecords) -> Iterator[tuple[int, Line]]:
    for bucket, each, _ in of_topic.by_bucket(BUCKETS):
        records = each.drop_columns([OPERATION.name])
        for line in zip(*(column.to_pylist() for column in records.columns), strict=True):
            yield bucket, line


def _changes(settings: Settings, table: TableId, event: Event) -> list[TopicRecords]:
    keys = [event.key] if event.kind == "delete" else [event.key, event.new_key or event.key]
    columns = [pa.array(values, pa.int64()) for values in zip(*((*key, 0, 0) for key in keys), strict=True)]
    event_of = np.zeros(len(keys), np.int32)
    laid = changes_of_table(
        format_of(settings, _SHAPES[table]), columns, event_of, np.array([_KINDS[event.kind]], np.uint8)
    )
    source = SourceColumns(
        gtid=pa.nulls(1, pa.string()),
        ts_us=np.zeros(1, np.int64),
        server_id=np.array([_TRANSACTION], np.int64),
        thread=pa.nulls(1, pa.int64()),
        file=pa.array(["binlog"], pa.string()),
        pos=np.array([event.version], np.int64),
    )
    return change_records(laid, source, None, PARTITIONS, now_us=0)


def _filled(line: Line, transaction: int, event: Event) -> Line:
    partition, key, value, *rest = line
    if value is not None:
        value = value.replace(b"%d" % _VERSION, b"%d" % event.version)
        value = value.replace(b"%d" % _TRANSACTION, b"%d" % transaction)
    return (partition, key, value, *rest)


def _truncations(truncations: Iterable[tuple[int, Event]]) -> pa.RecordBatch:
    """Return the records of TRUNCATEs, for every bucket. The product writes them to topics of their own."""
    values = [{"op": "t", "source": {"pos": event.version, "server_id": number}} for number, event in truncations]
    return _batch([(0, None, json.dumps(value).encode(), None, None, None, None) for value in values])


def _batch(lines: Sequence[Line]) -> pa.RecordBatch:
    columns = zip(*lines, strict=True)
    # A record that names its own topic has one column more.
    schema = RECORDS if len(lines[0]) == len(RECORDS) else RECORDS.append(pa.field("topic", pa.string()))
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def consumed(topic: str, records: pa.RecordBatch) -> Iterator[Record]:
    """Yield what a consumer reads in the records. Tombstones are skipped."""
    for key, value in zip(records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True):
        if value is not None:
            yield from _read(_OF_TOPIC[topic], json.loads(value), key)


def _read(table: TableId, value: Any, key: bytes) -> Iterator[Record]:
    if "__op" in value:
        yield _flat(table, value)
        return
    op, source = value["op"], value["source"]
    if op == "r":
        row = value["after"]
        yield Record(table, "r", _key(table, row), row["v"], reading=source["server_id"], shape=row["s"])
        return
    if op == "d" and source["snapshot"] == "incremental":
        row = json.loads(key)
        yield Record(table, "x", _key(table, row.get("payload", row)), -1, reading=source["server_id"])
        return
    version, transaction = source["pos"], source["server_id"]
    if op == "t":
        yield Record(table, "t", None, version, transaction)
        return
    before, after = (value[image] and _key(table, value[image]) for image in ("before", "after"))
    # both keys have one record key, so the product sends neither a deletion nor a creation
    if before and after and before != after:
        yield Record(table, "d", before, version, transaction)
        yield Record(table, "c", after, version, transaction)
    else:
        yield Record(table, op, after or before, version, transaction)


def _flat(table: TableId, row: Any) -> Record:
    op, pos, server_id = (row[f"__{name}"] for name in ("op", "source_pos", "source_server_id"))
    if op == "r":
        return Record(table, "r", _key(table, row), row["v"], reading=server_id, shape=row["s"])
    return Record(table, op, _key(table, row), pos, server_id)


def _key(table: TableId, row: Any) -> Row:
    return tuple(row[name] for name in KEYS[table])
