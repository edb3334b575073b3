"""What of a table is written: which columns under which names, changed how, with which key.

As in Debezium, the key stands outside ``column.*``: its columns are in it though they are left out of the row, and
unchanged though they are masked there. De-duplication goes by the primary key (``identity``), whatever the
record's key is; in a table without one by the columns that message.key.columns names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.connect.field_names import adjust_field
from incsnap.connect.json_text import Encoded
from incsnap.connect.json_values import connect_json
from incsnap.connect.schema import Schema
from incsnap.envelope.column_rules import ColumnRules, matches
from incsnap.envelope.masks import Masked, masked
from incsnap.errors import ConfigError
from incsnap.tables import Column, SourceType, TableId, TableShape
from incsnap.types.column_type import ColumnType, describe
from incsnap.types.modes import Modes

#: Canonical columns in the order of the shape; None for those that no view of the table needs.
Columns = Sequence[Any]
_DEFAULT_MODES = Modes()


@dataclass(frozen=True, slots=True)
class ViewField:
    """A field of a record: column ``index`` of the shape under the name ``name``."""

    index: int
    name: str
    column: Column
    table: TableId
    masked: Masked | None = None
    #: A TINYINT that is written as a boolean: is it more than 0?
    boolean: bool = False
    #: The column's DEFAULT as information_schema prints it, where it is known and wanted.
    default: str | None = None
    #: What its schema shows of how the column was defined; None for nothing.
    source: SourceType | None = None
    #: The column's, where schemas show comments.
    comment: str = ""

    @property
    def type(self) -> ColumnType:
        """Raises ``UnsupportedType``."""
        return describe(self.column, self.table)

    def schema(self, modes: Modes) -> Schema:
        schema = self.type.schema(modes)
        if self.boolean:
            schema = Schema("boolean", optional=schema.optional)
        if self.default is not None:
            default = self.type.default(self.default, modes)
            schema = replace(schema, default=default > 0 if self.boolean and default is not None else default)
        # A doc that the type has of its own stays: Debezium stops there, and Avro writes a named type once.
        doc = schema.doc or self.comment or None
        return replace(schema, doc=doc, parameters=(*schema.parameters, *self._more_parameters()))

    def _more_parameters(self) -> tuple[tuple[str, str], ...]:
        if self.masked is not None:
            return (self.masked.parameter,)
        if self.source is None:
            return ()
        source = self.source
        declared = (("type", source.name), ("length", source.length), ("scale", source.scale))
        more = (("comment", self.comment or None), ("name", self.column.name))
        parameters = [(what, str(value)) for what, value in (*declared, *more) if value is not None]
        return tuple((f"__debezium.source.column.{what}", value) for what, value in parameters)

    def connect(self, columns: Columns, modes: Modes) -> Any:
        """The field's Connect values."""
        values = self.type.connect(columns[self.index], modes)
        if self.boolean:
            values = pc.greater(values, 0)
        if self.masked is None or not self.masked.touches(self.type.schema(modes)):
            return values
        return self.masked.apply(values)

    @property
    def frame_type(self) -> pa.DataType:
        """The Arrow type of the field as a DataFrame's column."""
        return pa.bool_() if self.boolean else self.type.frame_type

    @property
    def masked_in_frame(self) -> bool:
        """A mask changes what is a text or bytes both to Connect and to a DataFrame."""
        if self.masked is None or self.boolean or self.type.frame_type not in (pa.string(), pa.binary()):
            return False
        return self.masked.touches(self.type.schema(_DEFAULT_MODES))

    def frame(self, columns: Columns) -> Any:
        """The field as a DataFrame's column."""
        values = columns[self.index]
        if self.boolean:
            return pc.greater(values, 0)
        values = self.type.frame(values)
        return self.masked.apply(values) if self.masked is not None and self.masked_in_frame else values

    def encode(self, columns: Columns, modes: Modes) -> Encoded:
        """The field's JSON text."""
        if self.boolean:
            return Encoded(self.connect(columns, modes).cast(pa.string()))
        if self.masked is None or not self.masked.touches(self.type.schema(modes)):
            return self.type.encode(columns[self.index], modes)
        return connect_json(self.connect(columns, modes))


