"""Rows as JSON objects: columns of text, joined with the literals between them by one Arrow kernel in one pass.

The same pass adds what stands before and behind the row in a record (`head`, `tail`): copying the row once more would
cost as much as making it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import BytesArray, Columns, TextArray
from incsnap.columns.variable import too_large
from incsnap.connect.json_schema import schema_json
from incsnap.connect.json_text import Encoded, literal, strings
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
#: A part of each row's text: a text that all rows share, or an array of texts.
Piece = Any


def json_objects(
    fields: Sequence[Member], columns: Columns, modes: Modes, *, head: str = "", tail: str = "", more: Members = ()
) -> BytesArray:
    """Return `head{"id":1,"name":null}tail` for each row (`pa.binary()`). Without members each object is empty.

    `more`: members behind those of `fields`. Raise IncsnapError if the text would take 2 GiB, and UnsupportedType for a
    column that incsnap cannot read.
    """
    own = [(field.name, field.encode(columns, modes).member_texts()) for field in fields]
    texts = members([*own, *((name, (value,)) for name, value in more)])
    return join([head + "{", *texts, "}" + tail], rows_of(columns))


def members(values: Iterable[tuple[str, Iterable[Piece]]]) -> list[Piece]:
    """Return the members of JSON objects as pieces to be joined row by row: `"id":`, its value, `,"name":`, its value,
    ...

    `values` has pairs: the name of a member, and the pieces of its value. A piece is one text that all rows share, or
    an array with one text per row.
    """
    texts: list[Piece] = []
    comma = ""
    for name, value in values:
        texts += [f"{comma}{literal(name)}:", *value]
        comma = ","
    return texts


def json_value(value: Any) -> Piece:
    """Return `value` as JSON text.

    A str, int or None gives one text for all rows. An Arrow array gives an array with one text per row, and a null
    stays null.
    """
    if isinstance(value, pa.Array):
        return strings(value).complete() if pa.types.is_string(value.type) else value.cast(pa.string())
    if value is None:
        return "null"
    return literal(value) if isinstance(value, str) else str(value)


def around(schema: Schema | None) -> tuple[str, str]:
    """Return the texts before and behind a payload; both are empty if `schema` is None."""
    return ("", "") if schema is None else (f'{{"schema":{schema_json(schema)},"payload":', "}")


def rows_of(columns: Columns) -> int:
    """Return how many rows the columns have. At least one column must be there."""
    return next(len(column) for column in columns if column is not None)


def join(parts: Iterable[Piece], rows: int = 0) -> BytesArray:
    """Join the pieces for each row, and return the rows as `pa.binary()`. A null in a piece becomes the text `null`.

    A piece is one text that all rows share, or an array with one text per row. `rows` is the number of rows, and is
    needed only if all pieces are shared texts. Raise IncsnapError if the result would take 2 GiB.
    """
    texts: list[Piece] = []
    for is_text, run in groupby(parts, lambda part: isinstance(part, str)):
        together = list(run)
        texts += ["".join(together)] if is_text else together
    if len(texts) == 1 and isinstance(texts[0], str):
        return pa.repeat(pa.scalar(texts[0].encode(), pa.binary()), rows)
    try:
        joined = pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement="null")
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise too_large("The JSON of these rows") from error
    return joined.cast(pa.binary())
