"""The reading of rows whose members stand among the columns, or that a field contains: one after the other, as JSON."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray
from incsnap.verify.avro_reading import spelled, with_doubles
from incsnap.verify.edited_form import EditedRows
from signals import exact_json


def edited_rows(payload: BytesArray, edited: EditedRows, doubles: Collection[str] = ()) -> tuple[BytesArray, Array]:
    """Return the rows without their members, and whether each is a deletion. What is no JSON object stays as it is.

    `doubles`: names of the fields that show DOUBLEs.
    """
    read = [_row(each, edited, doubles) for each in payload.to_pylist()]
    return pa.array([row for row, _ in read], pa.binary()), pa.array([deleted for _, deleted in read], pa.bool_())


def _row(value: bytes | None, edited: EditedRows, doubles: Collection[str]) -> tuple[bytes | None, bool]:
    if value is None:
        return None, False
    try:
        row: Any = exact_json.parsed(value)
        for name in edited.hoists:
            row = row[name]
        deleted = edited.deleted != "" and row[edited.deleted] in ("true", True)
    except (ValueError, KeyError, TypeError):
        return value, False
    if not isinstance(row, dict):
        return value, row is None
    own = {name: each for name, each in row.items() if name not in edited.added}
    return spelled(with_doubles(own, doubles)), deleted