@dataclass(frozen=True, slots=True)
class TableView:
    """``identity``: indexes of the columns that tell rows apart, which de-duplication goes by: the primary key's,
    whatever the message key is, else the message key's, which nothing but the settings calls unique.
    """

    shape: TableShape
    fields: tuple[ViewField, ...]
    key: tuple[ViewField, ...]
    identity: tuple[int, ...]

    @property
    def needed(self) -> frozenset[int]:
        """Columns of the shape that must be read: at least one, because it tells how many rows there are."""
        indexes = frozenset(field.index for field in (*self.fields, *self.key)) | frozenset(self.identity)
        return indexes or frozenset((0,))

    @property
    def key_is_identity(self) -> bool:
        """Whether equal values of the key mean equal rows, whatever the modes."""
        return sorted(field.index for field in self.key) == sorted(self.identity) and not any(
            field.boolean or field.type.rounded for field in self.key
        )


@lru_cache(maxsize=4096)
def view_of(shape: TableShape, rules: ColumnRules) -> TableView:
    """Raises ``ConfigError`` where the rules contradict each other on this table. Columns that are not ``needed`` may
    be of unknown types.
    """
    names = [f"{shape.id}.{column.name}" for column in shape.columns]
    defaults = dict(shape.defaults)
    comments = dict(shape.comments) if rules.comments else {}
    sources = dict(shape.sources)
    plain = tuple(
        ViewField(
            index,
            adjust_field(column.name, rules.field_names),
            column,
            shape.id,
            boolean=rules.is_boolean(names[index], column.type, sources.get(index)),
            default=defaults.get(index),
            comment=comments.get(index, ""),
        )
        for index, column in enumerate(shape.columns)
    )
    fields = tuple(
        _in_row(field, names[field.index], rules, sources.get(field.index))
        for field in plain
        if rules.written(names[field.index])
    )
    key = _key(shape, rules, names)
    _refuse_equal_names(shape, fields, rules)
    _refuse_equal_names(shape, tuple(plain[index] for index in sorted(set(key))), rules)
    return TableView(shape, fields, tuple(plain[index] for index in key), shape.key or key)


def _in_row(field: ViewField, name: str, rules: ColumnRules, source: SourceType | None) -> ViewField:
    """A key has neither: masks and types are of rows. Of the two a column has one, as in Debezium, here always the
    mask."""
    transform = rules.transform(name)
    if transform is not None:
        return replace(field, masked=masked(field.column, transform))
    if source is not None and rules.shows_type(field.table, field.column.name, source):
        return replace(field, source=source)
    return field


def _key(shape: TableShape, rules: ColumnRules, names: Sequence[str]) -> tuple[int, ...]:
    """Columns in the order of message.key.columns; where that names none of the table's, the primary key."""
    indexes = [
        index for pattern in rules.key_patterns() for index, name in enumerate(names) if matches((pattern,), name)
    ]
    twice = next((index for place, index in enumerate(indexes) if index in indexes[:place]), None)
    if twice is not None:
        raise ConfigError(
            f"message.key.columns puts {names[twice]} into the key twice", "Let one of its patterns match the column."
        )
    return tuple(indexes) or shape.key


def _refuse_equal_names(shape: TableShape, fields: tuple[ViewField, ...], rules: ColumnRules) -> None:
    columns: dict[str, str] = {}
    for field in fields:
        other = columns.setdefault(field.name, field.column.name)
        if other != field.column.name:
            raise ConfigError(
                f"field.name.adjustment.mode={rules.field_names} gives the columns {other} and {field.column.name} of"
                f" {shape.id} the same name {field.name}",
                "Set field.name.adjustment.mode=avro_unicode, or leave one of the columns out.",
            )
