"""Rows as JSON objects: columns of text, joined with the literals between them by one Arrow kernel in one pass.

The same pass adds what stands before and behind the row in a record (`head`, `tail`): copying the row once more would
cost as much as making it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import BytesArray, Columns, TextArray
from incsnap.columns.variable import too_large
from incsnap.connect.json_schema import schema_json
from incsnap.connect.json_text import Encoded, literal
from incsnap.connect.schema import Schema
from incsnap.types.modes import Modes


class Member(Protocol):
    """A member of a JSON object whose values come from columns, such as a `ViewField`.

    `name` is the member's name. `encode` returns its JSON for each row.
    """

    @property
    def name(self) -> str: ...

    def encode(self, columns: Columns, modes: Modes) -> Encoded: ...


#: Members behind a row's own, as pairs: the name, and its JSON as one text for all rows or as an array of texts.
Members = Sequence[tuple[str, str | TextArray]]


def json_objects(
    fields: Sequence[Member], columns: Columns, modes: Modes, *, head: str = "", tail: str = "", more: Members = ()
) -> BytesArray:
    """Return `head{"id":1,"name":null}tail` for each row (`pa.binary()`). Without members each object is empty.

    `more`: members behind those of `fields`. Raise IncsnapError if the text would take 2 GiB, and UnsupportedType for a
    column that incsnap cannot read.
    """
    parts: list[str | TextArray] = []
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


def _members(more: Members, text: str, comma: str) -> list[str | TextArray]:
    """Return the members behind a row's own as pieces for `join`; the last piece is a text.

    `text`: the text so far. `comma`: what stands before the first of these members.
    """
    parts: list[str | TextArray] = []
    for name, value in more:
        text += comma + literal(name) + ":"
        comma = ","
        if isinstance(value, str):
            text += value
        else:
            parts += [text, value]
            text = ""
    return [*parts, text]


def ended(rows: BytesArray, more: Members, tail: str) -> BytesArray:
    """Return complete objects (`pa.binary()`): `rows` from the template of `begun`, the members `more`, a brace and
    `tail`."""
    added = _members(more, "", "")
    return join([rows.cast(pa.string()), *added[:-1], f"{added[-1]}}}{tail}"])


def around(schema: Schema | None) -> tuple[str, str]:
    """Return the texts before and behind a payload; both are empty if `schema` is None."""
    return ("", "") if schema is None else (f'{{"schema":{schema_json(schema)},"payload":', "}")


def rows_of(columns: Columns) -> int:
    """Return how many rows the columns have. At least one column must be there."""
    return next(len(column) for column in columns if column is not None)


def join(parts: Sequence[str | TextArray]) -> BytesArray:
    """Return the pieces joined for each row as `pa.binary()`; a null becomes `null`.

    A piece is an array of texts, or a text that all rows share. At least one piece is an array. Raise IncsnapError if
    the result would take 2 GiB.
    """
    scalars = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    try:
        joined = pc.binary_join_element_wise(*scalars, "", null_handling="replace", null_replacement="null")
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise too_large("The JSON of these rows") from error
    return joined.cast(pa.binary())
