"""Tables with few rows in a slice: decodes and encodes them together, into blocks of many tables.

One by one each such table costs 2 ms or more, however few its rows are: some hundred calls of NumPy and Arrow. Together
they cost a tenth of that. Plain Python finds where each value lies. Then all values of one kind are decoded and encoded
at once, and each row is put together (`table_plans`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.binlog.protocol.few_rows import FewRows
from incsnap.binlog.protocol.frames import Longs
from incsnap.binlog.protocol.unreadable import VALUE_ERRORS
from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import TableRows
from incsnap.columns.images import ValueSpan
from incsnap.config.settings import Settings
from incsnap.envelope.change_records import change_records
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.row_changes import EncodedImages, RowChanges, row_changes
from incsnap.errors import IncsnapError
from incsnap.snapshot.offset import TopicLayout
from incsnap.tables import Defaults, TableId
from incsnap.tasks.blocks import Run
from incsnap.tasks.event_sources import EventSources
from incsnap.tasks.numbering import Counted
from incsnap.tasks.table_plans import PlacedTexts, TablePlan, TablePlans, TextKind, ValueKind

#: Bytes of a record besides its row, about: the envelope and its source block.
RECORD_BYTES = 450
#: Bytes of JSON for each byte of a value in the binlog, about: digits, escapes.
GROWTH = 4
#: Most row images of a small table. Plain Python takes longer for more of them than whole columns do.
_MOST_IMAGES = 128
#: Most values of a small table, for the same reason: 200 columns of 128 rows take half as long again.
_MOST_VALUES_OF_ONE = 10_000
#: Most bytes of a small table's events.
_MOST_BYTES = 64 << 10
#: Most values in one group. A place takes 110 bytes in plain Python, and a NULL next to nothing in the binlog: a slice
#: of 6 MB took 250 MB.
_MOST_VALUES = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class SmallTable:
    """A table with few rows in the slice, and the places of its values."""

    rows: TableRows  #: its rows events
    plan: TablePlan  #: the way from its values to its records
    few: FewRows  #: the places of its values
    bytes: int  #: bytes of its records, about

    @property
    def values(self) -> int:
        """Return how many values the rows have."""
        return len(self.few) * len(self.few.columns)


def small_table(
    rows: TableRows,
    settings: Settings,
    plans: TablePlans,
    sources: EventSources,
    defaults: Mapping[TableId, Defaults],
) -> SmallTable | None:
    """Return the table as a SmallTable, if it is small enough to be encoded together with other tables; otherwise None.

    The function finds where each value lies in the row images, and does not decode the values yet. Raise
    UnsupportedType if a column's type has no format. Errors of the schema registry pass through.
    """
    if len(rows.events) > _MOST_IMAGES or (size := int(rows.sizes.sum())) > _MOST_BYTES:
        return None
    plan = plans.of(settings, rows.table_map, defaults.get(rows.shape.id, ()))
    if plan is None:
        return None
    few = rows.walked(plan.layout, min(_MOST_IMAGES, _MOST_VALUES_OF_ONE // max(1, len(plan.layout.fields))))
    if few is None:
        return None
    constant = RECORD_BYTES + plan.templates.record_bytes + plan.literal_bytes
    texts = int(sources.text_bytes(rows.events).max(initial=0))
    return SmallTable(rows, plan, few, size * GROWTH + len(few) * (constant + texts))


def together(tables: Iterable[SmallTable], most: int) -> Iterator[list[SmallTable]]:
    """Yield groups of tables, each with records of about `most` bytes.

    `tables` is read only as far as a group needs.
    """
    group: list[SmallTable] = []
    size = values = 0
    for table in tables:
        if group and (size + table.bytes > most or values + table.values > _MOST_VALUES):
            yield group
            group, size, values = [], 0, 0
        group.append(table)
        size, values = size + table.bytes, values + table.values
    if group:
        yield group


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTables:
    """Small tables whose keys and rows are encoded. Source blocks and buckets are still missing."""

    tables: Sequence[SmallTable]  #: the tables, in order
    events: Longs  #: for each rows event, its index in the slice, table by table
    changes: RowChanges  #: the changes of `EncodedImages`

    @property
    def moved(self) -> list[TableRows]:
        """Return the tables that have to be encoded alone after all, because an update changed a row's key."""
        return [self.tables[number].rows for number in sorted(self.changes.moved)]

    def counted(self, slice_: Slice) -> list[Counted]:
        """Return the records that transactions count, for each table that has any."""
        images, event = self.changes.images, self.changes.events
        assert isinstance(images, EncodedImages)
        numbers, firsts = np.unique(images.table_numbers(event), return_index=True)
        events = self.events[event]
        transactions = slice_.transaction_of(events)
        borders = pairwise([*firsts.tolist(), len(event)])
        return [
            Counted(self.tables[number].plan.name, events[first:end], transactions[first:end])
            for number, (first, end) in zip(numbers.tolist(), borders, strict=True)
        ]

    def blocks(
        self, sources: EventSources, orders: Sequence[TransactionOrder] | None, layout: TopicLayout, now_us: int
    ) -> Iterator[tuple[int, str, tuple[Run, ...], Any]]:
        """Yield a block of records for each bucket that has any: (bucket, "", runs, records), as `blocks.tables` takes
        them.

        The "" stands for the topic, because a block of many tables has none of its own. The records of each table are
        in binlog order. `orders` has the records' numbers in their transactions, one element for each element of the
        result of the method `counted`; None if transactions are not counted.
        """
        order = None
        if orders is not None:
            none = [np.zeros(0, np.int64)]
            total, of_table = ([getattr(each, name) for each in orders] for name in ("total", "of_table"))
            order = TransactionOrder(np.concatenate(none + total), np.concatenate(none + of_table))
        source = sources.of(self.events)
        for batch in change_records(self.changes, source, order, layout.partitions, now_us=now_us):
            for bucket, records, table in batch.by_bucket(layout.buckets):
                assert table is not None
                numbers, counts = np.unique(table, return_counts=True)
                plans = [self.tables[number].plan for number in numbers.tolist()]
                runs = zip(plans, counts.tolist(), strict=True)
                of_tables = (Run(plan.templates.format.topic, plan.name, count) for plan, count in runs)
                yield bucket, "", tuple(of_tables), records


