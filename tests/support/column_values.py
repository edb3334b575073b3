"""What a column's type makes of values: in from both sources, out in both forms.

Each list goes through a slice of an array with one value more before it, so that offsets do not begin at 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from incsnap.tables import Column, TableId
from incsnap.types.column_type import describe
from incsnap.types.modes import Modes
from tests.support.spans import spans_of

TABLE = TableId("shop", "orders")


def decoded(column: Column, stored: Sequence[bytes | None], *, meta: int = 0) -> list[Any]:
    """Canonical values of bytes as they lie in a row image, without a length before them."""
    type_ = describe(column, TABLE)
    field = type_.field(meta)
    array = type_.decode(spans_of(stored, None if field.prefixed else field.size))
    return _checked(array, type_.arrow)


def parsed(column: Column, texts: Sequence[str | None]) -> list[Any]:
    """Canonical values of what the text protocol prints."""
    type_ = describe(column, TABLE)
    raw = pa.array([None if text is None else text.encode() for text in [*texts[:1], *texts]], pa.binary())
    return _checked(type_.from_text(raw.slice(1 if texts else 0)), type_.arrow)


def connected(column: Column, values: Sequence[Any], modes: Modes | None = None) -> list[Any]:
    """Connect values of canonical ones."""
    type_ = describe(column, TABLE)
    as_connect = type_.connect(pa.array([None, *values], type_.arrow).slice(1), modes or Modes())
    as_connect.validate(full=True)
    return list(as_connect.to_pylist())


def framed(column: Column, values: Sequence[Any]) -> list[Any]:
    """What a DataFrame's column has of canonical values."""
    type_ = describe(column, TABLE)
    framed_column = type_.frame(pa.array([None, *values], type_.arrow).slice(1))
    assert framed_column.type == type_.frame_type
    framed_column.validate(full=True)
    return list(framed_column.to_pylist())


def encoded(column: Column, values: Sequence[Any], modes: Modes | None = None) -> list[Any]:
    """What a reader of the JSON sees of canonical values."""
    type_ = describe(column, TABLE)
    array = pa.array([*values[:1], *values], type_.arrow).slice(1 if len(values) else 0)
    return [json.loads(text) for text in type_.to_json(array, modes or Modes()).to_pylist()]


def schema_of(column: Column, **modes: str) -> Any:
    """Type, last word of the logical name, parameters."""
    schema = describe(column, TABLE).schema(Modes(**modes))
    return schema.type, schema.name and schema.name.split(".")[-1], dict(schema.parameters)


def default_of(column: Column, shown: str, **modes: str) -> Any:
    """The DEFAULT that information_schema shows so, as JSON has it."""
    return describe(column, TABLE).default(shown, Modes(**modes))


def _checked(array: Any, type_: Any) -> list[Any]:
    assert array.type == type_
    array.validate(full=True)
    return list(array.to_pylist())
