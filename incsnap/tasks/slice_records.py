"""The work of a source task: turns a slice of the binlog into blocks of records, by table and bucket.

A table's rows are taken out of the slice (`binlog.table_rows`), arranged as changes (`changes_of_table`), and encoded
(`change_records`). Each step takes whole columns, so no Python object exists per row. Tables with few rows in the slice
are encoded together (`small_tables`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.slices import Slice
from incsnap.binlog.slicing import last_transaction
from incsnap.binlog.table_rows import Charsets, TableRows, table_rows
from incsnap.config.declarations.job import TRUNCATE
from incsnap.config.settings import Settings
from incsnap.envelope.change_records import change_records
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.oversized import Shortening
from incsnap.envelope.row_changes import RowChanges, changes_of_table
from incsnap.envelope.seam import Seam
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_limits import RecordRoom
from incsnap.snapshot.offset import OpenCounts, TopicLayout
from incsnap.tables import TableDefaults, TableId
from incsnap.tasks.blocks import Run
from incsnap.tasks.event_sources import EventSources
from incsnap.tasks.formats import format_of
from incsnap.tasks.numbering import Counted, number, totals
from incsnap.tasks.small_tables import (
    GROWTH,
    RECORD_BYTES,
    EncodedTables,
    SmallTable,
    encoded_tables,
    small_table,
    together,
)
from incsnap.tasks.table_plans import plans_of
from incsnap.tasks.transaction_metadata import WHOLE, Border, transaction_records

#: Bytes of JSON in one block, about. To encode a block takes several times its size, and Spark holds the block whole in
#: its heap. A row of two integers has 9 bytes in the binlog and 500 in Kafka. A batch of 24 MB in two blocks (1.4 GB)
#: was too much for a heap of 2 GB.
_BLOCK_BYTES = 8 << 20
#: Most bytes of small tables' records that are held before the first block is yielded, when transactions are counted.
_MOST_HELD = 4 * _BLOCK_BYTES

#: (bucket, topic, table or runs of tables or None, records)
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
    seam: Seam | None = None,
    sent_rows: int = 0,
) -> Iterator[_Block]:
    """Yield (bucket, topic, table, records in binlog order) for every table and bucket that the slice touches.

    Tables with few rows in the slice come as (bucket, "", runs, records). If transactions are counted, the whole slice
    is decoded before the first block. The block of the transaction topic, without a table, then comes last. `border`
    matters only then. `defaults`: column defaults for schemas. `first_event`: the number of the slice's first event,
    for marks. `seam`: the records that another engine has sent, which are left out. `sent_rows`: number of rows of the
    first rows event that it has sent too.
    """
    sources = EventSources(slice_, queries=settings.include_query, first=first_event, seam=seam, sent_rows=sent_rows)
    of_one = partial(_blocks_of_one, sources, layout, now_us, _shortening(settings))
    small = SmallTableGroup(settings, sources, defaults)
    many = small.laid(table_rows(slice_, charsets))
    if not settings.transaction_metadata:
        for each in many:
            yield from each.blocks(sources, None, layout, now_us)
        for events, laid in _laid_out(small.left, settings, sources, defaults):
            yield from of_one(events, laid, None)
        return
    held, alone = list(many), list(_laid_out(small.left, settings, sources, defaults))
    of_held = [each.counted(slice_) for each in held]
    counted = [*chain.from_iterable(of_held), *(_counted(slice_, events, laid) for events, laid in alone)]
    orders = iter(number(counted, border.begun))
    for each, of_each in zip(held, of_held, strict=True):
        yield from each.blocks(sources, list(islice(orders, len(of_each))), layout, now_us)
    for (events, laid), order in zip(alone, orders, strict=True):
        yield from of_one(events, laid, order)
    metadata = transaction_records(settings, slice_, totals(counted, border.begun), border, layout.buckets, seam)
    if metadata is not None:
        topic, bucket, block = metadata
        yield bucket, topic, None, block


def _blocks_of_one(
    sources: EventSources,
    layout: TopicLayout,
    now_us: int,
    shortening: Shortening | None,
    events: Longs,
    laid: RowChanges,
    order: TransactionOrder | None,
) -> Iterator[_Block]:
    """Yield the encoded blocks of one table. `events`: the indexes of its events in the slice."""
    source = sources.of(events, np.bincount(laid.events, minlength=len(events)))
    records = change_records(laid, source, order, layout.partitions, now_us=now_us, shortening=shortening)
    for each in records:
        for bucket, block, _ in each.by_bucket(layout.buckets):
            yield bucket, each.topic, laid.images.formats[0].view.shape.id, block


def _shortening(settings: Settings) -> Shortening | None:
    """Return the rule that cuts changes which are too large for Kafka; None if the settings cut nothing."""
    if settings.oversized.mode != TRUNCATE or settings.frame is not None:
        return None
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    return Shortening(RecordRoom(client), settings.oversized.columns)


def open_counts(slice_: Slice, charsets: Charsets, settings: Settings, begun: OpenCounts | None) -> OpenCounts:
    """Return the counts of the slice's last transaction, which goes on in the next batch.

    `begun`: counts of earlier batches. The transaction is decoded here, and once more by its task. That is as rare as a
    transaction larger than a batch.
    """
    last = last_transaction(slice_)
    laid_out = _laid_out(table_rows(last, charsets), settings, EventSources(last, queries=False))
    sums = totals([_counted(last, events, laid) for events, laid in laid_out], begun)
    return OpenCounts(int(last.transactions.column("ts_us")[0]), tuple((table, count) for _, table, count in sums))


def _counted(slice_: Slice, of_table: Longs, laid: RowChanges) -> Counted:
    """Return one table's records for the counts. `of_table`: the indexes of its events in the slice."""
    events = of_table[laid.events]
    return Counted(str(laid.images.formats[0].view.shape.id), events, slice_.transaction_of(events))


