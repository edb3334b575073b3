"""Values of columns of one kind, whatever tables they are of, encoded together; and how a row is made of them.

Encoding a column of three values costs as much as one of a thousand. So where many tables have a few rows each, what
they have alike is encoded once for all of them, and their rows are put together one by one (``Pattern``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from incsnap.connect.avro_columns import AvroRow
from incsnap.connect.schema import Schema
from incsnap.envelope.table_view import ViewField
from incsnap.errors import ValueRefused
from incsnap.tables import TableId
from incsnap.types.modes import Modes

_NO_TABLE = TableId("", "")


class Cells(Protocol):
    """Equal ones encode equal values alike."""

    def __hash__(self) -> int: ...

    def __call__(self, values: Any) -> list[bytes]:
        """The bytes of each value of a canonical column as they stand in a row. Raises ``IncsnapError``, which does not
        name a table, where one has none; nothing is logged."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a row is made of: a template of ``bytes``, and what stands in it: (index of the column, its cells)."""

    template: bytes
    cells: tuple[tuple[int, Cells], ...]

    @classmethod
    def of(cls, literals: Sequence[bytes], cells: Sequence[tuple[int, Cells]]) -> Pattern:
        """``literals``: before each cell, and behind the last."""
        return cls(b"%b".join(literal.replace(b"%", b"%%") for literal in literals), tuple(cells))

    def rows(self, columns: Sequence[Sequence[bytes]], count: int) -> list[bytes]:
        """``columns``: the encoded values of each of ``cells``."""
        template = self.template
        return [template % row for row in zip(*columns, strict=True)] if columns else [template % ()] * count


@dataclass(frozen=True, slots=True)
class JsonCells:
    field: ViewField
    modes: Modes

    def __call__(self, values: Any) -> list[bytes]:
        _refuse(self.field, values, self.modes)
        texts = self.field.encode([values], self.modes).complete()
        if texts.null_count:
            texts = texts.fill_null("null")
        # A tenth of what a cast takes for a few values.
        encoded: list[bytes] = texts.view(pa.binary()).to_pylist()
        return encoded


@dataclass(frozen=True, slots=True)
class AvroCells:
    field: ViewField
    schema: Schema
    modes: Modes

    def __call__(self, values: Any) -> list[bytes]:
        _refuse(self.field, values, self.modes)
        row = AvroRow(len(values))
        row.field("", self.schema, self.field.connect([values], self.modes))
        encoded: list[bytes] = row.joined().to_pylist()
        return encoded


def json_cells(field: ViewField, modes: Modes) -> Cells:
    return _one(JsonCells(_unnamed(field), modes))


def avro_cells(field: ViewField, schema: Schema, modes: Modes) -> Cells:
    return _one(AvroCells(_unnamed(field), schema, modes))


@lru_cache(maxsize=4096)
def _one(cells: Cells) -> Cells:
    """One object for equal ones: 400 bytes for each column of each table."""
    return cells


def _unnamed(field: ViewField) -> ViewField:
    """Without what makes no difference to values."""
    column = replace(field.column, name="")
    return replace(field, index=0, name="", column=column, table=_NO_TABLE, default=None, source=None)


def _refuse(field: ViewField, values: Any, modes: Modes) -> None:
    """Table and column are named, and nulls written, where tables are encoded one by one."""
    if field.type.refused(values, modes) is not None:
        raise ValueRefused("a value has no form")
