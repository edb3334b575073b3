"""What is known of a table before its first row, for decoding and encoding its rows together with those of others.

Made once for each definition of a table and kept by the worker.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from incsnap.binlog.protocol.row_images import types_and_fields
from incsnap.binlog.protocol.table_map import TableMap
from incsnap.columns.images import Field, ImageLayout, ValueSpan, layout_of
from incsnap.columns.packets import Packets, Spans
from incsnap.config.settings import Settings
from incsnap.envelope.cells import Cells, Pattern
from incsnap.envelope.many_tables import RowPatterns, row_patterns
from incsnap.tables import Column, Defaults, TableId
from incsnap.tasks.formats import format_key, format_of
from incsnap.types.column_type import ColumnType, describe

_NO_TABLE = TableId("", "")


@dataclass(frozen=True, slots=True, eq=False)
class ValueKind:
    """Columns whose values are decoded alike, whatever tables they are of: there is one object for each kind."""

    type: ColumnType
    field: Field

    def decode(self, packets: Packets, places: Sequence[ValueSpan]) -> Any:
        """The canonical column. Raises what ``ColumnType.decode`` does."""
        start, length = np.array(places, np.int64).reshape(-1, 2).T
        present = length >= 0
        valid = None if present.all() else present
        lengths = np.maximum(length, 0) if self.field.prefixed else self.field.size
        return self.type.decode(Spans(packets, np.ascontiguousarray(start), lengths, valid))


@dataclass(frozen=True, slots=True, eq=False)
class CellKind:
    """Values of one kind that are encoded alike: there is one object for each kind."""

    values: ValueKind
    cells: Cells


@dataclass(frozen=True, slots=True, eq=False)
class PlacedCells:
    """A pattern, and its cells by the index of their column."""

    pattern: Pattern
    cells: tuple[tuple[int, CellKind], ...]


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """``needed``: columns that are decoded; ``key`` and what follows: as ``patterns`` has them; ``cells``: of all of
    these, each once; ``literal_bytes``: of what is made of an image beside its values, the names of columns."""

    patterns: RowPatterns
    name: str
    layout: ImageLayout
    needed: tuple[tuple[int, ValueKind], ...]
    key: PlacedCells | None
    row: PlacedCells
    identity: PlacedCells | None
    shown: PlacedCells | None
    cells: tuple[CellKind, ...]
    literal_bytes: int


class TablePlans:
    """The plans of one job's tables, by their table maps."""

    #: Columns of all of them, 0.3 KB each; then all are forgotten and made again.
    _MOST_COLUMNS = 200_000

    def __init__(self) -> None:
        self._columns = 0
        #: By the identity of the map, which is kept so that no other object can have it.
        self._known: dict[int, tuple[TableMap, Defaults, TablePlan | None]] = {}

    def of(self, settings: Settings, table_map: TableMap, defaults: Defaults) -> TablePlan | None:
        """None for a table whose records are written by themselves. Raises what ``format_of`` does."""
        known = self._known.get(id(table_map))
        if known is not None and known[0] is table_map and known[1] == defaults:
            return known[2]
        if self._columns >= self._MOST_COLUMNS:
            self._known.clear()
            self._columns = 0
        plan = _plan(settings, table_map, defaults)
        self._columns += len(table_map.shape.columns) if known is None else 0
        self._known[id(table_map)] = table_map, defaults, plan
        return plan


def plans_of(settings: Settings) -> TablePlans:
    """Kept by the worker between batches."""
    return _plans_of(format_key(settings))


@lru_cache(maxsize=2)
def _plans_of(key: Hashable) -> TablePlans:
    return TablePlans()


def _plan(settings: Settings, table_map: TableMap, defaults: Defaults) -> TablePlan | None:
    shape = table_map.shape.with_defaults(defaults) if defaults else table_map.shape
    patterns = row_patterns(format_of(settings, shape))
    if patterns is None:
        return None
    _, fields = types_and_fields(table_map)
    kinds = [_value_kind(replace(column, name=""), field) for column, field in zip(shape.columns, fields, strict=True)]
    needed = tuple((index, kinds[index]) for index in sorted(patterns.format.view.needed))
    placed = {
        name: None if pattern is None else _placed(pattern, kinds)
        for name, pattern in (("key", patterns.key), ("identity", patterns.identity), ("shown", patterns.shown))
    }
    row = _placed(patterns.row, kinds)
    whole = [each for each in (row, *placed.values()) if each is not None]
    return TablePlan(
        patterns,
        str(shape.id),
        layout_of(fields),
        needed,
        row=row,
        **placed,
        cells=tuple(dict.fromkeys(kind for each in whole for _, kind in each.cells)),
        literal_bytes=sum(len(each.pattern.template) for each in whole),
    )


def _placed(pattern: Pattern, kinds: Sequence[ValueKind]) -> PlacedCells:
    return PlacedCells(pattern, tuple((index, _cell_kind(kinds[index], cells)) for index, cells in pattern.cells))


@lru_cache(maxsize=4096)
def _value_kind(column: Column, field: Field) -> ValueKind:
    return ValueKind(describe(column, _NO_TABLE), field)


@lru_cache(maxsize=4096)
def _cell_kind(values: ValueKind, cells: Cells) -> CellKind:
    return CellKind(values, cells)
