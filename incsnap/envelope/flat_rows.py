"""Values of ExtractNewRecordState: rows without an envelope, with the fields that the transform adds to them.

Only the image that is sent is encoded. This is cheaper than the envelope, which has both images of an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.connect.avro_columns import AvroRow, one
from incsnap.connect.avro_schema import avro_json
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import Value, change_values, json_text, read_values, schema_of
from incsnap.envelope.avro_format import Register, wire_head, write_fields
from incsnap.envelope.connect_envelope import row_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import Changes, ManyTables
from incsnap.envelope.json_rows import Members, around, ended, json_objects, rows_of
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView
from incsnap.envelope.value_texts import avro_template, begun
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.transforms.record_spec import RecordSpec
from incsnap.types.modes import Modes

#: Estimated bytes of the value of an added field.
_VALUE_BYTES = 20


def flat_schema(view: TableView, spec: RecordSpec, modes: Modes) -> Schema:
    """Return the schema of a row with the fields that `spec` adds.

    Raise ConfigError if two fields have the same name.
    """
    row = row_schema(view, spec, modes)
    fields = (*row.fields, *((added.name, schema_of(added)) for added in spec.fields))
    names = [name for name, _ in fields]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ConfigError(
            f"A transform adds the field {twice} to {view.shape.id}, which has one of this name",
            "Give the field another name (add.fields=op:change), or another add.fields.prefix.",
        )
    return replace(row, optional=False, fields=fields)


class JsonRows:
    """An encoder of flat rows to JSON. `schema`: written before each row; None if schemas are not written."""

    def __init__(self, view: TableView, spec: RecordSpec, modes: Modes, schema: Schema | None) -> None:
        self._view, self._spec, self._modes = view, spec, modes
        self._head, self._tail = around(schema)

    def __call__(self, columns: Columns, values: Sequence[Value]) -> BytesArray:
        """Return each row with its added fields (`pa.binary()`). `values`: the value of each added field."""
        more = self._more(values)
        return json_objects(self._view.fields, columns, self._modes, head=self._head, tail=self._tail, more=more)

    def template(self) -> RowTemplate:
        """Return the template of a row without its added fields and without the closing brace. `ended` adds both."""
        return begun(self._view.fields, self._modes, head=self._head, goes_on=bool(self._spec.fields))

    def ended(self, rows: BytesArray, values: Sequence[Value]) -> BytesArray:
        """Return complete values: `rows` from `template`, with the added fields and the end of the record."""
        return ended(rows, self._more(values), self._tail)

    def _more(self, values: Sequence[Value]) -> Members:
        return [(field.name, json_text(value)) for field, value in zip(self._spec.fields, values, strict=True)]


class AvroRows:
    """An encoder of flat rows to Avro.

    Making this object registers the row's schema. The constructor raises what `register` raises, and ConfigError for a
    name that Avro does not allow or that two fields have.
    """

    def __init__(self, view: TableView, spec: RecordSpec, modes: Modes, register: Register) -> None:
        self._table, self._spec, self._modes = view.shape.id, spec, modes
        self._fields = [(field, field.schema(modes)) for field in view.fields]
        self._head = wire_head(register(f"{spec.topic}-value", avro_json(flat_schema(view, spec, modes))))

    def __call__(self, columns: Columns, values: Sequence[Value]) -> BytesArray:
        """Return each row with its added fields (`pa.binary()`). `values`: the value of each added field."""
        row = AvroRow(rows_of(columns))
        row.literal(self._head)
        write_fields(row, self._table, self._fields, columns, self._modes)
        return self._ended(row, values)

    def template(self) -> RowTemplate:
        """Return the template of a row without its added fields. `ended` adds them."""
        return avro_template(self._fields, self._modes, self._head)

    def ended(self, rows: BytesArray, values: Sequence[Value]) -> BytesArray:
        """Return complete values: `rows` from `template`, with the added fields."""
        row = AvroRow(len(rows))
        row.encoded(rows)
        return self._ended(row, values)

    def _ended(self, row: AvroRow, values: Sequence[Value]) -> BytesArray:
        for field, value in zip(self._spec.fields, values, strict=True):
            schema = schema_of(field)
            if isinstance(value, pa.Array):
                row.field(f"{self._table}.{field.name}", schema, value)
            else:
                row.literal(one(schema, value))
        return row.joined()


class FlatRows:
    """The format of values that are flat rows as `spec` describes them.

    `encoder`: encodes a row and its added fields.
    """

    def __init__(
        self, table: TableId, spec: RecordSpec, envelope: EnvelopeSettings, encoder: JsonRows | AvroRows
    ) -> None:
        self._table, self._spec, self._envelope, self._encoder = table, spec, envelope, encoder

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        values = read_values(self._spec.fields, source, now_us, self._table, self._envelope)
        return self._encoder(columns, values)

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`): of a deletion the row before it."""
        index = what.before if self._spec.op == "d" else what.after
        columns = [None if column is None else take(column, index) for column in images]
        return self._encoder(columns, change_values(self._spec.fields, what, self._table, self._envelope))

    def template(self) -> RowTemplate:
        """Return how one row is put together, without its added fields."""
        return self._encoder.template()

    @property
    def constant_bytes(self) -> int:
        """Return the estimated bytes of the added fields of a value."""
        return sum(len(field.name) + _VALUE_BYTES for field in self._spec.fields)

    def of_tables(self, formats: Sequence[FlatRows], tables: ManyTables, rows: BytesArray, what: Changes) -> BytesArray:
        """Return the value of each record of `what`, of many tables; see `JoinedFormat.of_tables`.

        `formats` is not used: what is a table's own is already in `rows`.
        """
        index = what.before if self._spec.op == "d" else what.after
        values = change_values(self._spec.fields, what, tables, self._envelope)
        return self._encoder.ended(take(rows, index), values)
