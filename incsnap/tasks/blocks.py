"""The rows of the job's one shuffle: each Spark row is a block of many records, or an order to the sink of one bucket.

A bucket is one part of all records, chosen by their key; one sink task sends a bucket's records of a batch. The
functions of this module make block rows, and read blocks. A block of many tables has its records table by table. A
*run* is the stretch of a block's records that belong to one table and topic.

    kind      block                                                         made with
    events    Arrow IPC stream of `envelope.records.RECORDS`, one table     `events`
    tables    Arrow IPC stream of `RECORDS`, many tables, table by table    `tables`
    release   JSON: parts of a window to send now                           `release`
    hold      JSON: tables with held windows, whose keys are written down   `held_tables`
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: The columns of a block's row, for Spark.
SCHEMA = (
    "batch long, digest string, place string, bucket int, ord long, kind string, topic string, tbl string, block binary"
)
#: The columns of a block's row, for Arrow.
#:
#: `digest` tells the batch from another batch with its number. `place` is the batch's beginning and end
#: (`snapshot.delivered_place`). `ord` orders the blocks of a bucket. `tbl` is `str(TableId)`, or "" for a block without
#: one table.
ARROW = pa.schema(
    [
        ("batch", pa.int64()),
        ("digest", pa.string()),
        ("place", pa.string()),
        ("bucket", pa.int32()),
        ("ord", pa.int64()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("tbl", pa.string()),
        ("block", pa.binary()),
    ]
)
EVENTS, TABLES, RELEASE, HELD_TABLES = "events", "tables", "release", "hold"
#: Key of the schema's metadata under which a block of many tables names its runs.
_RUNS = b"incsnap.tables"

#: One row of `SCHEMA` without `digest` and `place`, which all rows of a batch share.
BlockRow = tuple[int, int, int, str, str, str, bytes]


@dataclass(frozen=True, slots=True)
class ReleaseOrder:
    """An order to a bucket: send its rows of parts of a window, without rows whose keys an event has overtaken."""

    file: str  #: the window's file, as its manifest names it
    table: str  #: the table, as `str(TableId)`
    topic: str  #: topic of the rows
    #: Batches between the window's batch and this one: from the first on, without the last. The sinks of these batches
    #: wrote down the keys that have overtaken rows (`held_tables`).
    batches: tuple[int, int] = (0, 0)
    parts: tuple[int, int] = (0, 1)  #: the window's parts to send: from the first on, without the last


def events(batch: int, bucket: int, order: int, topic: str, table: str, records: pa.RecordBatch) -> BlockRow:
    """Return the block row of change records of one table, which are in binlog order.

    `order` places the row among those of its bucket. `topic` and `table` are those of the records; `table` is "" for
    records of no table (`control`).
    """
    return batch, bucket, order, EVENTS, topic, table, encode(records)


class Run(NamedTuple):
    """A stretch of a block: records of one table and topic that follow each other."""

    topic: str
    table: str  #: as `str(TableId)`; "" for records of no table
    records: int  #: how many records


def tables(batch: int, bucket: int, order: int, runs: Sequence[Run], records: pa.RecordBatch) -> BlockRow:
    """Return a block of change records of many tables: table by table, and in binlog order within a table."""
    named = records.replace_schema_metadata({_RUNS: json.dumps(runs)})
    return batch, bucket, order, TABLES, "", "", encode(named)


def runs_of(kind: str, topic: str, table: str, records: pa.RecordBatch) -> list[Run]:
    """Return the runs of a block's records, in order: one for a block of one table, one per table for a block of many.

    `kind`, `topic` and `table` are columns of the block's row.
    """
    if kind == EVENTS:
        return [Run(topic, table, len(records))]
    return [Run(*run) for run in json.loads(records.schema.metadata[_RUNS])]


def by_run(records: pa.RecordBatch, runs: Sequence[Run]) -> Iterator[tuple[Run, pa.RecordBatch]]:
    """Yield for each run the pair (run, the records of the run)."""
    begin = 0
    for run in runs:
        yield run, records.slice(begin, run.records)
        begin += run.records


def control(batch: int, bucket: int, order: int, topic: str, records: pa.RecordBatch) -> BlockRow:
    """Return a block of control records, which are of no table: notifications, heartbeats, schema changes.

    They are never de-duplicated.
    """
    return events(batch, bucket, order, topic, "", records)


def release(batch: int, bucket: int, order: int, what: ReleaseOrder) -> BlockRow:
    """Return the block that orders a release. Send the block to each bucket that may have rows of the window.

    A bucket without rows of the window does nothing.
    """
    return batch, bucket, order, RELEASE, what.topic, what.table, json.dumps(asdict(what)).encode()


def held_tables(batch: int, bucket: int, order: int, tables: Sequence[str]) -> BlockRow:
    """Return the block that names tables with held windows: a sink then writes down the keys of their events.

    Send the block to **every** bucket, in each batch that leaves windows of `tables` unreleased. A later release reads
    the keys of every bucket.
    """
    return batch, bucket, order, HELD_TABLES, "", "", json.dumps({"tables": list(tables)}).encode()


def to_arrow(rows: Iterable[BlockRow], digest: str, place: str = "") -> pa.RecordBatch:
    """Return block rows as the record batch that a source task yields. `digest`, `place`: of the batch."""
    columns = list(zip(*((batch, digest, place, *rest) for batch, *rest in rows), strict=True)) or [()] * len(ARROW)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, ARROW, strict=True)], schema=ARROW)


#: LZ4 shrinks JSON to a quarter. 16 MB of binlog become 77 MB of JSON, which cross four process borders (worker, JVM,
#: shuffle, JVM, worker) at about 100 MB/s each. To compress them takes 90 ms, and Spark's own compression is switched
#: off instead. With Arrow's threads a block of a few rows takes 0.24 ms, without threads 0.06 ms. A large block is
#: nearly all values, which are one column and so one thread either way.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_DECOMPRESSED = pa.ipc.IpcReadOptions(use_threads=False)


def encode(records: pa.RecordBatch) -> bytes:
    """Return the records as an Arrow IPC stream, compressed by LZ4."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema, options=_COMPRESSED) as writer:
        writer.write_batch(records)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def decode(block: Any) -> list[pa.RecordBatch]:
    """Return the record batches of a stream that `encode` wrote, without empty ones."""
    with pa.ipc.open_stream(block, options=_DECOMPRESSED) as reader:
        return [batch for batch in reader if batch.num_rows]


