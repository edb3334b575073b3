"""Headers with the names of the columns that an update has changed, or has left alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Columns, TextArray
from incsnap.columns.variable import Bools, Ints, take
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.types.modes import Modes


def changed_columns(view: TableView, images: Columns, before: Ints, after: Ints, modes: Modes) -> list[Bools]:
    """Return for each field of the view a mask of the updates: True where the update changes the value that is written.

    `before`, `after`: of each update the index of its row image.
    """
    return [_changes(field, images, before, after, modes) for field in view.fields]


def _changes(field: ViewField, images: Columns, before: Ints, after: Ints, modes: Modes) -> Bools:
    """Return a mask of the updates that change the field. The texts of values differ if the values do."""
    column = images[field.index]
    assert column is not None
    both: list[pa.Array | None] = [None] * len(images)
    both[field.index] = take(column, np.concatenate([before, after]))
    texts = pc.fill_null(field.encode(both, modes).complete(), "null")
    equal = pc.equal(texts.slice(0, len(before)), texts.slice(len(before)))
    different: Bools = ~np.asarray(equal.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return different


def names_of(fields: Sequence[ViewField], chosen: Sequence[Bools], updates: Bools) -> TextArray:
    """Return for each record a list of names, `["id","name"]`, as Kafka Connect writes a header that is a list.

    `updates`: a mask of the records; the others have the empty list. `chosen`: for each field a mask of the updates
    whose list has the field. Each distinct list is written once.
    """
    if not updates.any() or not fields:
        return pa.repeat(pa.scalar("[]", pa.string()), len(updates))
    packed = np.packbits(np.array(chosen, np.bool_).T, axis=1)
    patterns, pattern = np.unique(packed, axis=0, return_inverse=True)
    names = [_quoted(field.name) for field in fields]
    bits = np.unpackbits(patterns, axis=1, count=len(names)).tolist()
    lists = [f"[{','.join(name for name, bit in zip(names, row, strict=True) if bit)}]" for row in bits]
    place = np.zeros(len(updates), np.int64)
    place[updates] = pattern.reshape(-1) + 1
    return take(pa.array(["[]", *lists], pa.string()), place)


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
