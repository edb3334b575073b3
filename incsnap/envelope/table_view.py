"""The view of a table: which columns are written, under which names, how changed, and with which key.

As in Debezium, the `column.*` settings do not apply to the key. A key has its columns even if the row leaves them out,
and unchanged even if the row masks them. De-duplication goes by the primary key (`identity`), whatever the record's key
is. In a table without a primary key it goes by the columns that message.key.columns names.

The identity of a row is JSON of the columns of `TableView.identity`, encoded with `EXACT`. No two values of a column
look alike in it. A zero date is null in it, though its column is NOT NULL: Kafka's records write the epoch for a zero
date, which is another date. Dates that are zero in part (2024-00-00) and days that no month has are null too, so
nothing tells these apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, Columns
from incsnap.connect.field_names import adjust_field
from incsnap.connect.json_text import Encoded
from incsnap.connect.json_values import connect_json
from incsnap.connect.schema import Schema
from incsnap.envelope.column_rules import ColumnRules, matches
from incsnap.envelope.masks import Masked, masked
from incsnap.envelope.time_zones import converter
from incsnap.errors import ConfigError
from incsnap.tables import Column, SourceType, TableId, TableShape
from incsnap.types.column_type import ColumnType, describe
from incsnap.types.modes import Modes

_DEFAULT_MODES = Modes()
#: The modes of identities: without enable.time.adjuster, which would make year 1 look like 2001.
EXACT = Modes(time_adjuster="false")


@dataclass(frozen=True, slots=True)
class ViewField:
    """A field of a record, made from one column of the table."""

    index: int  #: of the column in the shape
    name: str  #: of the field in the record
    column: Column  #: as in the shape
    table: TableId  #: for messages
    masked: Masked | None = None  #: the column's mask, hash or truncation
    boolean: bool = False  #: True: a TINYINT that is written as a boolean
    default: str | None = None  #: the column's DEFAULT as information_schema prints it; None if unknown or not wanted
    #: how the column was defined, for the schema's parameters; None: the schema does not show it
    source: SourceType | None = None
    zones: tuple[str, ...] = ()  #: time zones in which its times are written, one after the other
    comment: str = ""  #: the column's comment for the schema; "" for none

    @property
    def type(self) -> ColumnType:
        """Return the column's type. Raise UnsupportedType for a type that incsnap cannot read."""
        return describe(self.column, self.table)

    def schema(self, modes: Modes) -> Schema:
        """Return the Connect schema of the field, with default, comment and parameters."""
        schema = self.type.schema(modes)
        if self.boolean:
            schema = Schema("boolean", optional=schema.optional)
        if self.default is not None:
            default = self.type.default(self.default, modes)
            if self.boolean and default is not None:
                default = default > 0 or (default < 0 and modes.debezium != "3.6")
            schema = replace(schema, default=default)
        # A type's own doc (geometries) stays: Debezium stops with an error on a comment there, and Avro writes a named
        # type only once.
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

    def connect(self, columns: Columns, modes: Modes) -> Array:
        """Return the field's Connect values, masked, in its time zone."""
        values = self._masked(columns, modes)
        for zone in self.zones:
            convert = converter(self.type.schema(modes).name, zone)
            values = values if convert is None else convert(values)
        return values

    def _masked(self, columns: Columns, modes: Modes) -> Array:
        values = self.type.connect(columns[self.index], modes)
        if self.boolean:
            values = _flags(values, modes)
        if self.masked is None or not self.masked.touches(self.type.schema(modes)):
            return values
        return self.masked.apply(values)

    @property
    def frame_type(self) -> pa.DataType:
        """Return the Arrow type of the field as a DataFrame's column."""
        return pa.bool_() if self.boolean else self.type.frame_type

    @property
    def masked_in_frame(self) -> bool:
        """Return True if the mask applies in a DataFrame.

        It applies to values that are text or bytes both there and in Connect.
        """
        if self.masked is None or self.boolean or self.type.frame_type not in (pa.string(), pa.binary()):
            return False
        return self.masked.touches(self.type.schema(_DEFAULT_MODES))

    def frame(self, columns: Columns, modes: Modes) -> Array:
        """Return the field as a DataFrame's column."""
        values = columns[self.index]
        if self.boolean:
            return _flags(values, modes)
        values = self.type.frame(values)
        return self.masked.apply(values) if self.masked is not None and self.masked_in_frame else values

    def encode(self, columns: Columns, modes: Modes) -> Encoded:
        """Return the field's JSON text."""
        if self.zones and converter(self.type.schema(modes).name, self.zones[0]) is not None:
            return connect_json(self.connect(columns, modes))
        if self.boolean:
            return Encoded(self.connect(columns, modes).cast(pa.string()))
        if self.masked is None or not self.masked.touches(self.type.schema(modes)):
            return self.type.encode(columns[self.index], modes)
        return connect_json(self.connect(columns, modes))


