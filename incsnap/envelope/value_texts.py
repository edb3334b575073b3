"""Encoders of the values of one column, whatever its table, and the templates of rows that these values fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from incsnap.columns.arrow import Array
from incsnap.connect.avro_columns import AvroRow
from incsnap.connect.proto_columns import ProtoRow
from incsnap.connect.proto_schema import ProtoStyle
from incsnap.connect.schema import Schema
from incsnap.envelope.json_rows import Members, members
from incsnap.envelope.row_template import RowTemplate, ValueTexts
from incsnap.envelope.table_view import ViewField
from incsnap.errors import ValueRefused
from incsnap.tables import TableId
from incsnap.types.modes import Modes

_NO_TABLE = TableId("", "")

#: Fields with their schemas. A schema is made once and kept, because making it converts the column's DEFAULT.
Fields = Sequence[tuple[ViewField, Schema]]


@dataclass(frozen=True, slots=True)
class JsonValueTexts:
    """An encoder of a column's values to JSON."""

    field: ViewField  #: without table and name
    modes: Modes  #: how values of each type are written

    def __call__(self, values: Array) -> list[bytes]:
        _refuse(self.field, values, self.modes)
        texts = self.field.encode([values], self.modes).complete()
        if texts.null_count:
            texts = texts.fill_null("null")
        # For a few values a view takes a tenth of the time of a cast.
        encoded: list[bytes] = texts.view(pa.binary()).to_pylist()
        return encoded


@dataclass(frozen=True, slots=True)
class AvroValueTexts:
    """An encoder of a column's values to Avro."""

    field: ViewField  #: without table and name
    schema: Schema  #: of the field
    modes: Modes  #: how values of each type are written

    def __call__(self, values: Array) -> list[bytes]:
        _refuse(self.field, values, self.modes)
        row = AvroRow(len(values))
        row.field("", self.schema, self.field.connect([values], self.modes))
        encoded: list[bytes] = row.joined().to_pylist()
        return encoded


@dataclass(frozen=True, slots=True)
class ProtoValueTexts:
    """An encoder of a column's values to fields of a Protobuf message."""

    field: ViewField  #: without table and name
    schema: Schema  #: of the field
    modes: Modes  #: how values of each type are written
    number: int  #: of the field in the message
    style: ProtoStyle  #: options of the converter

    def __call__(self, values: Array) -> list[bytes]:
        _refuse(self.field, values, self.modes)
        row = ProtoRow(len(values), self.style)
        row.field(self.number, "", self.schema, self.field.connect([values], self.modes))
        encoded: list[bytes] = row.joined().to_pylist()
        return encoded


def json_template(
    fields: Sequence[ViewField], modes: Modes, *, head: str = "", tail: str = "}", more: Members = ()
) -> RowTemplate:
    """Return a template of a JSON object: the text of each member's name, and a place for the encoded value of each
    column.

    The rows that this template makes equal those of `json_objects`. `head`: text before the object. `more`: members
    that follow the columns and have the same value in all rows. `tail`: text at the end, with the closing brace; leave
    the brace out if the caller appends more members.
    """
    literals = members([*((field.name, (None,)) for field in fields), *((name, (text,)) for name, text in more)])
    texts = [(field.index, _one(JsonValueTexts(_unnamed(field), modes))) for field in fields]
    return RowTemplate.of([None if each is None else each.encode() for each in (head + "{", *literals, tail)], texts)


def avro_template(fields: Fields, modes: Modes, head: bytes, tail: bytes = b"") -> RowTemplate:
    """Return the template of a record of `fields`, with the bytes `head` before the fields and `tail` behind them."""
    texts = [(field.index, _one(AvroValueTexts(_unnamed(field), schema, modes))) for field, schema in fields]
    return RowTemplate.of([head, *[None] * len(texts), tail], texts)


def proto_template(fields: Fields, modes: Modes, style: ProtoStyle, head: bytes, tail: bytes) -> RowTemplate:
    """Return the template of a message of `fields`, with the bytes `head` before the fields and `tail` behind them."""
    texts = [
        (field.index, _one(ProtoValueTexts(_unnamed(field), schema, modes, number, style)))
        for number, (field, schema) in enumerate(fields, 1)
    ]
    return RowTemplate.of([head, *[None] * len(texts), tail], texts)


@lru_cache(maxsize=4096)
def _one(texts: ValueTexts) -> ValueTexts:
    """Return one object for all equal encoders: columns that differ by table and name alone share it.

    Each encoder would take 400 bytes for each column of each table.
    """
    return texts


def _unnamed(field: ViewField) -> ViewField:
    """Return `field` without what makes no difference to the bytes of its values: table, name, place, default."""
    column = replace(field.column, name="")
    return replace(field, index=0, name="", column=column, table=_NO_TABLE, default=None, source=None)


def _refuse(field: ViewField, values: Array, modes: Modes) -> None:
    """Raise ValueRefused if one of the values cannot be expressed under the modes.

    The tables are then encoded one by one, where the error names table and column, or null is written.
    """
    if field.type.refused(values, modes) is not None:
        raise ValueRefused("The handling modes cannot express one of the values")
