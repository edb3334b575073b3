"""The two sides as columns of fixed width: a hash of each key, a hash of each row, and the places of events.

A block has the rows of one range of a table, or the records of one part of a topic, sorted by the hash of the key.
Records of one key stay in the order of their offsets. The bytes of keys are there for the few that differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, RecordBatch
from incsnap.columns.hashing import hash64, sorting
from incsnap.verify.proof import RowPlace
from incsnap.verify.record_reading import ROW, UNREADABLE, Reading

#: The columns of a table's block.
TABLE_BLOCK = pa.schema([("key", pa.binary()), ("key_hash", pa.uint64()), ("row_hash", pa.uint64())])
#: The columns of a topic's block. `row_hash`: 0 for a record without a row. `file`: number of the binlog file, -1 for a
#: record without a place. `is_snapshot`: whether a snapshot has read the row, so the place is that of its beginning.
TOPIC_BLOCK = pa.schema(
    [
        *TABLE_BLOCK,
        ("offset", pa.int64()),
        ("time", pa.int64()),
        ("state", pa.int8()),
        ("is_snapshot", pa.bool_()),
        ("file", pa.int32()),
        ("pos", pa.int64()),
        ("row_number", pa.int64()),
    ]
)
_FACTS = b"facts"


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """The counts and places of a block."""

    count: int = 0  #: rows, or records with a key
    unreadable: int = 0  #: records that are neither rows nor deletions
    last: RowPlace | None = None  #: place of the last record of an event
    snapshot: RowPlace | None = None  #: highest place of a row of a snapshot


def table_columns(keys: BytesArray, rows: BytesArray, seed: int) -> RecordBatch:
    """Return the columns of TABLE_BLOCK for rows, in their order."""
    hashes = [pa.array(hash64(column, seed)) for column in (keys, rows)]
    return pa.RecordBatch.from_arrays([keys, *hashes], schema=TABLE_BLOCK)


def topic_columns(
    keys: BytesArray, offsets: npt.NDArray[np.int64], times: npt.NDArray[np.int64], reading: Reading, seed: int
) -> RecordBatch:
    """Return the columns of TOPIC_BLOCK for records, in their order."""
    assert reading.places is not None
    is_row = reading.state == ROW
    rows = hash64(reading.rows, seed)
    rows[~is_row] = 0
    file, pos, row_number = reading.places
    arrays = [
        keys,
        pa.array(hash64(keys, seed)),
        pa.array(rows),
        pa.array(offsets),
        pa.array(times),
        pa.array(reading.state),
        pa.array(reading.is_snapshot),
        pa.array(_file_numbers(file)),
        pos.fill_null(-1),
        row_number.fill_null(-1),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=TOPIC_BLOCK)


def _file_numbers(files: Any) -> npt.NDArray[np.int32]:
    """Return the number at the end of each name of a binlog file, -1 for null."""
    named = files.dictionary_encode()
    numbers = np.array([*(int(name.rpartition(".")[2]) for name in named.dictionary.to_pylist()), -1], np.int32)
    return np.asarray(numbers[named.indices.fill_null(len(numbers) - 1).to_numpy()])


def table_block(batches: Iterable[RecordBatch]) -> bytes:
    """Return the block of the columns of TABLE_BLOCK."""
    table = pa.Table.from_batches(batches, TABLE_BLOCK).combine_chunks()
    return sorted_block(table, BlockFacts(len(table)))


def topic_block(batches: Iterable[RecordBatch]) -> bytes:
    """Return the block of the columns of TOPIC_BLOCK, which are in the order of the partition."""
    table = pa.Table.from_batches(batches, TOPIC_BLOCK).combine_chunks()
    file, pos, row = (table.column(name).to_numpy() for name in ("file", "pos", "row_number"))
    is_read = table.column("is_snapshot").to_numpy()
    has_place = file >= 0
    events = np.flatnonzero(has_place & ~is_read)
    read = np.flatnonzero(has_place & is_read)
    last = snapshot = None
    if len(events):
        last = _place(file, pos, row, int(events[-1]))
    if len(read):
        snapshot = _place(file, pos, row, int(read[np.lexsort((row[read], pos[read], file[read]))[-1]]))
    unreadable = int((table.column("state").to_numpy() == UNREADABLE).sum())
    if table.column("key").null_count:
        table = table.filter(table.column("key").is_valid())
    return sorted_block(table, BlockFacts(len(table), unreadable, last, snapshot))


def _place(file: Any, pos: Any, row: Any, at: int) -> RowPlace:
    return RowPlace(int(file[at]), int(pos[at]), int(row[at]))


def sorted_block(table: pa.Table, facts: BlockFacts) -> bytes:
    """Return the block of columns that begin with `key` and have `key_hash`. Lines of one key stay in their order."""
    order = sorting(table.column("key_hash").to_numpy())
    table = table.take(pa.array(order)).combine_chunks()
    given = [facts.count, facts.unreadable, facts.last, facts.snapshot]
    table = table.replace_schema_metadata({_FACTS: json.dumps(given)})
    return stream_of(table.to_batches(), table.schema)


def stream_of(batches: Iterable[RecordBatch], schema: Any = None) -> bytes:
    """Return the batches as a stream of Arrow. `schema`: needed if there may be no batch."""
    sink = pa.BufferOutputStream()
    writer = None
    for batch in batches:
        writer = writer or pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
    writer = writer or pa.ipc.new_stream(sink, schema or pa.schema([]))
    writer.close()
    return bytes(sink.getvalue())


def read_block(source: Any) -> tuple[RecordBatch, BlockFacts]:
    """Return the columns and the facts of a block. Nothing is copied from a memory map or a buffer."""
    with pa.ipc.open_stream(source) as reader:
        schema = reader.schema
        batches = list(reader)
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
    count, unreadable, last, snapshot = json.loads(schema.metadata[_FACTS])
    places = (None if each is None else RowPlace(*each) for each in (last, snapshot))
    return batch, BlockFacts(count, unreadable, *places)
