"""A slice of binlog packets becomes blocks of records, by table and bucket.

No Python object a row or a rows event: events are grouped, decoded and encoded as whole columns, a table at a time.
Only table maps are looked at one by one (0.3 µs each: they are the same bytes again and again).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.binlog.control_events import TABLE_MAP
from incsnap.binlog.row_images import decode_rows
from incsnap.binlog.slices import Slice
from incsnap.binlog.table_map import TABLE_ID_BYTES, TableMap, TableMaps
from incsnap.columns.packets import Packets
from incsnap.config.settings import Settings
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.records import RowChanges, change_records, lay_out
from incsnap.errors import BinlogError
from incsnap.pipeline.control_topics import transaction_topic
from incsnap.pipeline.event_sources import EventSources
from incsnap.pipeline.formats import format_of
from incsnap.pipeline.known_defaults import TableDefaults
from incsnap.pipeline.numbering import Counted, number, totals
from incsnap.pipeline.transaction_records import WHOLE, Border, transaction_records
from incsnap.snapshot.offset import Layout, OpenCounts
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

    A table whose shape changes within the slice appears once for each shape that it has one after another (twice with a
    shape that it goes back to): an event of an earlier shape never follows one of a later.
    """
    is_rows = piece.is_rows
    maps = np.flatnonzero(piece.kinds == TABLE_MAP)
    payload = piece.payload
    known = _table_maps(charsets)
    groups: list[TableMap] = []
    # Flags differ between maps of one shape; their events must not be torn apart, or they would lose their order.
    shapes: dict[Any, int] = {}
    described: dict[bytes, tuple[TableMap, int]] = {}
    current: dict[TableId, tuple[int, int]] = {}
    begins = (piece.offsets[maps] + EVENT_HEADER_BYTES).tolist()
    ends = piece.offsets[maps + 1].tolist()
    number_of_map = np.full(len(is_rows), -1, np.int64)
    for at, begin, end in zip(maps.tolist(), begins, ends, strict=True):
        description = payload[begin + TABLE_ID_BYTES : end]
        entry = described.get(description)
        if entry is None:
            try:
                table_map = known.of(payload[begin:end])
            except BinlogError as error:
                raise BinlogError(f"{piece.place(at)}: {error.message}", error.hint) from None
            shape = shapes.setdefault((table_map.shape, table_map.wire), len(shapes))
            entry = described[description] = (table_map, shape)
        table_map, shape = entry
        running = current.get(table_map.shape.id)
        if running is None or running[0] != shape:
            running = current[table_map.shape.id] = (shape, len(groups))
            groups.append(table_map)
        number_of_map[at] = running[1]
    # A rows event belongs to the last map before it that has its table id: sorted by id, that is the last map seen.
    ids = piece.table_ids()
    order = np.lexsort((np.arange(len(is_rows)), ids))
    latest = np.maximum.accumulate(np.where(is_rows[order], -1, np.arange(len(order))))
    if len(order) and (latest[0] < 0 or (ids[order[latest]] != ids[order]).any()):
        lost = int(order[np.flatnonzero((latest < 0) | (ids[order[latest]] != ids[order]))[0]])
        raise BinlogError(
            f"{piece.place(lost)}: a rows event has no table map before it", "Please report this with the binlog file."
        )
    number_of_event = np.empty(len(order), np.int64)
    number_of_event[order] = number_of_map[order[latest]]
    rows = np.flatnonzero(is_rows)
    rows = rows[np.argsort(number_of_event[rows], kind="stable")]
    borders = np.searchsorted(number_of_event[rows], np.arange(len(groups) + 1)).tolist()
    found = zip(groups, pairwise(borders), strict=True)
    return [TableEvents(table_map, rows[begin:end]) for table_map, (begin, end) in found if end > begin]


