"""Kafka records of the rows of a chunk, which a SELECT has read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array, Columns, RecordBatch, StructArray
from incsnap.columns.variable import MAX_BYTES
from incsnap.envelope.added_fields import header_maps, read_values
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.oversized import with_row_keys
from incsnap.envelope.partitioner import bucket_of, partition
from incsnap.envelope.record_encoder import READ, RecordEncoder
from incsnap.envelope.records import MARKED_OPERATIONS, MARKS, batch_of
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_format import TableFormat

#: Raw bytes of the rows that are encoded at once, 8 MiB: encoding takes about ten times as much memory for a moment.
_ENCODED_AT_ONCE = 8 << 20


class RecordsTooLarge(Exception):
    """An error: the records of more than one row take more bytes than allowed."""


def snapshot_records(
    format_: TableFormat,
    columns: Columns,
    source: SourceConstants,
    partitions: Mapping[str, int],
    buckets: int,
    *,
    now_us: int,
    most: int = MAX_BYTES,
) -> dict[int, RecordBatch]:
    """Return the records of a chunk's rows: a batch of RECORDS for each bucket that has any, rows in the chunk's order.

    `partitions`: how many partitions each topic has. `buckets`: how many buckets there are. `now_us`: microseconds
    since 1970. Raise RecordsTooLarge as soon as the values of more than one row take more than `most` bytes.

    The raw columns are split by bucket, not the encoded values, which have five times as many bytes.
    """
    n, encoder = rows_of(columns), format_.encoders[READ]
    if n == 0 or encoder is None:
        return {}
    if encoder.kept is not None:
        # No event can discard a row that is not sent, so such a row need not be kept.
        mask = encoder.kept.reads(columns, n)
        columns = [None if column is None else column.filter(pa.array(mask)) for column in columns]
        n = int(mask.sum())
        if n == 0:
            return {}
    own = format_.keys(columns)
    home = format_.bucket_partitions(own, partitions)
    owners = bucket_of(format_.topic, home, buckets)
    first, counts = 0, np.bincount(owners)
    if len(counts) - 1 != int(owners[0]) or int(counts[-1]) != n:
        order = pa.array(np.argsort(owners, kind="stable"))
        own, home = own.take(order), home[order.to_numpy()]
        columns = [None if column is None else column.take(order) for column in columns]
    keys, places = own, home
    if not format_.uniform:
        keys = own if encoder.key is None else encoder.key.keys(columns)
        places = partition(keys, 1 if encoder.event is not None else partitions[encoder.spec.topic])
    none = pa.nulls(n, pa.binary())
    identity = format_.identities(columns, own)
    arrays = [
        pa.array(places, pa.int32()),
        keys,
        _reads(encoder, columns, n, source, now_us, most),
        none,
        none,
        none if identity is None else identity,
        none,
    ]
    marks = _read_marks(source, n) if format_.envelope.marked else None
    if encoder.event is not None:
        event = encoder.event
        batch = batch_of(arrays, event.headers(columns), event.own(columns, now_us), marks)
    else:
        table, spec = format_.view.shape.id, encoder.spec
        values = read_values(spec.headers, source, now_us, table, format_.envelope, spec.read_op)
        own_topics = () if encoder.topics is None else (encoder.topics.reads(columns),)
        batch = batch_of(arrays, header_maps(spec.headers, values, n), own_topics, marks)
        batch = with_row_keys(batch, format_.view, columns, np.arange(n))
    by_bucket = {}
    for bucket in np.flatnonzero(counts).tolist():
        by_bucket[bucket] = batch.slice(first, int(counts[bucket]))
        first += int(counts[bucket])
    return by_bucket


def _reads(encoder: RecordEncoder, columns: Columns, n: int, source: SourceConstants, now_us: int, most: int) -> Array:
    if encoder.value is None:
        return pa.repeat(pa.scalar(encoder.null_value, pa.binary()), n)
    raw = sum(column.nbytes for column in columns if column is not None)
    step = max(1, n * _ENCODED_AT_ONCE // max(raw, 1))
    values: list[Array] = []
    size = 0
    for begin in range(0, n, step):
        rows = [None if column is None else column.slice(begin, step) for column in columns]
        values.append(encoder.value.reads(rows, source, now_us))
        size += values[-1].nbytes
        if size > most and n > 1:
            raise RecordsTooLarge(f"its records take more than {most} bytes")
    return values[0] if len(values) == 1 else pa.concat_arrays(values)


def _read_marks(source: SourceConstants, n: int) -> StructArray:
    marks = {"op": MARKED_OPERATIONS.index("r"), "ts_us": source.ts_us, "gtid": source.gtid, "event": -1, "row": 0}
    return pa.repeat(pa.scalar(marks, MARKS), n)
