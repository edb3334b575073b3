"""Tables of which a slice has a few rows are decoded and encoded together, into blocks of many tables.

Table by table each costs 2 ms and more, however few its rows are: some hundred calls of NumPy and Arrow. Together it is
a tenth of that: places of values are found in plain Python, then all values of one kind are decoded and encoded at
once, and rows are put together one by one.
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
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.many_tables import ChangesOfTables, RowsOfTables, changes_of_tables, records_of_tables
from incsnap.errors import IncsnapError
from incsnap.snapshot.offset import TopicLayout
from incsnap.tables import Defaults, TableId
from incsnap.tasks.blocks import Run
from incsnap.tasks.event_sources import EventSources
from incsnap.tasks.numbering import Counted
from incsnap.tasks.table_plans import CellKind, PlacedCells, TablePlan, ValueKind, plans_of

#: More row images than these take longer in plain Python than in whole columns.
_MOST_IMAGES = 128
#: And so have more values: 200 columns of 128 rows take half as long again.
_MOST_VALUES_OF_ONE = 10_000
#: Bytes of events that are looked into at all.
_MOST_BYTES = 64 << 10
#: Values that are looked at together: a place takes 110 bytes in plain Python, and NULLs next to none in the binlog, so
#: a slice of 6 MB took 250 MB.
_MOST_VALUES = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class SmallTable:
    """``bytes``: of its records, about."""

    rows: TableRows
    plan: TablePlan
    few: FewRows
    bytes: int

    @property
    def values(self) -> int:
        return len(self.few) * len(self.few.columns)


class SmallTables:
    """Finds the small tables of one slice. ``growth`` and ``record_bytes``: what a byte of the binlog and a record
    become, about."""

    def __init__(
        self, settings: Settings, defaults: Mapping[TableId, Defaults], growth: int, record_bytes: int
    ) -> None:
        self._settings, self._defaults = settings, defaults
        self._growth, self._record_bytes = growth, record_bytes
        self._plans = plans_of(settings)

    def small(self, rows: TableRows, sources: EventSources) -> SmallTable | None:
        """None for a table that is to be written by itself."""
        if len(rows.events) > _MOST_IMAGES or (size := int(rows.sizes.sum())) > _MOST_BYTES:
            return None
        plan = self._plans.of(self._settings, rows.table_map, self._defaults.get(rows.shape.id, ()))
        if plan is None:
            return None
        few = rows.walked(plan.layout, min(_MOST_IMAGES, _MOST_VALUES_OF_ONE // max(1, len(plan.layout.fields))))
        if few is None:
            return None
        constant = self._record_bytes + plan.patterns.record_bytes + plan.literal_bytes
        texts = int(sources.text_bytes(rows.events).max()) if sources.has_texts else 0
        return SmallTable(rows, plan, few, size * self._growth + len(few) * (constant + texts))


def together(tables: Iterable[SmallTable], most: int) -> Iterator[list[SmallTable]]:
    """Tables whose records take about ``most`` bytes. Of ``tables`` no more are asked for than it takes."""
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
class LaidTogether:
    """Tables of which all is encoded that is theirs alone. ``events``: their rows events' numbers in the slice."""

    tables: Sequence[SmallTable]
    events: Longs
    changes: ChangesOfTables

    @property
    def moved(self) -> list[TableRows]:
        """Tables that are to be written by themselves after all."""
        return [self.tables[number].rows for number in sorted(self.changes.moved)]

    def counted(self, slice_: Slice) -> list[Counted]:
        """The records that a transaction counts, of each table that has any."""
        event = self.changes.event[self.changes.records.has_value]
        numbers, firsts = np.unique(self.changes.what.of_event[event], return_index=True)
        events = self.events[event]
        owners = slice_.transaction_of(events)
        borders = pairwise([*firsts.tolist(), len(event)])
        return [
            Counted(self.tables[number].plan.name, events[first:end], owners[first:end])
            for number, (first, end) in zip(numbers.tolist(), borders, strict=True)
        ]

    def blocks(
        self, sources: EventSources, orders: Sequence[TransactionOrder] | None, layout: TopicLayout, now_us: int
    ) -> Iterator[tuple[int, tuple[Run, ...], Any]]:
        """Gives (bucket, tables, records in binlog order of each) for every bucket that has any. ``orders``: of each of
        ``counted``, None where nobody counts."""
        order = None
        if orders is not None:
            none = [np.zeros(0, np.int64)]
            total, of_table = ([getattr(each, name) for each in orders] for name in ("total", "of_table"))
            order = TransactionOrder(np.concatenate(none + total), np.concatenate(none + of_table))
        source = sources.of(self.events)
        made = records_of_tables(self.changes, source, order, layout.partitions, layout.buckets, now_us=now_us)
        for bucket in np.unique(made.bucket).tolist():
            of_bucket = np.flatnonzero(made.bucket == bucket)
            records = made.records if len(of_bucket) == len(made.bucket) else made.records.take(pa.array(of_bucket))
            numbers, counts = np.unique(made.table[of_bucket], return_counts=True)
            plans = [self.tables[number].plan for number in numbers.tolist()]
            runs = zip(plans, counts.tolist(), strict=True)
            yield bucket, tuple(Run(plan.patterns.topic, plan.name, count) for plan, count in runs), records


def laid_together(tables: Sequence[SmallTable]) -> LaidTogether | None:
    """None where a value is damaged, or has no form: by itself each table tells what is wrong, or writes what it is to
    write in its place."""
    try:
        made = _encoded(tables)
        events = [table.rows.events for table in tables]
        images = np.array([count for table in tables for count in table.few.images], np.int64)
        what = RowsOfTables(
            tables=[table.plan.patterns for table in tables],
            keys=pa.array(made.keys, pa.binary()),
            rows=pa.array(made.rows, pa.binary()),
            identities=pa.array(made.identities, pa.binary()),
            shown=pa.array(made.shown, pa.binary()),
            image_event=np.repeat(np.arange(len(images), dtype=np.int32), images),
            kinds=np.concatenate([table.rows.kinds for table in tables]),
            of_event=np.repeat(np.arange(len(tables)), [len(each) for each in events]),
        )
        return LaidTogether(tables, np.concatenate(events), changes_of_tables(what))
    except (IncsnapError, *VALUE_ERRORS):
        return None


class _Encoded:
    """The key of each image, its row and so on; None where its table has none."""

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.rows: list[bytes | None] = []
        self.identities: list[bytes | None] = []
        self.shown: list[bytes | None] = []


def _encoded(tables: Sequence[SmallTable]) -> _Encoded:
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
    kinds = dict.fromkeys(kind for table in tables for kind in table.plan.cells)
    cells = {kind: kind.cells(decoded[kind.values]) for kind in kinds}
    made = _Encoded()
    for table, first in zip(tables, firsts, strict=True):
        plan, count = table.plan, len(table.few)
        made.keys += _put_together(plan.key, cells, first, count)
        made.rows += _put_together(plan.row, cells, first, count)
        made.identities += _put_together(plan.identity, cells, first, count)
        made.shown += _put_together(plan.shown, cells, first, count)
    return made


def _put_together(
    placed: PlacedCells | None, cells: Mapping[CellKind, list[bytes]], first: Mapping[int, int], count: int
) -> Sequence[bytes | None]:
    """The texts of ``count`` images. ``first``: where the values of a column begin among those of its kind."""
    if placed is None:
        return [None] * count
    columns = [cells[kind][first[index] : first[index] + count] for index, kind in placed.cells]
    return placed.pattern.rows(columns, count)
