"""Helpers that convert values by a column's type: from both sources, and to each output form.

Each list is a slice of an array with one more value in front. So offsets do not begin at 0.
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
    """Return the canonical values of bytes as in a row image, without length bytes."""
    type_ = describe(column, TABLE)
    field = type_.field(meta)
    array = type_.decode(spans_of(stored, None if field.prefixed else field.size))
    return _checked(array, type_.arrow)


def parsed(column: Column, texts: Sequence[str | None]) -> list[Any]:
    """Return the canonical values of texts that the text protocol returns."""
    type_ = describe(column, TABLE)
    raw = pa.array([None if text is None else text.encode() for text in [*texts[:1], *texts]], pa.binary())
    return _checked(type_.from_text(raw.slice(1 if texts else 0)), type_.arrow)


def connected(column: Column, values: Sequence[Any], modes: Modes | None = None) -> list[Any]:
    """Return canonical values as Connect values."""
    type_ = describe(column, TABLE)
    as_connect = type_.connect(pa.array([None, *values], type_.arrow).slice(1), modes or Modes())
    as_connect.validate(full=True)
    return list(as_connect.to_pylist())


def framed(column: Column, values: Sequence[Any]) -> list[Any]:
    """Return canonical values as values of a DataFrame's column."""
    type_ = describe(column, TABLE)
    framed_column = type_.frame(pa.array([None, *values], type_.arrow).slice(1))
    assert framed_column.type == type_.frame_type
    framed_column.validate(full=True)
    return list(framed_column.to_pylist())


def encoded(column: Column, values: Sequence[Any], modes: Modes | None = None) -> list[Any]:
    """Return canonical values as a reader of the JSON sees them."""
    type_ = describe(column, TABLE)
    array = pa.array([*values[:1], *values], type_.arrow).slice(1 if len(values) else 0)
    return [json.loads(text) for text in type_.to_json(array, modes or Modes()).to_pylist()]


def schema_of(column: Column, **modes: str) -> Any:
    """Return the type, the last part of the logical name, and the parameters of the column's schema."""
    schema = describe(column, TABLE).schema(Modes(**modes))
    return schema.type, schema.name and schema.name.split(".")[-1], dict(schema.parameters)


def default_of(column: Column, shown: str, **modes: str) -> Any:
    """Return a DEFAULT as in the JSON. `shown` is the text in information_schema."""
    return describe(column, TABLE).default(shown, Modes(**modes))


def _checked(array: Any, type_: Any) -> list[Any]:
    assert array.type == type_
    array.validate(full=True)
    return list(array.to_pylist())