def encoded_tables(tables: Sequence[SmallTable]) -> EncodedTables | None:
    """Decode and encode small tables together; None if one of their values is damaged or cannot be expressed.

    The caller then encodes these tables one by one. The error then names the table, or the settings replace the value.
    """
    try:
        keys, texts, identities, shown = (pa.array(each, pa.binary()) for each in _encoded(tables))
        events = [table.rows.events for table in tables]
        images = np.array([count for table in tables for count in table.few.images], np.int64)
        encoded = EncodedImages(
            formats=[table.plan.templates.format for table in tables],
            keys=keys,
            rows=texts,
            of_identities=identities,
            of_shown=shown,
            image_event=np.repeat(np.arange(len(images), dtype=np.int32), images),
            of_event=np.repeat(np.arange(len(tables)), [len(each) for each in events]),
        )
        changes = row_changes(encoded, np.concatenate([table.rows.kinds for table in tables]))
        return EncodedTables(tables, np.concatenate(events), changes)
    except (IncsnapError, *VALUE_ERRORS):
        return None


def _encoded(tables: Sequence[SmallTable]) -> list[list[bytes | None]]:
    """Return the encoded texts of all row images of the tables, in order: a list for each text of `TablePlan.placed`.

    An element is None if the table has no such text.
    """
    places: defaultdict[ValueKind, list[ValueSpan]] = defaultdict(list)
    firsts: list[dict[int, int]] = []
    for table in tables:
        first: dict[int, int] = {}
        for index, kind in table.plan.needed:
            of_kind = places[kind]
            first[index] = len(of_kind)
            of_kind += table.few.columns[index]
        firsts.append(first)
    packets = tables[0].rows.packets
    decoded = {kind: kind.decode(packets, of_kind) for kind, of_kind in places.items()}
    kinds = dict.fromkeys(kind for table in tables for kind in table.plan.texts)
    texts = {kind: kind.texts(decoded[kind.values]) for kind in kinds}
    made: list[list[bytes | None]] = [[] for _ in tables[0].plan.placed]
    for table, first in zip(tables, firsts, strict=True):
        for of_images, placed in zip(made, table.plan.placed, strict=True):
            of_images += _put_together(placed, texts, first, len(table.few))
    return made


def _put_together(
    placed: PlacedTexts | None, texts: Mapping[TextKind, list[bytes]], first: Mapping[int, int], count: int
) -> Sequence[bytes | None]:
    """Return the texts of `count` images.

    `first`: for each column the index of its first value among those of its kind.
    """
    if placed is None:
        return [None] * count
    columns = [texts[kind][first[index] : first[index] + count] for index, kind in placed.texts]
    return placed.template.rows(columns, count)
