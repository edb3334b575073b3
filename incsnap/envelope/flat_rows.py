"""Rows without an envelope, with what a transform adds to them: values of ExtractNewRecordState.

Only the images that are sent are encoded, so this is cheaper than the envelope, which has both of an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from incsnap.columns.variable import take
from incsnap.connect.avro_columns import AvroRow, one
from incsnap.connect.avro_schema import avro_json
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import Value, change_values, json_text, read_values, schema_of
from incsnap.envelope.avro_format import Register, avro_pattern, wire_head, write_fields
from incsnap.envelope.cells import Pattern
from incsnap.envelope.connect_envelope import row_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import Changes, ManyTables
from incsnap.envelope.json_format import around
from incsnap.envelope.json_rows import Members, begun, ended, json_objects, rows_of
from incsnap.envelope.source_block import SourceConstants
from incsnap.envelope.table_view import Columns, TableView
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.transforms.form import Form
from incsnap.types.modes import Modes

#: Of a field that is added, about.
_VALUE_BYTES = 20


def flat_schema(view: TableView, form: Form, modes: Modes) -> Schema:
    """The schema of a row and what ``form`` adds to it. Raises ``ConfigError`` where a name is there twice."""
    row = row_schema(view, form, modes)
    fields = (*row.fields, *((added.name, schema_of(added)) for added in form.fields))
    names = [name for name, _ in fields]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ConfigError(
            f"A transform adds the field {twice} to {view.shape.id}, which has one of this name",
            "Give the field another name (add.fields=op:change), or another add.fields.prefix.",
        )
    return replace(row, optional=False, fields=fields)


class JsonRows:
    """``schema``: None where it is not to be written."""

    def __init__(self, view: TableView, form: Form, modes: Modes, schema: Schema | None) -> None:
        self._view, self._form, self._modes = view, form, modes
        self._head, self._tail = around(schema)

    def __call__(self, columns: Columns, values: Sequence[Value]) -> Any:
        more = self._more(values)
        return json_objects(self._view.fields, columns, self._modes, head=self._head, tail=self._tail, more=more)

    def pattern(self) -> Pattern:
        return begun(self._view.fields, self._modes, head=self._head, goes_on=bool(self._form.fields))

    def ended(self, rows: Any, values: Sequence[Value]) -> Any:
        return ended(rows, self._more(values), self._tail)

    def _more(self, values: Sequence[Value]) -> Members:
        return [(field.name, json_text(value)) for field, value in zip(self._form.fields, values, strict=True)]


class AvroRows:
    def __init__(self, view: TableView, form: Form, modes: Modes, register: Register) -> None:
        self._table, self._form, self._modes = view.shape.id, form, modes
        self._fields = [(field, field.schema(modes)) for field in view.fields]
        self._head = wire_head(register(f"{form.topic}-value", avro_json(flat_schema(view, form, modes))))

    def __call__(self, columns: Columns, values: Sequence[Value]) -> Any:
        row = AvroRow(rows_of(columns))
        row.literal(self._head)
        write_fields(row, self._table, self._fields, columns, self._modes)
        return self._ended(row, values)

    def pattern(self) -> Pattern:
        return avro_pattern(self._fields, self._modes, self._head)

    def ended(self, rows: Any, values: Sequence[Value]) -> Any:
        row = AvroRow(len(rows))
        row.encoded(rows)
        return self._ended(row, values)

    def _ended(self, row: AvroRow, values: Sequence[Value]) -> Any:
        for field, value in zip(self._form.fields, values, strict=True):
            schema = schema_of(field)
            if isinstance(value, pa.Array):
                row.field(f"{self._table}.{field.name}", schema, value)
            else:
                row.literal(one(schema, value))
        return row.joined()


class FlatRows:
    """The rows that ``form`` shows, as ``written`` writes them: of the columns, and of the values behind those."""

    def __init__(self, table: TableId, form: Form, envelope: EnvelopeSettings, written: JsonRows | AvroRows) -> None:
        self._table, self._form, self._envelope, self._written = table, form, envelope, written

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> Any:
        values = read_values(self._form.fields, source, now_us, self._table, self._envelope)
        return self._written(columns, values)

    def changes(self, images: Columns, what: Changes) -> Any:
        index = what.before if self._form.op == "d" else what.after
        columns = [None if column is None else take(column, index) for column in images]
        return self._written(columns, change_values(self._form.fields, what, self._table, self._envelope))

    def pattern(self) -> Pattern:
        return self._written.pattern()

    @property
    def constant_bytes(self) -> int:
        return sum(len(field.name) + _VALUE_BYTES for field in self._form.fields)

    def of_tables(self, formats: Sequence[FlatRows], tables: ManyTables, rows: Any, what: Changes) -> Any:
        """What tables have of their own is in their patterns."""
        index = what.before if self._form.op == "d" else what.after
        values = change_values(self._form.fields, what, tables, self._envelope)
        return self._written.ended(take(rows, index), values)
