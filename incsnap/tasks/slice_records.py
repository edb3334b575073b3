"""A slice of binlog packets becomes blocks of records, by table and bucket.

A table's rows are taken out of the slice (``binlog.table_rows``), laid out as records (``lay_out``) and encoded
(``change_records``): whole columns each time, and no Python object a row. Tables that have a few rows in the slice are
written together instead (``small_tables``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.slices import Slice
from incsnap.binlog.slicing import last_transaction
from incsnap.binlog.table_rows import Charsets, TableRows, table_rows
from incsnap.config.settings import TRUNCATE, Settings
from incsnap.envelope.change_records import TopicRecords, change_records
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.oversized import Shortening
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.row_changes import RowChanges, lay_out
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_limits import RecordRoom
from incsnap.snapshot.offset import OpenCounts, TopicLayout
from incsnap.tables import TableDefaults, TableId
from incsnap.tasks.blocks import Run
from incsnap.tasks.event_sources import EventSources
from incsnap.tasks.formats import format_of
from incsnap.tasks.numbering import Counted, number, totals
from incsnap.tasks.small_tables import LaidTogether, SmallTable, SmallTables, laid_together, together
from incsnap.tasks.transaction_metadata import WHOLE, Border, transaction_records

#: JSON in one block, about. Encoding takes several times its size here, and Spark holds it whole in its heap: rows of
#: two integers are 9 bytes in the binlog and 500 in Kafka, so a batch of 24 MB in two blocks (1.4 GB) was too much for
#: 2 GB of heap.
_BLOCK_BYTES = 8 << 20
#: What a record has besides its row: the envelope and its source block.
_RECORD_BYTES = 450
#: JSON of a row's values for each of their bytes in the binlog, about: digits, escapes.
_GROWTH = 4
#: Records of small tables that are encoded before the first block is given, where all of a slice is counted first.
_MOST_HELD = 4 * _BLOCK_BYTES

#: (bucket, topic, table or tables, records).
_Block = tuple[int, str, TableId | tuple[Run, ...] | None, Any]


def change_blocks(
    slice_: Slice,
    charsets: Charsets,
    layout: TopicLayout,
    settings: Settings,
    now_us: int,
    border: Border = WHOLE,
    defaults: TableDefaults = (),
    first_event: int = 0,
) -> Iterator[_Block]:
    """Gives (bucket, topic, table, records in binlog order) for every table and bucket that the slice touches; (bucket,
    "", runs, records) for tables that have a few rows in it.

    Where transactions are counted, all of the slice is decoded before the first records come, and those of the
    transaction topic, of no table, come last; ``border`` matters only then. ``defaults``: what schemas are to show.
    ``first_event``: the number of the slice's first event, by which marks count.
    """
    sources = EventSources(slice_, queries=settings.include_query, first=first_event)
    writer = _BlockWriter(sources, layout, now_us, _shortening(settings))
    small = _Together(settings, sources, defaults)
    many = small.laid(table_rows(slice_, charsets))
    if not settings.transaction_metadata:
        for each in many:
            yield from writer.of_many(each, None)
        for events, laid in _laid_out(small.left, settings, sources, defaults):
            yield from writer.of_one(events, laid, None)
        return
    held, alone = list(many), list(_laid_out(small.left, settings, sources, defaults))
    of_held = [each.counted(slice_) for each in held]
    counted = [*chain.from_iterable(of_held), *(_counted(slice_, events, laid) for events, laid in alone)]
    orders = iter(number(counted, border.begun))
    for each, of_each in zip(held, of_held, strict=True):
        yield from writer.of_many(each, list(islice(orders, len(of_each))))
    for (events, laid), order in zip(alone, orders, strict=True):
        yield from writer.of_one(events, laid, order)
    metadata = transaction_records(settings, slice_, totals(counted, border.begun), border, layout.buckets)
    if metadata is not None:
        topic, bucket, block = metadata
        yield bucket, topic, None, block


class _BlockWriter:
    """Blocks, as ``change_blocks`` gives them."""

    def __init__(self, sources: EventSources, layout: TopicLayout, now_us: int, shortening: Shortening | None) -> None:
        self._sources, self._layout, self._now_us, self._shortening = sources, layout, now_us, shortening

    def of_many(self, laid: LaidTogether, orders: Sequence[TransactionOrder] | None) -> Iterator[_Block]:
        for bucket, runs, records in laid.blocks(self._sources, orders, self._layout, self._now_us):
            yield bucket, "", runs, records

    def of_one(self, events: Longs, laid: RowChanges, order: TransactionOrder | None) -> Iterator[_Block]:
        source = self._sources.of(events, np.bincount(laid.events, minlength=len(events)))
        layout = self._layout
        records = change_records(
            laid, source, order, layout.partitions, now_us=self._now_us, shortening=self._shortening
        )
        for those in records:
            for bucket, block in _by_bucket(those, laid.format.topic, layout.buckets):
                yield bucket, those.topic, laid.format.view.shape.id, block


def _shortening(settings: Settings) -> Shortening | None:
    """Return what cuts changes that are too large for Kafka; None if nothing does."""
    if settings.oversized.mode != TRUNCATE or settings.frame is not None:
        return None
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    return Shortening(RecordRoom(client), settings.oversized.columns)


def open_counts(slice_: Slice, charsets: Charsets, settings: Settings, begun: OpenCounts | None) -> OpenCounts:
    """What was counted of the slice's last transaction, in which a batch ends; ``begun``: in earlier batches.

    It is decoded for it here, and once more by its task: as rare as transactions that are larger than a batch.
    """
    last = last_transaction(slice_)
    laid_out = _laid_out(table_rows(last, charsets), settings, EventSources(last, queries=False))
    sums = totals([_counted(last, events, laid) for events, laid in laid_out], begun)
    pairs = zip(sums.table, sums.count.tolist(), strict=True)
    return OpenCounts(int(last.transactions.column("ts_us")[0]), tuple(pairs))


def _counted(slice_: Slice, of_table: Longs, laid: RowChanges) -> Counted:
    events = of_table[laid.events]
    return Counted(str(laid.format.view.shape.id), events, slice_.transaction_of(events))


class _Together:
    """Those tables of a slice that have a few rows each. ``left``: the others, when all blocks were asked for."""

    def __init__(self, settings: Settings, sources: EventSources, defaults: TableDefaults) -> None:
        self._settings, self._sources, self._defaults = settings, sources, dict(defaults)
        self.left: list[TableRows] = []

    def laid(self, tables: Sequence[TableRows]) -> Iterator[LaidTogether]:
        """Each for blocks of ``_BLOCK_BYTES``."""
        for part in together(self._small(tables), _BLOCK_BYTES):
            yield from self._laid(part)
        # As tables come without this: the first that cannot be written is the one that is told.
        places = {id(rows): place for place, rows in enumerate(tables)}
        self.left.sort(key=lambda rows: places[id(rows)])

    def _small(self, tables: Sequence[TableRows]) -> Iterator[SmallTable]:
        # What has two shapes in one slice must keep their order.
        times = Counter(rows.shape.id for rows in tables)
        held, most = 0, _MOST_HELD if self._settings.transaction_metadata else math.inf
        small = SmallTables(self._settings, self._defaults, _GROWTH, _RECORD_BYTES)
        for rows in tables:
            one = small.small(rows, self._sources) if times[rows.shape.id] == 1 and held < most else None
            if one is None:
                self.left.append(rows)
            else:
                held += one.bytes
                yield one

    def _laid(self, part: Sequence[SmallTable]) -> Iterator[LaidTogether]:
        laid = laid_together(part)
        if laid is not None:
            self.left += laid.moved
            yield laid
        elif len(part) == 1:
            self.left.append(part[0].rows)
        else:
            # The table that is to blame is found by halving.
            half = len(part) // 2
            yield from self._laid(part[:half])
            yield from self._laid(part[half:])


def _laid_out(
    tables: Iterable[TableRows], settings: Settings, sources: EventSources, defaults: TableDefaults = ()
) -> Iterable[tuple[Longs, RowChanges]]:
    """Decoded rows that make one block each, with the numbers of their events in the slice."""
    known = dict(defaults)
    for rows in tables:
        shape = rows.shape
        format_ = format_of(settings, shape.with_defaults(known[shape.id]) if shape.id in known else shape)
        images = rows.decode(format_.view.needed, settings.failures)
        more = sources.text_bytes(rows.events) + format_.literal_bytes
        for part, of_part in _parts(images.event, rows.sizes, more):
            columns = [None if column is None else column[of_part] for column in images.columns]
            laid = lay_out(format_, columns, images.event[of_part] - np.int32(part.start), images.kinds[part])
            if len(laid.records):
                yield rows.events[part], laid


def _parts(event: npt.NDArray[np.int32], sizes: Longs, more: Longs) -> Iterator[tuple[slice, slice]]:
    """Events, and their images, that make a block of about ``_BLOCK_BYTES``; ``sizes``: of the events, in bytes;
    ``more``: bytes that each of an event's records has whatever its row is: a statement, names of columns, a schema."""
    first_image = np.searchsorted(event, np.arange(len(sizes) + 1))
    cost = sizes * _GROWTH + np.diff(first_image) * (_RECORD_BYTES + more)
    number = (np.cumsum(cost) - cost) // _BLOCK_BYTES
    begins = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(sizes)]
    for begin, end in pairwise(begins):
        yield slice(begin, end), slice(int(first_image[begin]), int(first_image[end]))


def _by_bucket(written: TopicRecords, home: str, buckets: int) -> Iterator[tuple[int, Any]]:
    """``home``: the topic whose partitions buckets are chosen by."""
    owner, records = bucket_of(home, written.home, buckets), written.records
    present = np.unique(owner)
    if len(present) == 1:
        yield int(present[0]), records
        return
    for bucket in present:
        yield int(bucket), records.take(pa.array(np.flatnonzero(owner == bucket)))