def kept(runs: Sequence[Run], records: pa.RecordBatch, keep: Any) -> tuple[list[Run], pa.RecordBatch]:
    """Return the records for which the NumPy mask `keep` is true, and the runs of these records.

    A run that keeps no record is left out.
    """
    before = np.append(0, np.cumsum(keep))
    borders = np.cumsum([0, *(run.records for run in runs)])
    counts = np.diff(before[borders]).tolist()
    left = [run._replace(records=count) for run, count in zip(runs, counts, strict=True) if count]
    return left, records.filter(pa.array(keep))


def record_bytes(records: pa.RecordBatch) -> int:
    """Return the bytes of all keys and values.

    For a DataFrame, whose values are columns, count all bytes of the columns.
    """
    value = records.column("value")
    values = pc.sum(pc.binary_length(value)).as_py() or 0 if pa.types.is_binary(value.type) else value.nbytes
    return int(values + (pc.sum(pc.binary_length(records.column("key"))).as_py() or 0))


def decode_release(block: bytes) -> ReleaseOrder:
    """Return the order that `release` encoded."""
    order = json.loads(block)
    return ReleaseOrder(order["file"], order["table"], order["topic"], tuple(order["batches"]), tuple(order["parts"]))


def decode_held_tables(block: bytes) -> tuple[str, ...]:
    """Return the tables that `held_tables` encoded."""
    return tuple(json.loads(block)["tables"])
