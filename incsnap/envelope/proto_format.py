"""Keys and values as Protobuf in Confluent's wire format: a zero byte, the schema id in four bytes, the index of the
message, then the message.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.connect.arrow_values import one_value
from incsnap.connect.proto_columns import ProtoRow, one
from incsnap.connect.proto_schema import ProtoStyle, proto_file
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import Value, moments, schema_of
from incsnap.envelope.avro_format import Register, framed_id
from incsnap.envelope.byte_envelopes import ByteEnvelopes
from incsnap.envelope.connect_envelope import SOURCE, TRANSACTION, envelope_constants, envelope_schema, key_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.envelope.value_texts import proto_template
from incsnap.tables import TableId
from incsnap.transforms.record_spec import Added, RecordSpec
from incsnap.types.modes import Modes

#: Numbers of the envelope's fields. Fields that transforms add follow.
_BEFORE, _AFTER, _SOURCE, _TRANSACTION, _OP, _MOMENTS = 1, 2, 3, 4, 5, 6
_ADDED = _MOMENTS + 3
_STRING, _INT64_OR_NULL = Schema("string"), Schema("int64", optional=True)
_SOURCE_FIELDS = {name: (number, schema) for number, (name, schema) in enumerate(SOURCE.fields, 1)}
_ROW_AT = list(_SOURCE_FIELDS).index("row")
_OPS = pa.array(OPERATIONS)


class ProtoRows:
    """A writer of table rows as Protobuf messages. It writes keys, the rows of an envelope, and flat rows.

    A flat row is a value without envelope, as the transform ExtractNewRecordState makes it. `head`: bytes before each
    message, such as the schema's id. `constants`: texts of fields that follow the columns. `added`: fields that follow
    the constants; each call brings their values, one for all rows or one per row.
    """

    def __init__(
        self,
        table: TableId,
        fields: Sequence[ViewField],
        modes: Modes,
        head: bytes,
        style: ProtoStyle,
        *,
        constants: Sequence[str] = (),
        added: Sequence[Added] = (),
    ) -> None:
        self._table, self._modes, self._added, self._style = table, modes, added, style
        self._fields = [(field, field.schema(modes)) for field in fields]
        self._head = head
        behind = len(self._fields) + 1
        texts = [one(number, _STRING, text, style) for number, text in enumerate(constants, behind)]
        self._constants, self._first_added = b"".join(texts), behind + len(constants)

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row as a message with its head (`pa.binary()`)."""
        return self.rows(columns, ())

    def rows(self, columns: Columns, values: Sequence[Value]) -> BytesArray:
        """Return each row as a message with its head (`pa.binary()`).

        `values` has for each added field one value for all rows, or an array with one value per row.
        """
        row = ProtoRow(rows_of(columns), self._style)
        row.literal(self._head)
        for number, (field, schema) in enumerate(self._fields, 1):
            row.field(number, f"{self._table}.{field.name}", schema, field.connect(columns, self._modes))
        row.literal(self._constants)
        return self._with_added(row, values)

    def template(self) -> RowTemplate:
        """Return a template of a row: head, columns and constants, with a place for the encoded field of each column.

        The added fields are missing: `ended` appends them to the rows that were made by the template.
        """
        return proto_template(self._fields, self._modes, self._style, self._head, self._constants)

    #: Nothing closes a message, so a template that other fields follow is the same.
    begun = template

    def ended(self, rows: BytesArray, values: Sequence[Value]) -> BytesArray:
        """Return `rows`, which were made by `template`, with the added fields at their end. `values`: as in `rows`."""
        row = ProtoRow(len(rows), self._style)
        row.encoded(rows)
        return self._with_added(row, values)

    def _with_added(self, row: ProtoRow, values: Sequence[Value]) -> BytesArray:
        for number, (field, value) in enumerate(zip(self._added, values, strict=True), self._first_added):
            _add(row, number, f"{self._table}.{field.name}", schema_of(field), value, self._style)
        return row.joined()


def proto_keys(view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, register: Register) -> ProtoRows:
    """Return the writer of the table's record keys, after registering the schema of the keys.

    Raise what `register` raises if the registry fails, and ConfigError for a name that Protobuf does not allow.
    """
    style = envelope.key.proto_style
    head = proto_head(register, f"{spec.topic}-key", key_schema(view, spec, envelope.modes), style)
    constants = [field.text for field in spec.key_fields]
    return ProtoRows(view.shape.id, view.key, envelope.modes, head, style, constants=constants)


