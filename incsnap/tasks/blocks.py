"""The rows of the one shuffle: a Spark row is a block of many records, or an order to the sink of one bucket.

kind      block                                                    made with
events    Arrow IPC stream of ``envelope.records.RECORDS``         ``events``
tables    the same, of many tables, each table's together          ``tables``
notes     the same, for a notification topic: not de-duplicated    ``notes``
release   which window to emit now                                 ``release``
hold      tables with held windows: keys of their events are kept  ``held_tables``
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

#: What Spark is told.
SCHEMA = (
    "batch long, digest string, place string, bucket int, ord long, kind string, topic string, tbl string, block binary"
)
#: The same for Arrow. ``digest`` tells the batch from another one of its number; ``place`` is its beginning and end
#: (``snapshot.delivered_place``). ``ord`` orders the blocks of a
#: bucket; ``tbl`` is ``str(TableId)``, "" where there is none.
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
EVENTS, TABLES, NOTES, RELEASE, HELD_TABLES = "events", "tables", "notes", "release", "hold"
#: Of the schema of a block of many tables: where its tables are named.
_RUNS = b"incsnap.tables"

#: One row of ``SCHEMA`` but for digest and place, which all rows of a batch share.
BlockRow = tuple[int, int, int, str, str, str, bytes]


@dataclass(frozen=True, slots=True)
class ReleaseOrder:
    """Emit the bucket's rows of parts of a window, less the keys that an event has overtaken."""

    #: The window's file, as its manifest names it.
    file: str
    table: str
    topic: str
    #: Batches between the window's and this one, from the first on and without the last: the keys they have overtaken
    #: were written down then (``held_tables``).
    batches: tuple[int, int] = (0, 0)
    #: The window's parts to emit, from the first on and without the last.
    parts: tuple[int, int] = (0, 1)


def events(batch: int, bucket: int, order: int, topic: str, table: str, records: pa.RecordBatch) -> BlockRow:
    """Change records of one table, in binlog order."""
    return batch, bucket, order, EVENTS, topic, table, encode(records)


class Run(NamedTuple):
    """Records of one table that stand together in a block."""

    topic: str
    table: str
    records: int


def tables(batch: int, bucket: int, order: int, runs: Sequence[Run], records: pa.RecordBatch) -> BlockRow:
    """Change records of many tables, one table's after the other's, each in binlog order."""
    named = records.replace_schema_metadata({_RUNS: json.dumps(runs)})
    return batch, bucket, order, TABLES, "", "", encode(named)


def runs_of(records: pa.RecordBatch) -> list[Run]:
    """The runs of the records that ``tables`` wrote, in order."""
    return [Run(*run) for run in json.loads(records.schema.metadata[_RUNS])]


def by_run(records: pa.RecordBatch, runs: Sequence[Run]) -> Iterator[tuple[Run, pa.RecordBatch]]:
    begin = 0
    for run in runs:
        yield run, records.slice(begin, run.records)
        begin += run.records


def notes(batch: int, bucket: int, order: int, topic: str, records: pa.RecordBatch) -> BlockRow:
    return batch, bucket, order, NOTES, topic, "", encode(records)


def release(batch: int, bucket: int, order: int, what: ReleaseOrder) -> BlockRow:
    """To be given to every bucket that the window may have rows in; a bucket without rows does nothing."""
    return batch, bucket, order, RELEASE, what.topic, what.table, json.dumps(asdict(what)).encode()


def held_tables(batch: int, bucket: int, order: int, tables: Sequence[str]) -> BlockRow:
    """To be given to **every** bucket while windows of ``tables`` stay unreleased: a release asks each for its keys."""
    return batch, bucket, order, HELD_TABLES, "", "", json.dumps({"tables": list(tables)}).encode()


def to_arrow(rows: Iterable[BlockRow], digest: str, place: str = "") -> pa.RecordBatch:
    """Return what a source task may yield, of the batch with that digest and place."""
    columns = list(zip(*((batch, digest, place, *rest) for batch, *rest in rows), strict=True)) or [()] * len(ARROW)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, ARROW, strict=True)], schema=ARROW)


#: JSON shrinks to a quarter. 16 MB of binlog give 77 MB of it, which cross four process borders (worker, JVM,
#: shuffle, JVM, worker) at some 100 MB/s each; compressing them takes 90 ms, and Spark's own compression is
#: switched off for it. By Arrow's threads a block of one table's few rows would take 0.24 ms, and is 0.06 so; a large
#: one is nearly all values, which are one column and one thread's either way.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_DECOMPRESSED = pa.ipc.IpcReadOptions(use_threads=False)


def encode(records: pa.RecordBatch) -> bytes:
    """An Arrow IPC stream, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema, options=_COMPRESSED) as writer:
        writer.write_batch(records)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def decode(block: Any) -> list[pa.RecordBatch]:
    """The record batches that ``encode`` wrote."""
    with pa.ipc.open_stream(block, options=_DECOMPRESSED) as reader:
        return [batch for batch in reader if batch.num_rows]


def record_bytes(records: pa.RecordBatch) -> int:
    """Bytes of all keys and values; of values that are columns, all that these take."""
    value = records.column("value")
    values = pc.sum(pc.binary_length(value)).as_py() or 0 if pa.types.is_binary(value.type) else value.nbytes
    return int(values + (pc.sum(pc.binary_length(records.column("key"))).as_py() or 0))


def decode_release(block: bytes) -> ReleaseOrder:
    order = json.loads(block)
    return ReleaseOrder(order["file"], order["table"], order["topic"], tuple(order["batches"]), tuple(order["parts"]))


def decode_held_tables(block: bytes) -> tuple[str, ...]:
    return tuple(json.loads(block)["tables"])
