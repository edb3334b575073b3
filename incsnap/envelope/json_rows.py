"""Rows as JSON objects: whole columns of text joined with the literals between them, in one pass of one Arrow kernel.

Whatever stands before and behind the row in a record (``head``, ``tail``) goes into the same pass, because copying
the row once more would cost as much as making it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.tables import TableShape
from incsnap.types.column_type import describe
from incsnap.types.json_text import literal
from incsnap.types.modes import Modes
from incsnap.types.variable import too_large


def row_json(shape: TableShape, columns: Sequence[Any], modes: Modes, *, head: str = "", tail: str = "") -> Any:
    """``head{"id":1,"name":null}tail`` of each row as ``pa.binary()``; ``columns`` are canonical, in the order of
    ``shape``.

    Raises ``IncsnapError`` when the text would take 2 GiB, and ``UnsupportedType``.
    """
    return _objects(shape, range(len(shape.columns)), columns, modes, head, tail)


def key_json(shape: TableShape, columns: Sequence[Any], modes: Modes) -> Any:
    """``{"id":1}`` of each row, the key's columns in the key's order; all null for a table without a key."""
    if not shape.key:
        return pa.nulls(len(columns[0]), pa.binary())
    return _objects(shape, shape.key, columns, modes, "", "")


def _objects(
    shape: TableShape, wanted: Sequence[int], columns: Sequence[Any], modes: Modes, head: str, tail: str
) -> Any:
    pieces: list[Any] = []
    text = head + "{"
    for place, index in enumerate(wanted):
        column = shape.columns[index]
        encoded = describe(column, shape.id).encode(columns[index], modes)
        text += ("," if place else "") + literal(column.name) + ":"
        if encoded.quoted and not encoded.text.null_count:
            pieces += [text + '"', encoded.text]
            text = '"'
        else:
            pieces += [text, encoded.complete()]
            text = ""
    return join([*pieces, text + "}" + tail])


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