class ProtoValues(ByteEnvelopes):
    """A writer of a table's record values as Protobuf: Debezium's envelope with `before`, `after`, `source` and `op`.

    The constructor registers the envelope's schema. It raises what `register` raises if the registry fails, and
    ConfigError for a name that Protobuf does not allow.
    """

    def __init__(self, view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, register: Register) -> None:
        self._style = envelope.value.proto_style
        self._rows = ProtoRows(view.shape.id, view.fields, envelope.modes, b"", self._style)
        schema = envelope_schema(view, spec, envelope.modes)
        head = proto_head(register, f"{spec.topic}-value", schema, self._style)
        super().__init__(view.shape.id, envelope, self._rows, head)
        self._read_op = spec.read_op
        constants = enumerate(envelope_constants(spec), _ADDED)
        self._tail = b"".join(one(number, schema_of(each), each.text, self._style) for number, each in constants)

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        row = ProtoRow(rows_of(columns), self._style)
        row.literal(self._head)
        row.messages(_AFTER, self._rows.rows(columns, ()))
        row.literal(self._behind_row(source, self._read_op, now_us))
        return row.joined()

    def _behind_row(self, source: SourceConstants, op: str, now_us: int) -> bytes:
        block = ProtoRow(1, self._style)
        block.messages(_SOURCE, self._source_fields(self._source(source, self._table), 1))
        encoded: bytes = block.joined()[0].as_py()
        return encoded + one(_OP, _STRING, op, self._style) + self._behind_op(now_us)

    def _behind_op(self, now_us: int) -> bytes:
        times = enumerate(moments(now_us).values(), _MOMENTS)
        return b"".join(one(number, _INT64_OR_NULL, value, self._style) for number, value in times) + self._tail

    def _envelopes(
        self, head: bytes | BytesArray, tables: TableId | ManyTables, rows: BytesArray, what: Changes
    ) -> BytesArray:
        count = len(what.row)
        # The block is made once per event, in two parts: up to the row's number, and behind the number.
        source, events = self._source(what.source, tables), len(what.source.ts_us)
        begin, end = (self._source_fields(part, events) for part in (source[:_ROW_AT], source[_ROW_AT + 1 :]))
        number_of_row = self._source_fields([("row", pa.array(what.row, pa.int64()))], count)
        row = ProtoRow(count, self._style)
        if isinstance(head, bytes):
            row.literal(head)
        else:
            row.encoded(head)
        row.messages(_BEFORE, take(rows, what.before))
        row.messages(_AFTER, take(rows, what.after))
        row.message_of(_SOURCE, [take(begin, what.event), number_of_row, take(end, what.event)])
        if what.order is not None:
            row.message_of(_TRANSACTION, self._transaction(what))
        row.field(_OP, "op", _STRING, _OPS.take(pa.array(what.op)))
        row.literal(self._behind_op(what.now_us))
        return row.joined()

    def _source_fields(self, values: Sequence[tuple[str, Value]], rows: int) -> BytesArray:
        """Return these fields of the source block. `values`: names and values, as `source_values` returns them."""
        row = ProtoRow(rows, self._style)
        for name, value in values:
            number, schema = _SOURCE_FIELDS[name]
            _add(row, number, f"source.{name}", schema, value, self._style)
        return row.joined()

    def _transaction(self, what: Changes) -> list[BytesArray]:
        """Return the parts of the block `transaction` of each record."""
        assert what.order is not None
        (id_name, of_id), *numbers = TRANSACTION.fields
        ids = ProtoRow(len(what.source.gtid), self._style)
        ids.field(1, id_name, of_id, what.source.gtid)
        orders = ProtoRow(len(what.row), self._style)
        both = (what.order.total, what.order.of_table)
        for number, ((name, schema), values) in enumerate(zip(numbers, both, strict=True), 2):
            orders.field(number, name, schema, pa.array(values))
        return [take(ids.joined(), what.event), orders.joined()]


class ProtoStructs:
    """A Protobuf encoder for keys or values that come one at a time. Each schema is registered once."""

    def __init__(self, register: Register, style: ProtoStyle) -> None:
        self._register, self._style = register, style
        self._known: dict[tuple[str, Schema], bytes] = {}

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """Return `value` in the wire format.

        `value` is as Connect's JsonConverter writes a value: bytes are base64. Raise what `register` raises.
        """
        head = self._known.get((subject, schema))
        if head is None:
            head = self._known[subject, schema] = proto_head(self._register, subject, schema, self._style)
        row = ProtoRow(1, self._style)
        row.literal(head)
        row.fields("", schema, one_value(schema, value))
        encoded: bytes = row.joined()[0].as_py()
        return encoded


def proto_head(register: Register, subject: str, schema: Schema, style: ProtoStyle) -> bytes:
    """Register the schema under `subject`. Return the bytes that begin each record: a zero byte, the schema's id,
    big-endian, in four bytes, and the index of the message (`proto_file`).

    Raise what `register` raises if the registry fails, and ConfigError for a schema that Protobuf cannot express.
    """
    text, index = proto_file(schema, style)
    return framed_id(register(subject, text)) + index


def _add(row: ProtoRow, number: int, name: str, schema: Schema, value: Value, style: ProtoStyle) -> None:
    """Add a field to the rows: one value that all share, or an array with one value per row."""
    if isinstance(value, pa.Array):
        row.field(number, name, schema, value)
    else:
        row.literal(one(number, schema, value, style))
