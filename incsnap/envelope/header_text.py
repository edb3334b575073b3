"""The headers `__debezium.oldkey` and `__debezium.newkey`: keys as text, whatever the format of keys is.

Kafka Connect writes headers through its SimpleHeaderConverter: JSON without a schema, decimals as plain numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns, TextArray
from incsnap.columns.variable import Bools, Ints, take
from incsnap.connect.json_numbers import plain_text
from incsnap.connect.json_text import literal
from incsnap.envelope.json_rows import join
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.types.modes import Modes

_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def key_headers(view: TableView, images: Columns, index: Ints, chosen_rows: Bools, modes: Modes) -> BytesArray:
    """Return the key of image `index[i]` where `chosen_rows[i]` is True, otherwise null (`pa.binary()`).

    Only the chosen keys are encoded; they are few. All are null if the view has no key.
    """
    if not view.key or not chosen_rows.any():
        return pa.nulls(len(index), pa.binary())
    chosen, place = np.unique(index[chosen_rows], return_inverse=True)
    rows = [None if column is None else column.take(pa.array(chosen)) for column in images]
    parts: list[Any] = []
    for number, field in enumerate(view.key):
        parts += [("," if number else "{") + literal(field.name) + ":", _text(field, rows, modes)]
    places = np.full(len(index), -1, np.int64)
    places[chosen_rows] = place
    return take(join([*parts, "}"]), places)


def _text(field: ViewField, columns: Columns, modes: Modes) -> TextArray:
    """Return the JSON of the key's field for each row; a decimal is a plain number."""
    if field.type.schema(modes).name != _DECIMAL:
        return field.encode(columns, modes).complete()
    return plain_text(columns[field.index])
