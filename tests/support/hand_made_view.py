"""A view whose fields have their own schemas and Connect values, to test formats without MySQL's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from incsnap.columns.arrow import Columns
from incsnap.connect.schema import Schema
from incsnap.tables import TableId, TableShape
from incsnap.types.modes import Modes


@dataclass(frozen=True)
class Field:
    """A field whose column already contains Connect values."""

    index: int
    name: str
    of: Schema  #: schema of the field

    def schema(self, modes: Modes) -> Schema:
        return self.of

    def connect(self, columns: Columns, modes: Modes) -> Any:
        return columns[self.index]


def hand_made_view(schemas: Mapping[str, Schema], key: Sequence[str] = ()) -> Any:
    fields = {name: Field(index, name, schema) for index, (name, schema) in enumerate(schemas.items())}
    return SimpleNamespace(
        shape=TableShape(TableId("shop", "orders"), ()),
        fields=tuple(fields.values()),
        key=tuple(fields[name] for name in key),
    )
