"""The formats of a DataFrame of changes: values as columns, in place of JSON or Avro.

A value is a struct of the row's columns, each in its own type; or a struct of `before` and `after`, which are such
structs. What a DataFrame shows beside the row is in the marks of the records (`envelope.records.MARKS`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import Array, Columns, StructArray
from incsnap.columns.variable import take
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.format import OPERATIONS, Changes
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.types.modes import Modes

_DELETE = OPERATIONS.index("d")
#: Formats of values: the row alone (for a deletion the deleted row), or both images.
ROW, IMAGES = FormatChoice("row"), FormatChoice("images")
#: Like ROW. The fields of the row also say which columns are the key, and which value old rows have in a new column.
DESCRIBED = FormatChoice("described")
FRAMES = (ROW, IMAGES, DESCRIBED)
#: Metadata of a described field: the column is part of the key that tells the table's rows apart.
KEY_MARK = b"incsnap.key"
#: Metadata of a described field: the column's constant DEFAULT, as an Arrow IPC stream with one value, in base64.
#: Java's Arrow takes only UTF-8.
DEFAULT_MARK = b"incsnap.default"


def frame_fields(view: TableView) -> list[pa.Field]:
    """Return the Arrow fields of the row's columns. Raise UnsupportedType for a column that incsnap cannot read."""
    return [pa.field(field.name, field.frame_type) for field in view.fields]


def described_fields(view: TableView, modes: Modes) -> list[pa.Field]:
    """Return the Arrow fields of the row's columns with KEY_MARK and DEFAULT_MARK in their metadata."""
    keys = key_names(view)
    fields = []
    for field, plain in zip(view.fields, frame_fields(view), strict=True):
        marks = {KEY_MARK: b"true"} if field.name in keys else {}
        value = _default(field, modes)
        if value is not None:
            marks[DEFAULT_MARK] = _one_value(value)
        fields.append(plain.with_metadata(marks))
    return fields


def _default(field: ViewField, modes: Modes) -> Array | None:
    """Return an array with the column's constant DEFAULT; None if the DEFAULT is NULL, an expression or unknown."""
    if field.default is None or field.default.upper().startswith("CURRENT_TIMESTAMP"):
        return None
    canonical = field.type.canonical_default(field.default)
    return None if canonical is None else field.frame((*[None] * field.index, canonical), modes)


def _one_value(value: Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([value], ["value"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue())


class FrameValues:
    """The format of values in a DataFrame. `choice`: one of FRAMES."""

    def __init__(self, view: TableView, modes: Modes, choice: FormatChoice) -> None:
        self._view, self._modes, self._images = view, modes, choice == IMAGES
        self._fields = described_fields(view, modes) if choice == DESCRIBED else frame_fields(view)

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> StructArray:
        """Return a struct for each row that a SELECT has read."""
        row = self._rows(columns, None)
        if not self._images:
            return row
        return _struct([pa.nulls(len(row), row.type), row], self._both())

    def changes(self, images: Columns, what: Changes) -> StructArray:
        """Return a struct for each record of `what`."""
        if self._images:
            return _struct([self._rows(images, what.before), self._rows(images, what.after)], self._both())
        return self._rows(images, np.where(what.op == _DELETE, what.before, what.after))

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return JSON with time and GTID of the TRUNCATE, because there is no row that could have marks."""
        return json.dumps({"ts_us": source.ts_us, "gtid": source.gtid}).encode()

    def _both(self) -> list[pa.Field]:
        row = pa.struct(self._fields)
        return [pa.field("before", row), pa.field("after", row)]

    def _rows(self, columns: Columns, index: Any) -> StructArray:
        """Return the rows at `index`, null where the index is -1; all rows if `index` is None."""
        values = [field.frame(columns, self._modes) for field in self._view.fields]
        if index is None:
            return _struct(values, self._fields, rows_of(columns))
        missing = index < 0
        return _struct(
            [take(each, index) for each in values],
            self._fields,
            len(index),
            pa.array(missing) if missing.any() else None,
        )


def _struct(
    values: Sequence[Any], fields: Sequence[pa.Field], rows: int | None = None, missing: Array | None = None
) -> StructArray:
    if not values:
        # Arrow takes the length of a struct from its children.
        return pa.array([{}] * (rows or 0), pa.struct([]))
    return pa.StructArray.from_arrays(list(values), fields=list(fields), mask=missing)


def key_names(view: TableView) -> tuple[str, ...]:
    """Return the names of the DataFrame's columns that tell rows apart.

    The result is empty if one of these columns is hidden (`hidden_keys`): several rows may share the others.
    """
    names = {field.index: field.name for field in view.fields}
    return () if hidden_keys(view) else tuple(names[index] for index in view.identity)


def hidden_keys(view: TableView) -> tuple[str, ...]:
    """Return why columns that tell rows apart are hidden: one text per column, such as "id is left out".

    The DataFrame leaves such a column out, or several keys share one of its values (a mask, a boolean).
    """
    fields = {field.index: field for field in view.fields}
    hidden = []
    for index in view.identity:
        field, name = fields.get(index), view.shape.columns[index].name
        if field is None:
            hidden.append(f"{name} is left out")
        elif field.masked_in_frame:
            hidden.append(f"{name} is masked or truncated")
        elif field.boolean:
            hidden.append(f"{name} is written as a boolean")
    return tuple(hidden)
