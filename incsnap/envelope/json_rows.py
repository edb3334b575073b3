"""Rows as JSON objects: whole columns of text joined with the literals between them, in one pass of one Arrow kernel.

Whatever stands before and behind the row in a record (``head``, ``tail``) goes into the same pass, because copying
the row once more would cost as much as making it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import too_large
from incsnap.connect.json_text import Encoded, literal
from incsnap.envelope.cells import Pattern, json_cells
from incsnap.envelope.table_view import Columns, ViewField
from incsnap.types.modes import Modes


class Member(Protocol):
    """A member whose values come from columns, as ``ViewField``."""

    @property
    def name(self) -> str: ...

    def encode(self, columns: Columns, modes: Modes) -> Encoded: ...


#: Members behind a row's own: a name, and its JSON, one text for all rows or an array of texts.
Members = Sequence[tuple[str, Any]]


def json_objects(
    fields: Sequence[Member], columns: Columns, modes: Modes, *, head: str = "", tail: str = "", more: Members = ()
) -> Any:
    """``head{"id":1,"name":null}tail`` of each row as ``pa.binary()``; without members an empty object for each.

    Raises ``IncsnapError`` when the text would take 2 GiB, and ``UnsupportedType``.
    """
    parts: list[Any] = []
    text, comma = head + "{", ""
    for field in fields:
        encoded = field.encode(columns, modes)
        text += comma + literal(field.name) + ":"
        comma = ","
        if encoded.quoted and not encoded.text.null_count:
            parts += [text + '"', encoded.text]
            text = '"'
        else:
            parts += [text, encoded.complete()]
            text = ""
    added = _members(more, text, comma)
    if not parts and len(added) == 1:
        return pa.repeat(pa.scalar(f"{added[0]}}}{tail}".encode(), pa.binary()), rows_of(columns))
    return join([*parts, *added[:-1], f"{added[-1]}}}{tail}"])


def _members(more: Members, text: str, comma: str) -> list[Any]:
    """What stands behind a row's own members, as pieces of ``join``; the last of them is a text."""
    parts: list[Any] = []
    for name, value in more:
        text += comma + literal(name) + ":"
        comma = ","
        if isinstance(value, str):
            text += value
        else:
            parts += [text, value]
            text = ""
    return [*parts, text]


def json_pattern(
    fields: Sequence[ViewField], modes: Modes, *, head: str = "", tail: str = "", more: Sequence[tuple[str, str]] = ()
) -> Pattern:
    """What ``json_objects`` makes a row of; ``more``: members that are alike in all rows."""
    literals = [f"{literal(field.name)}:" for field in fields]
    names = [f",{name}" if place else name for place, name in enumerate(literals)]
    constant = ",".join(f"{literal(name)}:{text}" for name, text in more)
    end = (f",{constant}" if constant and fields else constant) + "}" + tail
    texts = [head + "{" + names[0], *names[1:], end] if fields else [head + "{" + end]
    return Pattern.of([text.encode() for text in texts], [(field.index, json_cells(field, modes)) for field in fields])


def begun(fields: Sequence[ViewField], modes: Modes, *, head: str, goes_on: bool) -> Pattern:
    """The pattern of a row up to where ``ended`` takes over; ``goes_on``: with members."""
    pattern = json_pattern(fields, modes, head=head)
    return replace(pattern, template=pattern.template[:-1] + (b"," if fields and goes_on else b""))


def ended(rows: Any, more: Members, tail: str) -> Any:
    """``rows`` as patterns of ``begun`` have given them, with ``more``, as ``json_objects`` writes that."""
    added = _members(more, "", "")
    return join([rows.cast(pa.string()), *added[:-1], f"{added[-1]}}}{tail}"])


def rows_of(columns: Columns) -> int:
    """How many rows the columns have; at least one column is there."""
    return next(len(column) for column in columns if column is not None)


def join(parts: Sequence[Any]) -> Any:
    """Texts (arrays and ``str``) one after another as ``pa.binary()``; a null is written ``null``.

    At least one piece is an array. Raises ``IncsnapError`` when the result would take 2 GiB.
    """
    scalars = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    try:
        joined = pc.binary_join_element_wise(*scalars, "", null_handling="replace", null_replacement="null")
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise too_large("The JSON of these rows") from error
    return joined.cast(pa.binary())
