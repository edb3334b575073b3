"""The table side: rows that SELECTs read, encoded like a snapshot's rows and read like the topic's records."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pymysql.connections import Connection

from incsnap.columns.arrow import Columns, RecordBatch
from incsnap.config.settings import Settings
from incsnap.envelope.listed_keys import KeyRefused, ListedKeys, key_text
from incsnap.envelope.record_encoder import READ
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import TableFormat
from incsnap.gtid import GtidSet
from incsnap.mysql.chunk_reader import stream_rows
from incsnap.mysql.session import connect, query
from incsnap.mysql.watermarks import wait_until_executed
from incsnap.planner.key_ranges import RangePart, range_tail
from incsnap.snapshot.chunk_query import any_of
from incsnap.tables import TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.proof import TopicKey
from incsnap.verify.record_reading import RecordForm, read_keys, read_rows

#: The columns of the table side.
TABLE_ROWS = pa.schema(
    [("topic", pa.string()), ("key", pa.binary()), ("table_partition", pa.int32()), ("row", pa.binary())]
)
#: Seconds that the server waits for a task that takes no rows.
_PATIENCE_SECONDS = 3600
#: Seconds that a server may take until it has executed what a SELECT must see.
_LATE_SECONDS = 20.0
#: Keys of one SELECT.
_KEYS_TOGETHER = 2_000


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """A table and its topic."""

    shape: TableShape  #: columns and key
    topic: str  #: topic of its records
    partitions: int  #: how many the topic has
    form: RecordForm  #: form of the topic's records


def encoded(format_: TableFormat, table: VerifiedTable, columns: Columns) -> RecordBatch:
    """Return the columns of TABLE_ROWS for rows that a SELECT has read."""
    now_us = time.time_ns() // 1000
    source = SourceConstants("", 0, now_us)
    made = snapshot_records(format_, columns, source, {table.topic: table.partitions}, 1, now_us=now_us)
    if not made:
        return pa.RecordBatch.from_pylist([], TABLE_ROWS)
    records = made[0]
    form = table.form.of_table
    keys, (_, rows) = records.column("key"), read_rows(records.column("value"), form)
    topics = pa.repeat(pa.scalar(table.topic), len(records))
    # Keys in Avro or with the id of a schema have other bytes, and so another partition.
    is_json = table.form.key_avro is None and not table.form.key_frame
    homes = records.column("partition") if is_json else pa.nulls(len(records), pa.int32())
    arrays = [topics, read_keys(keys, form), homes, rows]
    return pa.RecordBatch.from_arrays(arrays, schema=TABLE_ROWS)


def read_range(
    settings: Settings, table: VerifiedTable, part: RangePart, *, behind: GtidSet | None = None
) -> Iterator[RecordBatch]:
    """Yield the rows of a range of the key, with the columns of TABLE_ROWS.

    `behind`: transactions that the server must have executed before the SELECT. Raise ChunkFailed if it has not.
    """
    format_ = format_of(settings, table.shape)
    with closing(connect(settings.mysql, read_timeout=float(_PATIENCE_SECONDS))) as connection:
        query(connection, f"SET SESSION net_write_timeout = {_PATIENCE_SECONDS}")
        if behind is not None:
            wait_until_executed(connection, behind, _LATE_SECONDS)
        yield from _encoded_rows(connection, format_, table, range_tail(table.shape, part))


def read_by_keys(
    connection: Connection[Any], settings: Settings, table: VerifiedTable, keys: Collection[TopicKey]
) -> list[tuple[TopicKey, bytes, int | None]]:
    """Return the rows of `keys`, each with its key and with the partition of the key (None: unknown).

    A key may have no row or, if it is no primary key, several. A row counts only if its record key has the same bytes:
    a case-insensitive index finds other rows too.
    """
    format_ = format_of(settings, table.shape)
    rows: list[tuple[TopicKey, bytes, int | None]] = []
    listed = [key for key in keys if _has_fields(format_, key[1])]
    for begin in range(0, len(listed), _KEYS_TOGETHER):
        part = listed[begin : begin + _KEYS_TOGETHER]
        where = _where(format_, [key for _, key in part])
        tail = f"FROM {table.shape.id.sql}" + (f" WHERE {where}" if where else "")
        chosen = pa.array([key for _, key in part], pa.binary())
        for batch in _encoded_rows(connection, format_, table, tail):
            own = batch.filter(pc.is_in(batch.column("key"), chosen))
            columns = (own.column(name).to_pylist() for name in ("key", "row", "table_partition"))
            rows += [((table.topic, key), row, home) for key, row, home in zip(*columns, strict=True)]
    return rows


def _encoded_rows(
    connection: Connection[Any], format_: TableFormat, table: VerifiedTable, tail: str
) -> Iterator[RecordBatch]:
    for columns in stream_rows(connection, table.shape, tail, format_.view.needed):
        yield encoded(format_, table, columns)


def can_own(settings: Settings, table: VerifiedTable, key: bytes) -> bool:
    """Return True if `key` can be the record key of a row of the table: written again, it has the same bytes."""
    format_ = format_of(settings, table.shape)
    if not _has_fields(format_, key):
        return False
    try:
        listed = ListedKeys.read(format_, [key_text(json.loads(key))])
    except (KeyRefused, ValueError):
        return False
    return bool(read_keys(listed.records, table.form.of_table).to_pylist() == [key])


def _has_fields(format_: TableFormat, key: bytes) -> bool:
    """Return True if `key` is a JSON object with the names that the table's record keys have."""
    read = format_.encoders[READ]
    added = {each.name for each in read.spec.key_fields} if read is not None else set()
    try:
        return bool(json.loads(key).keys() == {field.name for field in format_.view.key} | added)
    except (ValueError, AttributeError):
        return False


def _where(format_: TableFormat, keys: Sequence[bytes]) -> str:
    """Return the SQL condition for rows of these keys; "" if their form cannot be turned back into SQL."""
    try:
        listed = ListedKeys.read(format_, [key_text(json.loads(key)) for key in keys])
    except (KeyRefused, ValueError):
        return ""
    return any_of([field.column for field in format_.view.key], listed.sql) if listed.sql else "FALSE"
