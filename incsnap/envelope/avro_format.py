"""Keys and values as Avro in Confluent's wire format: a zero byte, the schema id in four bytes, then the record.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.connect.avro_columns import AvroRow, one
from incsnap.connect.avro_schema import avro_json, avro_schema
from incsnap.connect.byte_rows import join
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import Value, moments, schema_of
from incsnap.envelope.byte_envelopes import ByteEnvelopes
from incsnap.envelope.connect_envelope import SOURCE, envelope_constants, envelope_schema, key_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.envelope.value_texts import avro_template
from incsnap.tables import TableId
from incsnap.transforms.record_spec import Added, RecordSpec
from incsnap.types.modes import Modes

#: A function (subject, Avro schema as JSON) -> id of the schema in the registry.
Register = Callable[[str, str], int]

#: The bytes that choose a member of the union [null, T]. The envelope's own optional fields are such unions.
_NULL, _VALUE = b"\x00", b"\x02"
_STRING, _INT64 = Schema("string"), Schema("int64")
_FIELDS = dict(SOURCE.fields)
_ROW_AT = list(_FIELDS).index("row")
_OPS = pa.array([one(_STRING, letter) for letter in OPERATIONS], pa.binary())


class AvroRows:
    """A writer of table rows as Avro records. It writes keys, the rows of an envelope, and flat rows.

    A flat row is a value without envelope, as the transform ExtractNewRecordState makes it. `head`: bytes before each
    record, such as the schema's id. `constants`: encoded fields that follow the columns and have the same value in all
    rows. `added`: fields that follow the constants; each call brings their values, one for all rows or one per row.
    """

    def __init__(
        self,
        table: TableId,
        fields: Sequence[ViewField],
        modes: Modes,
        head: bytes,
        *,
        constants: bytes = b"",
        added: Sequence[Added] = (),
    ) -> None:
        self._table, self._modes, self._added = table, modes, added
        self._fields = [(field, field.schema(modes)) for field in fields]
        self._head, self._constants = head, constants

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row as an Avro record with its head (`pa.binary()`)."""
        return self.rows(columns, ())

    def rows(self, columns: Columns, values: Sequence[Value]) -> BytesArray:
        """Return each row as an Avro record with its head (`pa.binary()`).

        `values` has for each added field one value for all rows, or an array with one value per row.
        """
        return self.between(self._head, columns, self._constants, values)

    def between(self, head: bytes, columns: Columns, tail: bytes, values: Sequence[Value] = ()) -> BytesArray:
        """Return for each row the bytes `head`, its encoded columns, the bytes `tail`, and the added fields
        (`pa.binary()`).

        `head` and `tail` take the place of the writer's own head and constants. `values`: as in `rows`.
        """
        row = AvroRow(rows_of(columns))
        row.literal(head)
        for field, schema in self._fields:
            row.field(f"{self._table}.{field.name}", schema, field.connect(columns, self._modes))
        row.literal(tail)
        return self._with_added(row, values)

    def template(self) -> RowTemplate:
        """Return a template of a row: head, columns and constants, with a place for the encoded value of each column.

        The added fields are missing: `ended` appends them to the rows that were made by the template.
        """
        return avro_template(self._fields, self._modes, self._head, self._constants)

    #: Nothing closes a row in Avro, so a template that other fields follow is the same.
    begun = template

    def ended(self, rows: BytesArray, values: Sequence[Value]) -> BytesArray:
        """Return `rows`, which were made by `template`, with the added fields at their end. `values`: as in `rows`."""
        row = AvroRow(len(rows))
        row.encoded(rows)
        return self._with_added(row, values)

    def _with_added(self, row: AvroRow, values: Sequence[Value]) -> BytesArray:
        for field, value in zip(self._added, values, strict=True):
            _add(row, f"{self._table}.{field.name}", schema_of(field), value)
        return row.joined()


def avro_keys(view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, register: Register) -> AvroRows:
    """Return the writer of the table's record keys, after registering the schema of the keys.

    Raise what `register` raises if the registry fails, and ConfigError for a name that Avro does not allow.
    """
    head = schema_head(register, f"{spec.topic}-key", key_schema(view, spec, envelope.modes), envelope.key.frame)
    constants = b"".join(one(_STRING, field.text) for field in spec.key_fields)
    return AvroRows(view.shape.id, view.key, envelope.modes, head, constants=constants)


