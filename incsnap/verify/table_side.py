"""The table side: rows that SELECTs read, encoded like a snapshot's rows and read like the topic's records."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pymysql.connections import Connection
from pymysql.constants import ER

from incsnap.columns.arrow import Array, Columns, RecordBatch
from incsnap.config.settings import Settings
from incsnap.envelope.json_format import JsonValues
from incsnap.envelope.listed_keys import KeyRefused, ListedKeys, read_key
from incsnap.envelope.partitioner import partition
from incsnap.envelope.record_encoder import READ
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import TableFormat
from incsnap.errors import ChunkFailed, ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.mysql.chunk_reader import TableLocked, stream_rows
from incsnap.mysql.session import QueryRefusedError, connect, query
from incsnap.mysql.watermarks import wait_until_executed
from incsnap.planner.key_ranges import RangePart, range_tail
from incsnap.snapshot.chunk_query import any_of
from incsnap.tables import TableId, TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.avro_reading import respelled
from incsnap.verify.proof import TopicKey
from incsnap.verify.record_reading import RecordForm, read_keys, read_rows
from incsnap.verify.sampling import ALL_KEYS, Sample

T = TypeVar("T")
#: The columns of the table side: the bytes of the record's key, the key without its schema, and the row.
TABLE_ROWS = pa.schema([("record_key", pa.binary()), ("key", pa.binary()), ("row", pa.binary())])
#: Seconds that the server waits for a task that takes no rows.
_PATIENCE_SECONDS = 3600
#: Seconds that a server may take until it has executed what a SELECT must see.
_LATE_SECONDS = 20.0
#: Seconds that a table may be locked.
LOCKED_SECONDS = 30.0
#: Keys of one SELECT.
_KEYS_TOGETHER = 2_000
#: What records show for the zero date of a TIMESTAMP that is NOT NULL.
_ZERO = '"1970-01-01T00:00:00Z"'


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """A table and its topic."""

    shape: TableShape  #: columns and key
    topic: str  #: topic of its records
    partitions: int  #: how many the topic has
    form: RecordForm  #: form of the topic's records


def encoded(format_: TableFormat, table: VerifiedTable, columns: Columns) -> RecordBatch:
    """Return the columns of TABLE_ROWS for rows that a SELECT has read."""
    read, form = format_.encoders[READ], table.form.of_table
    now_us = time.time_ns() // 1000
    source = SourceConstants("", 0, now_us)
    if read is not None and isinstance(read.value, JsonValues):
        # The row alone takes half of the time of an envelope.
        keys, rows = format_.keys(columns), read.value.rows(columns)
        if form.respelled:
            rows = respelled(rows, form.doubles)
    else:
        made = snapshot_records(format_, columns, source, {}, 1, now_us=now_us)
        if not made:
            return pa.RecordBatch.from_pylist([], TABLE_ROWS)
        keys = made[0].column("key")
        _, rows = read_rows(made[0].column("value"), form)
    return pa.RecordBatch.from_arrays([keys, read_keys(keys, form), rows], schema=TABLE_ROWS)


def read_range(
    settings: Settings,
    table: VerifiedTable,
    part: RangePart,
    *,
    behind: GtidSet | None = None,
    sample: Sample = ALL_KEYS,
    locked_seconds: float = LOCKED_SECONDS,
) -> Iterator[RecordBatch]:
    """Yield the rows of a range of the key, with the columns of TABLE_ROWS.

    `behind`: transactions that the server must have executed before the SELECT. `sample`: the keys that are read. Raise
    ServerUnreachable if the server has not executed them in time. Raise TableLocked if the table is locked for longer
    than `locked_seconds`.
    """
    format_ = format_of(settings, table.shape)
    with closing(connect(settings.mysql, read_timeout=float(_PATIENCE_SECONDS))) as connection:
        locked = max(1, round(locked_seconds))
        query(connection, f"SET SESSION net_write_timeout = {_PATIENCE_SECONDS}, lock_wait_timeout = {locked}")
        if behind is not None:
            try:
                wait_until_executed(connection, behind, _LATE_SECONDS)
            except ChunkFailed as error:
                raise ServerUnreachable(error.message, error.hint) from None
        if sample.is_all:
            yield from _encoded_rows(connection, format_, table, range_tail(table.shape, part))
        elif (condition := sample.condition(format_)) is not None:
            yield from _encoded_rows(connection, format_, table, range_tail(table.shape, part, condition))
        elif sorted(field.index for field in format_.view.key) == sorted(table.shape.key):
            yield from _sampled(connection, format_, table, part, sample)
        else:
            # No index may find rows by such keys.
            for batch in _encoded_rows(connection, format_, table, range_tail(table.shape, part)):
                yield batch.filter(pa.array(sample.has(batch.column("key"))))


def _sampled(
    connection: Connection[Any], format_: TableFormat, table: VerifiedTable, part: RangePart, sample: Sample
) -> Iterator[RecordBatch]:
    """Yield the rows of a sample in a range: the keys of the range are read alone, and then the chosen rows."""
    chosen: list[Array] = []
    key_columns = frozenset(field.index for field in format_.view.key)
    for columns in stream_rows(connection, table.shape, range_tail(table.shape, part), key_columns):
        keys = read_keys(format_.keys(columns), table.form.of_table)
        chosen.append(keys.filter(pa.array(sample.has(keys))))
    yield from _rows_of_keys(connection, format_, table, [key for keys in chosen for key in keys.to_pylist()])


def when_unlocked(table: TableId, seconds: float, allowance: Allowance, call: Callable[[], T]) -> T:
    """Return what `call` returns, which reads `table`. Call it again while the table is locked.

    Raise TableLocked if the table is locked for longer than `seconds`, and VerificationStopped.
    """
    deadline = time.monotonic() + seconds
    while True:
        allowance.go_on()
        try:
            return call()
        except (TableLocked, QueryRefusedError) as error:
            if isinstance(error, QueryRefusedError) and error.code != ER.LOCK_WAIT_TIMEOUT:
                raise
            if time.monotonic() >= deadline:
                raise TableLocked(TableLocked.text(table)) from None


def read_by_keys(
    connection: Connection[Any], settings: Settings, table: VerifiedTable, keys: Collection[TopicKey]
) -> list[tuple[TopicKey, bytes, int | None]]:
    """Return the rows of `keys`, each with its key and with the partition of the key (None: unknown).

    A key may have no row or, if it is no primary key, several. A row counts only if its record key has the same bytes:
    a case-insensitive index finds other rows too. Raise TableLocked if another session has locked the table.
    """
    format_ = format_of(settings, table.shape)
    rows: list[tuple[TopicKey, bytes, int | None]] = []
    # Keys in Avro or with the id of a schema have other bytes, and so another partition.
    is_json = table.form.key_avro is None and not table.form.key_frame
    for batch in _rows_of_keys(connection, format_, table, [key for _, key in keys]):
        homes = partition(batch.column("record_key"), table.partitions).tolist()
        columns = (batch.column(name).to_pylist() for name in ("key", "row"))
        rows += [
            ((table.topic, key), row, home if is_json else None) for key, row, home in zip(*columns, homes, strict=True)
        ]
    return rows


def _rows_of_keys(
    connection: Connection[Any], format_: TableFormat, table: VerifiedTable, keys: Collection[bytes]
) -> Iterator[RecordBatch]:
    """Yield the rows with one of these record keys, with the columns of TABLE_ROWS."""
    own = OwnKeys.of(format_)
    listed = [key for key in keys if own.has(key)]
    for begin in range(0, len(listed), _KEYS_TOGETHER):
        part = listed[begin : begin + _KEYS_TOGETHER]
        where = _where(format_, part)
        if not where:
            continue
        chosen = pa.array(part, pa.binary())
        for batch in _encoded_rows(connection, format_, table, f"FROM {table.shape.id.sql} WHERE {where}"):
            yield batch.filter(pc.is_in(batch.column("key"), chosen))


def _encoded_rows(
    connection: Connection[Any], format_: TableFormat, table: VerifiedTable, tail: str
) -> Iterator[RecordBatch]:
    for columns in stream_rows(connection, table.shape, tail, format_.view.needed):
        yield encoded(format_, table, columns)


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """The record keys of a table, as far as their names and a router's texts tell them from those of other tables."""

    names: frozenset[str]  #: names of the members that a key of the table has
    added: Mapping[str, str]  #: texts that a router adds to the table's keys, by name

    @classmethod
    def of(cls, format_: TableFormat) -> OwnKeys:
        """Return what tells the keys of the table of `format_`."""
        added = format_.added_to_keys
        return cls(frozenset({field.name for field in format_.view.key} | added.keys()), added)

    def has(self, key: bytes) -> bool:
        """Return True if `key` is a JSON object with these names and texts."""
        try:
            members = json.loads(key)
            is_own = all(members.get(name) == text for name, text in self.added.items())
            return bool(is_own and members.keys() == self.names)
        except (ValueError, AttributeError):
            return False

    def of_batch(self, batch: RecordBatch) -> RecordBatch:
        """Return the records of `batch` that can be of the table: all of them if no router adds a text to its keys."""
        if not self.added:
            return batch
        return batch.filter(pa.array([key is not None and self.has(key) for key in batch.column("key").to_pylist()]))


