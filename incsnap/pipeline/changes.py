"""A slice of binlog packets becomes blocks of records, by table and bucket.

No Python object a row or a rows event: events are grouped, decoded and encoded as whole columns, a table at a time.
Only table maps are looked at one by one (0.3 µs each: they are the same bytes again and again).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.binlog.row_images import decode_rows
from incsnap.binlog.slices import Slice
from incsnap.binlog.table_map import TABLE_ID_BYTES, TableMap, TableMaps
from incsnap.columns.packets import Packets
from incsnap.config.settings import Settings
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.records import change_records
from incsnap.envelope.source_block import SourceColumns
from incsnap.errors import BinlogError
from incsnap.pipeline.naming import envelope_settings, topic_of
from incsnap.snapshot.offset import Layout
from incsnap.tables import TableId

#: Of every binlog event; the body follows it.
EVENT_HEADER_BYTES = 19

#: JSON in one block, about. Encoding takes several times its size here, and Spark holds it whole in its heap: rows of
#: two integers are 9 bytes in the binlog and 500 in Kafka, so a batch of 24 MB in two blocks (1.4 GB) was too much for
#: 2 GB of heap.
_BLOCK_BYTES = 8 << 20
#: What a record has besides its row: the envelope and its source block.
_RECORD_BYTES = 450
#: JSON of a row for each of its bytes in the binlog, about: names of columns, digits, escapes.
_GROWTH = 4

Longs = npt.NDArray[np.int64]
Charsets = tuple[tuple[int, str], ...]
"""(collation id, character set) pairs of the server: hashable, and it pickles."""


@dataclass(frozen=True, slots=True, eq=False)
class TableEvents:
    """The rows events of one table shape in a slice: their numbers in the slice, ascending, which is binlog order."""

    table_map: TableMap
    events: Longs


@lru_cache(maxsize=4)
def _table_maps(charsets: Charsets) -> TableMaps:
    """Kept by the worker between batches, for each server it has met."""
    return TableMaps(dict(charsets))


def group_events(piece: Slice, charsets: Charsets) -> list[TableEvents]:
    """The rows events of a slice by table, tables in order of appearance.

    A table whose shape changes within the slice appears once for each shape, in order: an event of an older shape
    never follows one of a newer.
    """
    is_rows = piece.is_rows
    maps = np.flatnonzero(~is_rows)
    payload = piece.payload
    known = _table_maps(charsets)
    shapes: dict[int, TableMap] = {}
    numbers: dict[bytes, int] = {}
    begins = (piece.offsets[maps] + EVENT_HEADER_BYTES).tolist()
    ends = piece.offsets[maps + 1].tolist()
    number_of_map = np.full(len(is_rows), -1, np.int64)
    order_of: dict[Any, int] = {}
    for at, begin, end in zip(maps.tolist(), begins, ends, strict=True):
        description = payload[begin + TABLE_ID_BYTES : end]
        number = numbers.get(description)
        if number is None:
            table_map = known.of(payload[begin:end])
            # Flags differ between maps of one shape; their events must not be torn apart, or they would lose their
            # order.
            key = (table_map.shape, table_map.wire)
            number = numbers[description] = order_of.setdefault(key, len(order_of))
            shapes.setdefault(number, table_map)
        number_of_map[at] = number
    # A rows event belongs to the last map before it that has its table id: sorted by id, that is the last map seen.
    ids = piece.table_ids()
    order = np.lexsort((np.arange(len(is_rows)), ids))
    latest = np.maximum.accumulate(np.where(is_rows[order], -1, np.arange(len(order))))
    if len(order) and (latest[0] < 0 or (ids[order[latest]] != ids[order]).any()):
        raise BinlogError("a rows event has no table map before it", "Please report this with the binlog file.")
    number_of_event = np.empty(len(order), np.int64)
    number_of_event[order] = number_of_map[order[latest]]
    groups = [TableEvents(shapes[number], np.flatnonzero(is_rows & (number_of_event == number))) for number in shapes]
    return [group for group in groups if len(group.events)]


def change_blocks(
    piece: Slice,
    charsets: Charsets,
    layout: Layout,
    settings: Settings,
    now_us: int,
) -> Iterator[tuple[int, str, TableId, Any]]:
    """(bucket, topic, table, records in binlog order) for every table and bucket that the slice touches."""
    transactions = piece.transactions
    packets = Packets.of(piece.payload)
    envelope = envelope_settings(settings)
    gtids = pa.array(transactions.gtids(), pa.string())
    files = pa.array(transactions.files, pa.string()).take(pa.array(transactions.file))
    threads = pa.array(transactions.thread, pa.int64(), mask=transactions.thread < 0)
    for group in group_events(piece, charsets):
        shape, events = group.table_map.shape, group.events
        kinds = piece.kinds[events]
        images = decode_rows(
            packets, piece.offsets[events] + EVENT_HEADER_BYTES, piece.offsets[events + 1], kinds, group.table_map
        )
        topic = topic_of(settings, shape.id)
        for part, rows in _parts(images.event, piece.offsets[events + 1] - piece.offsets[events]):
            these = events[part]
            owner = piece.transaction_of(these)
            source = SourceColumns(
                gtid=gtids.take(pa.array(owner)),
                ts_us=transactions.ts_us[owner],
                server_id=transactions.server_id[owner],
                thread=threads.take(pa.array(owner)),
                file=files.take(pa.array(owner)),
                pos=piece.positions[these],
            )
            records = change_records(
                shape,
                [column[rows] for column in images.columns],
                images.event[rows] - np.int32(part.start),
                kinds[part],
                source,
                envelope,
                layout.partitions[topic],
                now_us=now_us,
            )
            for bucket, block in _by_bucket(records, topic, layout.buckets):
                yield bucket, topic, shape.id, block


def _parts(event: npt.NDArray[np.int32], sizes: Longs) -> Iterator[tuple[slice, slice]]:
    """Events, and their images, that make a block of about ``_BLOCK_BYTES``; ``sizes``: of the events, in bytes."""
    first_image = np.searchsorted(event, np.arange(len(sizes) + 1))
    cost = sizes * _GROWTH + np.diff(first_image) * _RECORD_BYTES
    number = (np.cumsum(cost) - cost) // _BLOCK_BYTES
    begins = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(sizes)]
    for begin, end in pairwise(begins):
        yield slice(begin, end), slice(int(first_image[begin]), int(first_image[end]))


def _by_bucket(records: Any, topic: str, buckets: int) -> Iterator[tuple[int, Any]]:
    owner = bucket_of(topic, records.column("partition").to_numpy(zero_copy_only=False), buckets)
    present = np.unique(owner)
    if len(present) == 1:
        yield int(present[0]), records
        return
    for bucket in present:
        yield int(bucket), records.take(pa.array(np.flatnonzero(owner == bucket)))
