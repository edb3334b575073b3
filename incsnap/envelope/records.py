"""Kafka records of row changes and of snapshot rows, as Arrow batches: the end of the columnar path.

Transforms come last. What rows are told apart by, and which bucket a record belongs to, are of the table and its key
before them; so a record that a transform drops, or sends elsewhere, overtakes the rows of windows like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import MAX_BYTES
from incsnap.envelope.added_fields import HEADERS, header_maps, read_values
from incsnap.envelope.cells import Pattern
from incsnap.envelope.format import OPERATIONS
from incsnap.envelope.identity import EXACT, identifying
from incsnap.envelope.json_rows import json_objects, json_pattern, rows_of
from incsnap.envelope.oversized import with_row_keys
from incsnap.envelope.partitioner import bucket_of, partition
from incsnap.envelope.source_block import SourceConstants
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.table_view import Columns
from incsnap.envelope.written import READ, Written

#: ``value`` null: a tombstone. ``old_key`` and ``new_key``: of the headers __debezium.oldkey and __debezium.newkey,
#: or null. ``identity``: what de-duplication of window rows goes by, null where that is the key; ``old_identity``:
#: of the row before an update that changed it. ``partition`` -1: a transform drops the record, it only overtakes rows.
#: Batches of records to which a transform adds headers have one column more (``HEADERS``), those whose rows say where
#: they go one to three more again (``OWN``). For a DataFrame ``value`` may be a struct of columns (``frame_format``).
RECORDS = pa.schema(
    [
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("old_key", pa.binary()),
        ("new_key", pa.binary()),
        ("identity", pa.binary()),
        ("old_identity", pa.binary()),
    ]
)

#: What a DataFrame tells of a record beside its value, one column more of ``EnvelopeSettings.marked`` records. ``op``:
#: index into ``MARKED_OPERATIONS``, null for a tombstone; ``ts_us`` and ``gtid``: of its source; ``event``: number of
#: its event in the batch, -1 for rows read by SELECT; ``row``: number of the record in its event.
MARKS = pa.struct(
    [
        ("op", pa.int8()),
        ("ts_us", pa.int64()),
        ("gtid", pa.string()),
        ("event", pa.int64()),
        ("row", pa.int64()),
    ]
)
MARKED_OPERATIONS = (*OPERATIONS, "r")
_MARKS_COLUMN = pa.field("marks", MARKS)
#: What a record may have of its own, in this order: its topic, of which it goes to the partition of its key; its time
#: (milliseconds since 1970); its partition, null for that of its key.
OWN = (pa.field("topic", pa.string()), pa.field("timestamp", pa.int64()), pa.field("place", pa.int32()))

#: Raw bytes of rows whose values are encoded at once: that takes some ten times as many for a moment.
_ENCODED_AT_ONCE = 8 << 20


_VALUE = RECORDS.get_field_index("value")


class RecordsTooLarge(Exception):
    """The records of more than one row take more bytes than they may."""


def overtaken_by(records: Any) -> Any:
    """Identities (``pa.binary()``) of the rows that the records of RECORDS are about."""
    now = pc.coalesce(records.column("identity"), records.column("key"))
    return pa.concat_arrays([now, records.column("old_identity").drop_null()])


def shares_identity(records: Any) -> bool:
    """Are two of the rows of one identity, by which they cannot be told apart?"""
    return len(pc.unique(overtaken_by(records))) < len(records)


def snapshot_records(
    format_: TableFormat,
    columns: Columns,
    source: SourceConstants,
    partitions: Mapping[str, int],
    buckets: int,
    *,
    now_us: int,
    most: int = MAX_BYTES,
) -> dict[int, Any]:
    """Records of a chunk's rows, a batch of RECORDS for each bucket that has any, rows in the chunk's order.
    ``partitions``: how many each topic has. Raises ``RecordsTooLarge`` as soon as the values of more than one row take
    more than ``most`` bytes.

    The raw columns are split, not the encoded values: those are five times as many bytes.
    """
    n, written = rows_of(columns), format_.written[READ]
    if n == 0 or written is None:
        return {}
    own = format_.keys(columns)
    home = format_.home(own, partitions)
    owners = bucket_of(format_.topic, home, buckets)
    first, counts = 0, np.bincount(owners)
    if len(counts) - 1 != int(owners[0]) or int(counts[-1]) != n:
        order = pa.array(np.argsort(owners, kind="stable"))
        own, home = own.take(order), home[order.to_numpy()]
        columns = [None if column is None else column.take(order) for column in columns]
    keys, places = own, home
    if not format_.alike:
        keys = own if written.key is None else written.key.keys(columns)
        places = partition(keys, 1 if written.event is not None else partitions[written.form.topic])
    none = pa.nulls(n, pa.binary())
    identity = identities_of(format_, columns, own)
    arrays = [
        pa.array(places, pa.int32()),
        keys,
        _reads(written, columns, n, source, now_us, most),
        none,
        none,
        none if identity is None else identity,
        none,
    ]
    marks = _read_marks(source, n) if format_.envelope.marked else None
    if written.event is not None:
        event = written.event
        batch = batch_of(arrays, event.headers(columns), event.own(columns, now_us), marks)
    else:
        values = read_values(written.form.headers, source, now_us, format_.view.shape.id, format_.envelope)
        own_topics = () if written.topics is None else (written.topics.reads(columns),)
        batch = batch_of(arrays, header_maps(written.form.headers, values, n), own_topics, marks)
        batch = with_row_keys(batch, format_.view, columns, np.arange(n))
    by_bucket = {}
    for bucket in np.flatnonzero(counts).tolist():
        by_bucket[bucket] = batch.slice(first, int(counts[bucket]))
        first += int(counts[bucket])
    return by_bucket


def _reads(written: Written, columns: Columns, n: int, source: SourceConstants, now_us: int, most: int) -> Any:
    if written.value is None:
        return pa.repeat(pa.scalar(written.nothing, pa.binary()), n)
    raw = sum(column.nbytes for column in columns if column is not None)
    step = max(1, n * _ENCODED_AT_ONCE // max(raw, 1))
    values: list[Any] = []
    size = 0
    for begin in range(0, n, step):
        rows = [None if column is None else column.slice(begin, step) for column in columns]
        values.append(written.value.reads(rows, source, now_us))
        size += values[-1].nbytes
        if size > most and n > 1:
            raise RecordsTooLarge(f"its records take more than {most} bytes")
    return values[0] if len(values) == 1 else pa.concat_arrays(values)


def identities_of(format_: TableFormat, columns: Columns, keys: Any) -> Any:
    """Return the columns of ``view.identity`` of each row as JSON; None where the record's key serves. ``keys``: before
    transforms."""
    view = format_.view
    if format_.key_identifies or not view.identity:
        return None if format_.alike or not view.key else keys
    return json_objects(identifying(view), columns, EXACT)


def identity_pattern(format_: TableFormat) -> Pattern | None:
    """Return what ``identities_of`` makes the identities of a table of that has one form of keys; None where these
    serve."""
    serves = format_.key_identifies or not format_.view.identity
    return None if serves else json_pattern(identifying(format_.view), EXACT)


def _read_marks(source: SourceConstants, n: int) -> Any:
    marks = {"op": MARKED_OPERATIONS.index("r"), "ts_us": source.ts_us, "gtid": source.gtid, "event": -1, "row": 0}
    return pa.repeat(pa.scalar(marks, MARKS), n)


def batch_of(arrays: Sequence[Any], headers: Any, own: Sequence[Any] = (), marks: Any = None) -> Any:
    """``arrays``: in the order of RECORDS. Columns behind them, None for none: ``headers``, the first of OWN, and
    ``marks``."""
    fields = [*RECORDS.set(_VALUE, pa.field("value", arrays[_VALUE].type))]
    more = []
    for field, values in ((HEADERS, headers), *zip(OWN, own, strict=False), (_MARKS_COLUMN, marks)):
        if values is not None:
            fields.append(field)
            more.append(values)
    return pa.RecordBatch.from_arrays([*arrays, *more], schema=pa.schema(fields))
