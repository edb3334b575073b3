"""Records of changes of many tables that have a few rows each, built as one batch: each step once for all of them.

Only for the usual form of records: the envelope, without headers or another topic for some of them. All others, and
tables in which a row moved to another key, are written one by one (``change_records``), which gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.variable import Ints, take
from incsnap.envelope.avro_format import AvroKeys, AvroValues
from incsnap.envelope.cells import Pattern
from incsnap.envelope.change_records import with_gaps
from incsnap.envelope.format import Changes, ManyTables
from incsnap.envelope.json_format import JsonKeys, JsonValues
from incsnap.envelope.partitioner import crc, owners, partition
from incsnap.envelope.record_images import DELETE, changed_rows, moves, record_images
from incsnap.envelope.records import batch_of
from incsnap.envelope.row_changes import told
from incsnap.envelope.source_block import SourceColumns
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.written import CHANGES


@dataclass(frozen=True, slots=True, eq=False)
class RowPatterns:
    """How rows and keys of a table are put together. ``key``: None for a table without one; ``record_bytes``: of a
    record without its row, about."""

    format: TableFormat
    topic: str
    values: JsonValues | AvroValues
    key: Pattern | None
    row: Pattern
    record_bytes: int


def row_patterns(format_: TableFormat) -> RowPatterns | None:
    """None where its records are not of the usual form."""
    envelope = format_.envelope
    *changes, tombstone = (format_.written[kind] for kind in CHANGES[:4])
    one = changes[0]
    plain = (
        format_.alike
        and not format_.updates
        and not envelope.marked
        and not envelope.skip_unchanged
        and (format_.view.key_is_identity or not format_.view.identity)
    )
    if not plain or one is None or any(each is not one for each in changes):
        return None
    if tombstone is None or tombstone.has_bytes or tombstone.form.headers or one.form.headers:
        return None
    values, key = one.value, one.key
    if not isinstance(values, JsonValues | AvroValues) or not isinstance(key, JsonKeys | AvroKeys | None):
        return None
    return RowPatterns(
        format_, one.form.topic, values, None if key is None else key.pattern(), values.pattern(), values.constant_bytes
    )


@dataclass(frozen=True, slots=True, eq=False)
class RowsOfTables:
    """Row images, table by table, each table's in binlog order. ``keys``, ``rows``: of each image (``pa.binary()``);
    ``image_event``: its event; ``kinds``, ``of_event``: of each event its type and its table."""

    tables: Sequence[RowPatterns]
    keys: Any
    rows: Any
    image_event: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint8]
    of_event: Ints


@dataclass(frozen=True, slots=True, eq=False)
class RecordsOfTables:
    """Records (RECORDS), table by table, ``table`` of each; ``bucket``: where it goes. ``moved``: numbers of tables of
    which there are none, because a row of them moved to another key."""

    records: Any
    table: Ints
    bucket: npt.NDArray[np.int32]
    moved: frozenset[int]


def records_of_tables(
    what: RowsOfTables, source: SourceColumns, partitions: Mapping[str, int], buckets: int, *, now_us: int
) -> RecordsOfTables:
    """``source``: of each event; the other arguments as ``change_records`` has them."""
    formats = [table.format for table in what.tables]
    envelope = formats[0].envelope
    changes = told(changed_rows(formats[0].view.shape.id, what.image_event, what.kinds), envelope)
    of_change = what.of_event[what.image_event[changes.image]]
    moved = np.unique(of_change[moves(changes, what.keys)])
    if len(moved):
        changes = changes.only(~np.isin(of_change, moved))
    out = record_images(changes, what.keys, tombstones=envelope.tombstones)
    event = what.image_event[changes.image[out.change]].astype(np.int64)
    table, keys, has = what.of_event[event], take(what.keys, out.key), out.has_value
    counts = np.array([partitions.get(each.topic, 1) for each in formats], np.uint32)
    places = partition(keys, counts[table])
    told_changes = Changes(
        before=out.before[has],
        after=out.after[has],
        event=event[has],
        row=changes.row[out.change[has]],
        op=np.minimum(out.op[has], np.uint8(DELETE)),
        source=source,
        order=None,
        now_us=now_us,
    )
    none = pa.nulls(len(out), pa.binary())
    arrays = [
        pa.array(places, pa.int32()),
        keys,
        with_gaps(_values(what, ManyTables(what.of_event, table[has]), told_changes), has),
        *[none] * 4,
    ]
    crcs = np.array([crc(each.topic) for each in formats], np.int64)
    bucket = owners(places, crcs[table], buckets)
    return RecordsOfTables(batch_of(arrays, None), table, bucket, frozenset(moved.tolist()))


def _values(what: RowsOfTables, tables: ManyTables, changes: Changes) -> Any:
    values = [table.values for table in what.tables]
    if isinstance(values[0], AvroValues):
        return AvroValues.of_tables(
            [each for each in values if isinstance(each, AvroValues)], tables, what.rows, changes
        )
    return JsonValues.of_tables([each for each in values if isinstance(each, JsonValues)], tables, what.rows, changes)
