"""A view whose fields bring their schemas and their Connect values along: formats are tried without MySQL's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from incsnap.connect.schema import Schema
from incsnap.envelope.table_view import Columns
from incsnap.tables import TableId, TableShape
from incsnap.types.modes import Modes


@dataclass(frozen=True)
class Field:
    """The column itself holds the Connect values."""

    index: int
    name: str
    of: Schema

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