def _flags(values: Array, modes: Modes) -> Array:
    """Return numbers as booleans. Up to release 3.6 Debezium writes a negative number as false."""
    return pc.greater(values, 0) if modes.debezium == "3.6" else pc.not_equal(values, 0)


@dataclass(frozen=True, slots=True)
class TableView:
    """The fields of one table's records, and its key."""

    shape: TableShape  #: the table's columns
    fields: tuple[ViewField, ...]  #: the row's fields
    key: tuple[ViewField, ...]  #: the key's fields in order; empty for no key
    #: indexes of the columns that tell rows apart for de-duplication: the primary key. Without a primary key the
    #: message key's columns, which only the settings call unique.
    identity: tuple[int, ...]

    @property
    def needed(self) -> frozenset[int]:
        """Return the indexes of the columns to read: those of the row, the key and the identity.

        If there are none, the first column is read, because only a column tells how many rows there are.
        """
        indexes = frozenset(field.index for field in (*self.fields, *self.key)) | frozenset(self.identity)
        return indexes or frozenset((0,))

    @property
    def key_is_identity(self) -> bool:
        """Return True if equal values of the key mean equal rows, whatever the modes."""
        return sorted(field.index for field in self.key) == sorted(self.identity) and not any(
            field.boolean or field.type.rounded for field in self.key
        )

    @property
    def identity_fields(self) -> list[ViewField]:
        """Return the fields that form the identity of a row. They must be encoded with `EXACT`."""
        columns = [(index, replace(self.shape.columns[index], nullable=True)) for index in self.identity]
        return [ViewField(index, column.name, column, self.shape.id) for index, column in columns]


@lru_cache(maxsize=4096)
def view_of(shape: TableShape, rules: ColumnRules) -> TableView:
    """Return the view of a table. Columns that are not `needed` may have unknown types.

    Raise ConfigError if the rules contradict each other on this table.
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
        if rules.includes(names[field.index])
    )
    key = _key(shape, rules, names)
    _refuse_equal_names(shape, fields, rules)
    _refuse_equal_names(shape, tuple(plain[index] for index in sorted(set(key))), rules)
    return TableView(shape, fields, tuple(plain[index] for index in key), shape.key or key)


def _in_row(field: ViewField, name: str, rules: ColumnRules, source: SourceType | None) -> ViewField:
    """Return `field` as it stands in a row: masked, or with its defined type in the schema. Fields of keys have
    neither.

    As in Debezium a column has only one of the two; here the mask always wins.
    """
    transform = rules.transform(name)
    if transform is not None:
        return replace(field, masked=masked(field.column, transform))
    if source is not None and rules.shows_type(field.table, field.column.name, source):
        return replace(field, source=source)
    return field


def _key(shape: TableShape, rules: ColumnRules, names: Sequence[str]) -> tuple[int, ...]:
    """Return the key's columns in the order of message.key.columns.

    Return the primary key if the setting names no column of the table.
    """
    indexes = [
        index for pattern in rules.key_patterns() for index, name in enumerate(names) if matches((pattern,), name)
    ]
    twice = next((index for place, index in enumerate(indexes) if index in indexes[:place]), None)
    if twice is not None:
        raise ConfigError(
            f"message.key.columns puts {names[twice]} into the key twice",
            "Change its patterns so that only one of them matches the column.",
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
