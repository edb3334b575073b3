"""The definitions by which rows of a batch are read if their table maps do not name the columns.

Rows lie between two statements of the batch. Their definition is certain if it was the same after each statement that
may lie before them, and if it fits their table maps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from incsnap.binlog.buffer_position import UnnamedRows
from incsnap.binlog.table_rows import Charsets, misfit
from incsnap.planner.definition_history import KnownTables
from incsnap.tables import TableId, TableShape


@dataclass(frozen=True, slots=True)
class RowsWithoutDefinition:
    """Rows of a batch for which no definition is known."""

    at: UnnamedRows  #: the rows: their table and place, and the statements around them
    why: str  #: why no definition is known; "" if nobody knows yet
    misfit: bool = False  #: whether a definition was known that does not fit the rows' table map

    def __str__(self) -> str:
        return f"{self.at.place}: rows of {self.at.table} were written with binlog_row_metadata=MINIMAL"


def definitions_of_rows(
    unnamed: Sequence[UnnamedRows],
    history: Sequence[KnownTables],
    maps: Mapping[TableId, Collection[bytes]],
    charsets: Charsets,
) -> tuple[dict[TableId, TableShape], dict[TableId, RowsWithoutDefinition]]:
    """Return the definitions by which the rows are read, and the rows without a known definition, by table.

    `history` is what was known before the batch's first statement and after each statement. `maps` are the table maps
    of the rows.
    """
    read_by: dict[TableId, TableShape] = {}
    missing: dict[TableId, RowsWithoutDefinition] = {}
    for rows in unnamed:
        table = rows.table
        shapes = {each.shape(table) for each in history[rows.first : rows.last + 1]}
        shape = shapes.pop() if len(shapes) == 1 else None
        if shape is None:
            missing[table] = RowsWithoutDefinition(rows, history[rows.first].lost.get(table, ""))
        elif differs := first_misfit(maps.get(table, ()), shape, charsets):
            why = f"by another definition than is known: {differs}"
            missing[table] = RowsWithoutDefinition(rows, why, misfit=True)
        else:
            read_by[table] = shape
    return read_by, missing


def first_misfit(maps: Collection[bytes], shape: TableShape, charsets: Charsets) -> str:
    """Return how the first table map that does not fit the definition differs from it; "" if all fit."""
    return next(filter(None, (misfit(each, shape, charsets) for each in maps)), "")
