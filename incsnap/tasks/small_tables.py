"""Tables of which a slice has a few rows are decoded and encoded together, into blocks of many tables.

Table by table each costs 2 ms and more, however few its rows are: some hundred calls of NumPy and Arrow. Together it is
a tenth of that: places of values are found in plain Python, then all values of one kind are decoded and encoded at
once, and rows are put together one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.binlog.protocol.few_rows import FewRows
from incsnap.binlog.protocol.unreadable import VALUE_ERRORS
from incsnap.binlog.table_rows import TableRows
from incsnap.columns.images import Place
from incsnap.config.settings import Settings
from incsnap.envelope.many_tables import RecordsOfTables, RowsOfTables, records_of_tables
from incsnap.errors import IncsnapError
from incsnap.snapshot.offset import TopicLayout
from incsnap.tables import Defaults, TableId
from incsnap.tasks.blocks import Run
from incsnap.tasks.event_sources import EventSources
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
    """Of one slice. ``growth`` and ``record_bytes``: what a byte of the binlog and a record become, about."""

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
    found: list[SmallTable] = []
    size = values = 0
    for table in tables:
        if found and (size + table.bytes > most or values + table.values > _MOST_VALUES):
            yield found
            found, size, values = [], 0, 0
        found.append(table)
        size, values = size + table.bytes, values + table.values
    if found:
        yield found


def records_together(
    tables: Sequence[SmallTable], sources: EventSources, layout: TopicLayout, now_us: int
) -> RecordsOfTables | None:
    """None where a value is damaged, or has no form: by itself each table tells what is wrong, or writes what it is to
    write in its place."""
    try:
        keys, rows = _encoded(tables)
        events = np.concatenate([table.rows.events for table in tables])
        images = np.array([count for table in tables for count in table.few.images], np.int64)
        what = RowsOfTables(
            [table.plan.patterns for table in tables],
            pa.array(keys, pa.binary()),
            pa.array(rows, pa.binary()),
            np.repeat(np.arange(len(images), dtype=np.int32), images),
            np.concatenate([table.rows.kinds for table in tables]),
            np.repeat(np.arange(len(tables)), [len(table.rows.events) for table in tables]),
        )
        return records_of_tables(what, sources.of(events), layout.partitions, layout.buckets, now_us=now_us)
    except (IncsnapError, *VALUE_ERRORS):
        return None


def blocks_of(made: RecordsOfTables, tables: Sequence[SmallTable]) -> Iterator[tuple[int, tuple[Run, ...], Any]]:
    """(bucket, tables, records in binlog order of each) for every bucket that has any."""
    for bucket in np.unique(made.bucket).tolist():
        of_bucket = np.flatnonzero(made.bucket == bucket)
        records = made.records if len(of_bucket) == len(made.bucket) else made.records.take(pa.array(of_bucket))
        numbers, counts = np.unique(made.table[of_bucket], return_counts=True)
        plans = [tables[number].plan for number in numbers.tolist()]
        runs = [Run(plan.patterns.topic, plan.name, count) for plan, count in zip(plans, counts.tolist(), strict=True)]
        yield bucket, tuple(runs), records


def _encoded(tables: Sequence[SmallTable]) -> tuple[list[bytes | None], list[bytes]]:
    """The key and the row of each image."""
    places: defaultdict[ValueKind, list[Place]] = defaultdict(list)
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
    kinds = dict.fromkeys(cell for table in tables for _, cell in table.plan.cells)
    cells = {kind: kind.cells(decoded[kind.values]) for kind in kinds}
    keys: list[bytes | None] = []
    rows: list[bytes] = []
    for table, first in zip(tables, firsts, strict=True):
        plan, count = table.plan, len(table.few)
        rows += _put_together(plan.row, cells, first, count)
        keys += [None] * count if plan.key is None else _put_together(plan.key, cells, first, count)
    return keys, rows


def _put_together(
    placed: PlacedCells, cells: Mapping[CellKind, list[bytes]], first: Mapping[int, int], count: int
) -> list[bytes]:
    """Rows or keys of ``count`` images. ``first``: where the values of a column begin among those of its kind."""
    columns = [cells[kind][first[index] : first[index] + count] for index, kind in placed.cells]
    return placed.pattern.rows(columns, count)
