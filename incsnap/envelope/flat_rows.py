"""Values of ExtractNewRecordState: rows without an envelope, with the fields that the transform adds to them.

Only the image that is sent is encoded. This is cheaper than the envelope, which has both images of an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import change_values, read_values, schema_of
from incsnap.envelope.avro_format import AvroRows
from incsnap.envelope.connect_envelope import row_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import Changes, ManyTables
from incsnap.envelope.json_format import JsonRows
from incsnap.envelope.proto_format import ProtoRows
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView
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


class FlatRows:
    """The format of values that are flat rows as `spec` describes them.

    `encoder`: encodes a row and its added fields.
    """

    def __init__(
        self, table: TableId, spec: RecordSpec, envelope: EnvelopeSettings, encoder: JsonRows | AvroRows | ProtoRows
    ) -> None:
        self._table, self._spec, self._envelope, self._encoder = table, spec, envelope, encoder

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        spec = self._spec
        values = read_values(spec.fields, source, now_us, self._table, self._envelope, spec.read_op)
        return self._encoder.rows(columns, values)

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`): of a deletion the row before it."""
        index = what.before if self._spec.op == "d" else what.after
        columns = [None if column is None else take(column, index) for column in images]
        return self._encoder.rows(columns, change_values(self._spec.fields, what, self._table, self._envelope))

    def template(self) -> RowTemplate:
        """Return how one row is put together, without its added fields."""
        return self._encoder.begun()

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