def owned_keys(settings: Settings, table: VerifiedTable, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of `keys` that can be the record key of a row of the table: written again, they have the same
    bytes."""
    format_ = format_of(settings, table.shape)
    own = OwnKeys.of(format_)
    named = [key for key in keys if own.has(key)]
    owned: set[bytes] = set()
    for begin in range(0, len(named), _KEYS_TOGETHER):
        for _, listed in readable(format_, named[begin : begin + _KEYS_TOGETHER]):
            owned.update(read_keys(listed.records, table.form.of_table).to_pylist())
    return owned.intersection(named)


def readable(format_: TableFormat, keys: Sequence[bytes]) -> Iterator[tuple[Sequence[bytes], ListedKeys]]:
    """Yield the keys that a row can have, in parts of `keys`, each with its list.

    One key that no row can have would let the whole list be refused.
    """
    try:
        yield keys, ListedKeys.read(format_, [read_key(key) for key in keys])
    except (KeyRefused, ValueError):
        if len(keys) > 1:
            half = len(keys) // 2
            yield from readable(format_, keys[:half])
            yield from readable(format_, keys[half:])


def _where(format_: TableFormat, keys: Sequence[bytes]) -> str:
    """Return the SQL condition for rows of these keys; "" if no row can have one of them."""
    for field in format_.view.key:
        if field.column.type == "timestamp" and field.column.fraction:
            # Records show the zero date as the epoch without a fraction, and all other values with one.
            zero = f"{json.dumps(field.name, ensure_ascii=False)}:{_ZERO}".encode()
            whole = zero.removesuffix(b'Z"') + b'.%sZ"' % (b"0" * field.column.fraction)
            keys = [key.replace(zero, whole) for key in keys]
    listed = [key for _, each in readable(format_, keys) for key in each.sql]
    return any_of([field.column for field in format_.view.key], listed) if listed else ""