class SmallTableGroup:
    """The tables of a slice that have few rows each.

    `left`: the other tables, complete once `laid` has ended.
    """

    def __init__(self, settings: Settings, sources: EventSources, defaults: TableDefaults) -> None:
        self._settings, self._sources, self._defaults = settings, sources, dict(defaults)
        self.left: list[TableRows] = []

    def laid(self, tables: Sequence[TableRows]) -> Iterator[EncodedTables]:
        """Yield groups of decoded tables, each for blocks of about `_BLOCK_BYTES`."""
        for part in together(self._small(tables), _BLOCK_BYTES):
            yield from self._laid(part)
        # The tables come in the order of the slice, so an error names the first table that cannot be written.
        places = {id(rows): place for place, rows in enumerate(tables)}
        self.left.sort(key=lambda rows: places[id(rows)])

    def _small(self, tables: Sequence[TableRows]) -> Iterator[SmallTable]:
        """Yield the small tables of `tables`, and put the others into `left`."""
        # A table with two shapes in one slice must keep the order of its rows.
        times = Counter(rows.shape.id for rows in tables)
        held, most = 0, _MOST_HELD if self._settings.transaction_metadata else math.inf
        plans = plans_of(self._settings)
        for rows in tables:
            one = None
            if times[rows.shape.id] == 1 and held < most:
                one = small_table(rows, self._settings, plans, self._sources, self._defaults)
            if one is None:
                self.left.append(rows)
            else:
                held += one.bytes
                yield one

    def _laid(self, part: Sequence[SmallTable]) -> Iterator[EncodedTables]:
        """Yield the decoded tables of a group. If one cannot be decoded, find it by halving and put it into `left`."""
        laid = encoded_tables(part)
        if laid is not None:
            self.left += laid.moved
            yield laid
        elif len(part) == 1:
            self.left.append(part[0].rows)
        else:
            half = len(part) // 2
            yield from self._laid(part[:half])
            yield from self._laid(part[half:])


def _laid_out(
    tables: Iterable[TableRows], settings: Settings, sources: EventSources, defaults: TableDefaults = ()
) -> Iterable[tuple[Longs, RowChanges]]:
    """Yield decoded rows that become one block each, with the indexes of their events in the slice."""
    known = dict(defaults)
    for rows in tables:
        shape = rows.shape
        format_ = format_of(settings, shape.with_defaults(known[shape.id]) if shape.id in known else shape)
        images = rows.decode(format_.view.needed, settings.failures)
        more = sources.text_bytes(rows.events) + format_.literal_bytes
        for part, of_part in _parts(images.event, rows.sizes, more):
            columns = [None if column is None else column[of_part] for column in images.columns]
            laid = changes_of_table(format_, columns, images.event[of_part] - np.int32(part.start), images.kinds[part])
            if len(laid.records):
                yield rows.events[part], laid


def _parts(event: npt.NDArray[np.int32], sizes: Longs, more: Longs) -> Iterator[tuple[slice, slice]]:
    """Yield slices of events, and of their images, that become a block of about `_BLOCK_BYTES`.

    `event`: of each image the index of its event. `sizes`: bytes of each event. `more`: for each event the bytes that
    each of its records has besides the row: a statement, names of columns, a schema.
    """
    first_image = np.searchsorted(event, np.arange(len(sizes) + 1))
    cost = sizes * GROWTH + np.diff(first_image) * (RECORD_BYTES + more)
    number = (np.cumsum(cost) - cost) // _BLOCK_BYTES
    begins = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(sizes)]
    for begin, end in pairwise(begins):
        yield slice(begin, end), slice(int(first_image[begin]), int(first_image[end]))
