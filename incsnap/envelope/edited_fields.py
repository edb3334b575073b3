"""Fields of keys and values behind transforms that edit them (`transforms.edits`): their schemas, and their values by
column.

A field is made of others: a column of the table, a field that a transform has added, or another field that an edit has
changed. The schemas are known once the table's columns are. The values of a batch are made from its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, Columns
from incsnap.connect.json_text import Encoded
from incsnap.connect.json_values import connect_json
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import Value, schema_of
from incsnap.envelope.casts import cast_schema, cast_values, masked_values
from incsnap.envelope.json_rows import json_value, rows_of
from incsnap.envelope.table_view import ViewField
from incsnap.envelope.timestamps import convert, converted_schema
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.transforms.record_spec import (
    Added,
    CastFields,
    Constant,
    ConvertTimestamp,
    Edit,
    EnvelopeField,
    ExtractField,
    FlattenFields,
    HoistField,
    Inserted,
    KeepFields,
    MaskFields,
    TakeFromValue,
)
from incsnap.types.modes import Modes

_ARROW = {
    **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The values that fields are made from: the columns of rows, and the fields that transforms have added to them."""

    columns: Columns  #: columns of the table, one element per row
    added: dict[Added, Value]  #: of each added field one value for all rows, or an array with one value per row

    def __len__(self) -> int:
        return rows_of(self.columns)


@dataclass(frozen=True, slots=True)
class RowField:
    """A field of a key or of a value. `connect` and `encode` return its values, as Connect's values or as JSON."""

    name: str  #: of the field
    schema: Schema  #: Connect schema of the field
    connect: Callable[[Rows], Array]  #: Connect values, one per row
    encode: Callable[[Rows], Encoded]  #: JSON of the values, null for null


@dataclass(frozen=True, slots=True)
class Whole:
    """A key or a value: its fields, or one field that stands in place of them."""

    schema: Schema  #: a struct without its fields, or the schema of the one field
    fields: tuple[RowField, ...]  #: the fields; the one field that stands in place of them
    is_struct: bool = True  #: False: the one field is the whole

    @property
    def whole_schema(self) -> Schema:
        """The schema with its fields."""
        if not self.is_struct:
            return self.schema
        return replace(self.schema, fields=tuple((each.name, each.schema) for each in self.fields))


def column_field(field: ViewField, modes: Modes) -> RowField:
    """Return the field of a column."""
    return RowField(
        field.name,
        field.schema(modes),
        lambda rows: field.connect(rows.columns, modes),
        lambda rows: field.encode(rows.columns, modes),
    )


def edited(whole: Whole, edits: Sequence[Edit], table: TableId) -> Whole:
    """Return the key or value behind the edits. Raise ConfigError if an edit cannot be made of these fields.

    `table` is for messages.
    """
    for edit in edits:
        whole = _edited(whole, edit, table)
    names = [field.name for field in whole.fields] if whole.is_struct else []
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise ConfigError(
            f"A transform gives a second field of {table} the name {twice}",
            "Give one of the fields another name (renames of ReplaceField), or leave it out.",
        )
    return whole


def added_field(added: Added) -> RowField:
    """Return the field that a transform adds."""
    schema = schema_of(added)
    return RowField(added.name, schema, partial(_added_values, added, schema), partial(_added_json, added))


def _added_values(added: Added, schema: Schema, rows: Rows) -> Array:
    value = rows.added[added]
    if isinstance(value, pa.Array):
        return value
    return pa.repeat(pa.scalar(_typed(value, schema), _ARROW[schema.type]), len(rows))


def _typed(value: Any, schema: Schema) -> Any:
    return int(value) if value is not None and schema.type.startswith("int") else value


def _added_json(added: Added, rows: Rows) -> Encoded:
    value = rows.added[added]
    if isinstance(value, pa.Array):
        return connect_json(value)
    return Encoded(pa.repeat(pa.scalar(None if value is None else json_value(value), pa.string()), len(rows)))


def _edited(whole: Whole, edit: Edit, table: TableId) -> Whole:
    match edit:
        case EnvelopeField() | Constant() | Inserted():
            return _with_fields(whole, (*_fields(whole, edit, table), added_field(edit)))
        case KeepFields():
            return _with_fields(whole, tuple(_kept(_fields(whole, edit, table), edit)))
        case MaskFields():
            return _each(whole, edit.fields, lambda field: _masked(field, edit, table), table)
        case CastFields():
            types = dict(edit.types)
            return _each(whole, tuple(types), lambda field: _cast(field, types, whole, table), table)
        case ConvertTimestamp():
            return _each(whole, (edit.field,), lambda field: _converted(field, edit, table), table)
        case ExtractField():
            field = _named(_fields(whole, edit, table), edit.field, table)
            return Whole(field.schema, (field,), is_struct=False)
        case HoistField():
            inner = _as_field(whole, edit.field)
            return Whole(Schema("struct"), (inner,))
        case FlattenFields():
            return _with_fields(whole, tuple(_flat(_fields(whole, edit, table), edit.delimiter)))
        case TakeFromValue():
            raise AssertionError("the maker of keys handles it")


