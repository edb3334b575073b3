"""Values as columns: what a DataFrame of changes is given in place of JSON or Avro.

A value is a struct of the row's columns, each in its own type; or of ``before`` and ``after``, which are such structs.
What a DataFrame tells beside the row is in the records' marks (``envelope.records.MARKS``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.variable import take
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.format import OPERATIONS, Changes
from incsnap.envelope.identity import EXACT, identifying
from incsnap.envelope.json_rows import json_objects, rows_of
from incsnap.envelope.source_block import SourceConstants
from incsnap.envelope.table_view import Columns, TableView

_DELETE = OPERATIONS.index("d")
#: Kinds of ``FormatChoice``: the row alone (of a deletion, the one that was deleted), or both images.
ROW, IMAGES = FormatChoice("row"), FormatChoice("images")


def frame_fields(view: TableView) -> list[pa.Field]:
    """The row's columns. Raises ``UnsupportedType``."""
    return [pa.field(field.name, field.frame_type) for field in view.fields]


class FrameKeys:
    """What the rows of a DataFrame are told apart by, not what Kafka would be sent: an update that changes it is a
    deletion and an insertion, also where the settings give both keys one form, or name other columns for it."""

    def __init__(self, view: TableView) -> None:
        self._fields = identifying(view)

    def keys(self, columns: Columns) -> Any:
        return json_objects(self._fields, columns, EXACT)


class FrameValues:
    """``images``: with ``before`` and ``after``; else the row alone."""

    def __init__(self, view: TableView, *, images: bool) -> None:
        self._view, self._images = view, images
        self._fields = frame_fields(view)

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> Any:
        """A struct for each row."""
        row = self._rows(columns, None)
        if not self._images:
            return row
        return _struct([pa.nulls(len(row), row.type), row], self._both())

    def changes(self, images: Columns, what: Changes) -> Any:
        """A struct for each record of ``what``."""
        if self._images:
            return _struct([self._rows(images, what.before), self._rows(images, what.after)], self._both())
        return self._rows(images, np.where(what.op == _DELETE, what.before, what.after))

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """There is no row: JSON of what its marks would be."""
        return json.dumps({"ts_us": source.ts_us, "gtid": source.gtid}).encode()

    def _both(self) -> list[pa.Field]:
        row = pa.struct(self._fields)
        return [pa.field("before", row), pa.field("after", row)]

    def _rows(self, columns: Columns, index: Any) -> Any:
        """The rows of these images, null where the index is -1; None: of all."""
        values = [field.frame(columns) for field in self._view.fields]
        if index is None:
            return _struct(values, self._fields, rows_of(columns))
        missing = index < 0
        return _struct(
            [take(each, index) for each in values],
            self._fields,
            len(index),
            pa.array(missing) if missing.any() else None,
        )


def _struct(values: Sequence[Any], fields: Sequence[pa.Field], rows: int | None = None, missing: Any = None) -> Any:
    if not values:
        # Arrow takes the length of a struct from its children.
        return pa.array([{}] * (rows or 0), pa.struct([]))
    return pa.StructArray.from_arrays(list(values), fields=list(fields), mask=missing)


def key_names(view: TableView) -> tuple[str, ...]:
    """The columns that tell rows apart, as the DataFrame names them; none where it does not tell one of them as it is
    (``hidden_keys``), for the others may be those of several rows."""
    names = {field.index: field.name for field in view.fields}
    return () if hidden_keys(view) else tuple(names[index] for index in view.identity)


def hidden_keys(view: TableView) -> tuple[str, ...]:
    """Which of the columns that tell rows apart the DataFrame leaves out, or gives values that several keys share, each
    with what does so."""
    fields = {field.index: field for field in view.fields}
    hidden = []
    for index in view.identity:
        field, name = fields.get(index), view.shape.columns[index].name
        if field is None:
            hidden.append(f"{name} is left out")
        elif field.masked_in_frame:
            hidden.append(f"{name} is masked or truncated")
        elif field.boolean:
            hidden.append(f"{name} is told as a boolean")
    return tuple(hidden)
