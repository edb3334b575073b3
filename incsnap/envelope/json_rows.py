"""Rows as JSON objects: whole columns of text joined with the literals between them, in one pass of one Arrow kernel.

Whatever stands before and behind the row in a record (``head``, ``tail``) goes into the same pass, because copying
the row once more would cost as much as making it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.envelope.table_view import Columns, ViewField
from incsnap.types.json_text import literal
from incsnap.types.modes import Modes
from incsnap.types.variable import too_large


def json_objects(fields: Sequence[ViewField], columns: Columns, modes: Modes, *, head: str = "", tail: str = "") -> Any:
    """``head{"id":1,"name":null}tail`` of each row as ``pa.binary()``; without fields an empty object for each.

    Raises ``IncsnapError`` when the text would take 2 GiB, and ``UnsupportedType``.
    """
    if not fields:
        return pa.repeat(pa.scalar(f"{head}{{}}{tail}".encode(), pa.binary()), rows_of(columns))
    pieces: list[Any] = []
    text = head + "{"
    for place, field in enumerate(fields):
        encoded = field.encode(columns, modes)
        text += ("," if place else "") + literal(field.name) + ":"
        if encoded.quoted and not encoded.text.null_count:
            pieces += [text + '"', encoded.text]
            text = '"'
        else:
            pieces += [text, encoded.complete()]
            text = ""
    return join([*pieces, text + "}" + tail])


def rows_of(columns: Columns) -> int:
    """How many rows the columns have; at least one column is there."""
    return next(len(column) for column in columns if column is not None)


def join(pieces: Sequence[Any]) -> Any:
    """Texts (arrays and ``str``) one after another as ``pa.binary()``; a null is written ``null``.

    At least one piece is an array. Raises ``IncsnapError`` when the result would take 2 GiB.
    """
    scalars = [pa.scalar(piece) if isinstance(piece, str) else piece for piece in pieces]
    try:
        joined = pc.binary_join_element_wise(*scalars, "", null_handling="replace", null_replacement="null")
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise too_large("The JSON of these rows") from error
    return joined.cast(pa.binary())