def change_blocks(
    piece: Slice,
    charsets: Charsets,
    layout: Layout,
    settings: Settings,
    now_us: int,
    border: Border = WHOLE,
    defaults: TableDefaults = (),
) -> Iterator[tuple[int, str, TableId | None, Any]]:
    """(bucket, topic, table, records in binlog order) for every table and bucket that the slice touches.

    Where transactions are counted, all of the slice is decoded before the first records come, and those of the
    transaction topic, of no table, come last; ``border`` matters only then. ``defaults``: what schemas are to show.
    """
    sources = EventSources(piece, queries=settings.include_query)
    found = _laid_out(piece, charsets, settings, sources, defaults)
    orders: Iterable[TransactionOrder | None] = repeat(None)
    counted: list[Counted] = []
    if settings.transaction_metadata:
        found = list(found)
        counted = [_counted(piece, these, laid) for these, laid in found]
        orders = number(counted, border.begun)
    for (these, laid), order in zip(found, orders, strict=False):
        topic = laid.format.topic
        records = change_records(laid, sources.of(these), order, layout.partitions[topic], now_us=now_us)
        for bucket, block in _by_bucket(records, topic, layout.buckets):
            yield bucket, topic, laid.format.view.shape.id, block
    if settings.transaction_metadata:
        told = transaction_records(settings, piece, totals(counted, border.begun), border, layout.buckets)
        if told is not None:
            yield told[0], transaction_topic(settings), None, told[1]


def open_counts(piece: Slice, charsets: Charsets, settings: Settings, begun: OpenCounts | None) -> OpenCounts:
    """What was counted of the slice's last transaction, in which a batch ends; ``begun``: in earlier batches.

    It is decoded for it here, and once more by its task: as rare as transactions that are larger than a batch.
    """
    last = piece.last_transaction()
    found = _laid_out(last, charsets, settings, EventSources(last, queries=False))
    sums = totals([_counted(last, these, laid) for these, laid in found], begun)
    pairs = zip(sums.table, sums.count.tolist(), strict=True)
    return OpenCounts(int(last.transactions.ts_us[0]), tuple(pairs))


def _counted(piece: Slice, these: Longs, laid: RowChanges) -> Counted:
    events = these[laid.events]
    return Counted(str(laid.format.view.shape.id), events, piece.transaction_of(events))


def _laid_out(
    piece: Slice, charsets: Charsets, settings: Settings, sources: EventSources, defaults: TableDefaults = ()
) -> Iterable[tuple[Longs, RowChanges]]:
    """Decoded rows that make one block each, with the numbers of their events in the slice."""
    packets = Packets.of(piece.payload)
    known = dict(defaults)
    for group in group_events(piece, charsets):
        shape, events = group.table_map.shape, group.events
        format_ = format_of(settings, shape.with_defaults(known[shape.id]) if shape.id in known else shape)
        kinds = piece.kinds[events]
        images = decode_rows(
            packets,
            piece.offsets[events] + EVENT_HEADER_BYTES,
            piece.offsets[events + 1],
            kinds,
            group.table_map,
            format_.view.needed,
            settings.failures,
            partial(_place, piece, events),
        )
        sizes = piece.offsets[events + 1] - piece.offsets[events]
        for part, rows in _parts(images.event, sizes, sources.text_bytes(events)):
            columns = [None if column is None else column[rows] for column in images.columns]
            laid = lay_out(format_, columns, images.event[rows] - np.int32(part.start), images.kinds[part])
            if len(laid.out.op):
                yield events[part], laid


def _place(piece: Slice, events: Longs, event: int) -> str:
    return piece.place(int(events[event]))


def _parts(event: npt.NDArray[np.int32], sizes: Longs, texts: Longs) -> Iterator[tuple[slice, slice]]:
    """Events, and their images, that make a block of about ``_BLOCK_BYTES``; ``sizes``: of the events, in bytes;
    ``texts``: bytes of the statement that each of its records repeats."""
    first_image = np.searchsorted(event, np.arange(len(sizes) + 1))
    cost = sizes * _GROWTH + np.diff(first_image) * (_RECORD_BYTES + texts)
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