def _fields(whole: Whole, edit: Edit, table: TableId) -> tuple[RowField, ...]:
    if not whole.is_struct:
        raise ConfigError(
            f"A transform ({type(edit).__name__}) asks for fields of {table}, where an ExtractField has left one value",
            "Let the ExtractField stand behind it.",
        )
    return whole.fields


def _with_fields(whole: Whole, fields: tuple[RowField, ...]) -> Whole:
    return replace(whole, fields=fields)


def _named(fields: Sequence[RowField], name: str, table: TableId) -> RowField:
    named = next((field for field in fields if field.name == name), None)
    if named is None:
        raise ConfigError(
            f"A transform asks for the field {name}, which records of {table} do not have; they have"
            f" {', '.join(field.name for field in fields)}",
            "Name another field, or give the transform a predicate (TopicNameMatches) that keeps it from this table.",
        )
    return named


def _kept(fields: Sequence[RowField], edit: KeepFields) -> list[RowField]:
    renames = dict(edit.renames)
    kept = [
        field for field in fields if field.name not in edit.exclude and (not edit.include or field.name in edit.include)
    ]
    return [replace(field, name=renames.get(field.name, field.name)) for field in kept]


def _each(whole: Whole, names: Sequence[str], change: Callable[[RowField], RowField], table: TableId) -> Whole:
    """Return `whole` with `change` made to the fields of these names; "" is a value that is no struct.

    Connect ignores names that no field has. Raise ConfigError if `names` do not say what is changed.
    """
    if whole.is_struct and "" in names:
        raise ConfigError(
            f"A transform changes a whole value, and the values of {table} are structs",
            "Name the field, or let an ExtractField stand before the transform.",
        )
    if not whole.is_struct:
        if "" not in names:
            raise ConfigError(
                f"A transform names fields of {table}, where an ExtractField has left one value",
                "Leave the field's name empty, or let the ExtractField stand behind it.",
            )
        field = change(replace(whole.fields[0], name=""))
        return Whole(field.schema, (field,), is_struct=False)
    return _with_fields(whole, tuple(change(field) if field.name in names else field for field in whole.fields))


def _changed(field: RowField, schema: Schema, change: Callable[[Array], Array]) -> RowField:
    def connect(rows: Rows) -> Array:
        return change(field.connect(rows))

    return RowField(field.name, schema, connect, lambda rows: connect_json(connect(rows)))


def _masked(field: RowField, edit: MaskFields, table: TableId) -> RowField:
    values = masked_values(field.schema, edit.replacement, f"{table}.{field.name}")
    return _changed(field, field.schema, values)


def _cast(field: RowField, types: dict[str, str], whole: Whole, table: TableId) -> RowField:
    target = types[field.name if whole.is_struct else ""]
    schema = cast_schema(field.schema, target, f"{table}.{field.name}")
    return _changed(field, schema, partial(cast_values, target=target, name=field.schema.name))


def _converted(field: RowField, edit: ConvertTimestamp, table: TableId) -> RowField:
    schema = converted_schema(field.schema, edit, f"{table}.{field.name}")
    return _changed(field, schema, partial(convert, schema=field.schema, edit=edit))


def _as_field(whole: Whole, name: str) -> RowField:
    """Return the whole as one field."""
    if not whole.is_struct:
        return replace(whole.fields[0], name=name)
    fields = whole.fields

    def connect(rows: Rows) -> Array:
        arrays = [field.connect(rows) for field in fields]
        return pa.StructArray.from_arrays(arrays, [field.name for field in fields])

    def encode(rows: Rows) -> Encoded:
        return Encoded(object_texts(fields, rows))

    return RowField(name, whole.whole_schema, connect, encode)


def object_texts(fields: Sequence[RowField], rows: Rows) -> Array:
    """Return a JSON object of the fields for each row (`pa.string()`)."""
    parts: list[Any] = []
    text = "{"
    for field in fields:
        parts += [f"{text}{json_value(field.name)}:", field.encode(rows).complete().fill_null("null")]
        text = ","
    if not parts:
        return pa.repeat(pa.scalar("{}"), len(rows))
    return pc.binary_join_element_wise(*parts, "}", "")


def _flat(fields: Sequence[RowField], delimiter: str) -> list[RowField]:
    flat: list[RowField] = []
    for field in fields:
        if field.schema.type != "struct":
            flat.append(field)
            continue
        inner = [
            RowField(
                f"{field.name}{delimiter}{name}",
                replace(schema, optional=schema.optional or field.schema.optional),
                partial(_member, field, name),
                lambda rows, field=field, name=name: connect_json(_member(field, name, rows)),  # type: ignore[misc]
            )
            for name, schema in field.schema.fields
        ]
        flat += _flat(inner, delimiter)
    return flat


def _member(field: RowField, name: str, rows: Rows) -> Array:
    values = field.connect(rows)
    member = pc.struct_field(values, name)
    return pc.if_else(values.is_valid(), member, pa.scalar(None, member.type))