class AvroValues(ByteEnvelopes):
    """A writer of a table's record values as Avro: Debezium's envelope with `before`, `after`, `source` and `op`.

    The constructor registers the envelope's schema. It raises what `register` raises if the registry fails, and
    ConfigError for a name that Avro does not allow.
    """

    no_rows = _NULL + _NULL

    def __init__(self, view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, register: Register) -> None:
        # The byte that chooses the member of the union [null, row] stands before the row. So a missing row is the byte
        # of the null member alone.
        self._rows = AvroRows(view.shape.id, view.fields, envelope.modes, _VALUE)
        schema = envelope_schema(view, spec, envelope.modes)
        head = schema_head(register, f"{spec.topic}-value", schema, envelope.value.frame)
        super().__init__(view.shape.id, envelope, self._rows, head)
        self._tail = b"".join(one(schema_of(each), each.text) for each in envelope_constants(spec))
        self._read_op = spec.read_op

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        return self._rows.between(self._head + _NULL + _VALUE, columns, self._behind_row(source, self._read_op, now_us))

    def _behind_row(self, source: SourceConstants, op: str, now_us: int) -> bytes:
        block: bytes = _source_fields(self._source(source, self._table), 1)[0].as_py()
        return block + _NULL + one(_STRING, op) + _moments(now_us) + self._tail

    def _envelopes(
        self, head: bytes | BytesArray, tables: TableId | ManyTables, rows: BytesArray, what: Changes
    ) -> BytesArray:
        # The block is made once per event, in two parts: up to the row's number, and behind the number.
        source, events = self._source(what.source, tables), len(what.source.ts_us)
        begin, end = (_source_fields(part, events) for part in (source[:_ROW_AT], source[_ROW_AT + 1 :]))
        parts = [
            head,
            take(rows, what.before),
            take(rows, what.after),
            take(begin, what.event),
            _source_fields([("row", pa.array(what.row, pa.int64()))], len(what.row)),
            take(end, what.event),
            *_transaction(what),
            _OPS.take(pa.array(what.op)),
            _moments(what.now_us) + self._tail,
        ]
        return join(parts, _NULL, len(what.row))


class AvroStructs:
    """An Avro encoder for keys or values that come one at a time. Each schema is registered once."""

    def __init__(self, register: Register, frame: str = "") -> None:
        # These records have no headers of their own. Apicurio's readers also find an id in eight bytes.
        self._register, self._frame = register, "wide" if frame else ""
        self._known: dict[tuple[str, Schema], tuple[bytes, Any]] = {}

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """Return `value` in the wire format.

        `value` is as Connect's JsonConverter writes a value: bytes are base64. Raise what `register` raises.
        """
        known = self._known.get((subject, schema))
        if known is None:
            head = schema_head(self._register, subject, schema, self._frame)
            known = self._known[subject, schema] = head, fastavro.parse_schema(avro_schema(schema))
        out = io.BytesIO()
        out.write(known[0])
        fastavro.schemaless_writer(out, known[1], _plain(schema, value))
        return out.getvalue()


def schema_head(register: Register, subject: str, schema: Schema, frame: str = "") -> bytes:
    """Register the schema under `subject`. Return the bytes that begin each record (`framed_id`).

    Raise what `register` raises if the registry fails, and ConfigError for a name that Avro does not allow.
    """
    return framed_id(register(subject, avro_json(schema)), frame)


def framed_id(number: int, frame: str = "") -> bytes:
    """Return the bytes that begin a record: a zero byte and the schema's id, big-endian.

    `frame` is that of `FormatChoice`. There are no bytes if the id is in a header.
    """
    sizes = {"": 4, "wide": 8}
    return b"\x00" + number.to_bytes(sizes[frame], "big") if frame in sizes else b""


def _source_fields(values: Sequence[tuple[str, Value]], rows: int) -> BytesArray:
    """Return these fields of the source block. `values`: names and values, as `source_values` returns them."""
    row = AvroRow(rows)
    for name, value in values:
        _add(row, f"source.{name}", _FIELDS[name], value)
    return row.joined()


def _add(row: AvroRow, name: str, schema: Schema, value: Value) -> None:
    """Add a field to the rows: one value that all share, or an array with one value per row."""
    if isinstance(value, pa.Array):
        row.field(name, schema, value)
    else:
        row.literal(one(schema, value))


def _transaction(what: Changes) -> Sequence[bytes | BytesArray]:
    if what.order is None:
        return (_NULL,)
    ids = AvroRow(len(what.source.gtid))
    ids.literal(_VALUE)
    ids.field("transaction.id", _STRING, what.source.gtid)
    orders = AvroRow(len(what.row))
    orders.field("transaction.total_order", _INT64, pa.array(what.order.total))
    orders.field("transaction.data_collection_order", _INT64, pa.array(what.order.of_table))
    return take(ids.joined(), what.event), orders.joined()


def _moments(now_us: int) -> bytes:
    return b"".join(one(_INT64.as_optional(), value) for value in moments(now_us).values())


def _plain(schema: Schema, value: Any) -> Any:
    """Return `value` as fastavro wants it: bytes instead of base64, and None or the default for a missing field."""
    if value is None:
        return schema.default
    if schema.type == "bytes":
        return base64.b64decode(value)
    if schema.type == "struct":
        return {name: _plain(inner, value.get(name)) for name, inner in schema.fields}
    if schema.type == "array" and schema.items is not None:
        return [_plain(schema.items, item) for item in value]
    return value
