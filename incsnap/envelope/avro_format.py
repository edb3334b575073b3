"""Keys and values as Avro in Confluent's wire format: a zero byte, the schema id in four bytes, then the record.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fastavro
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns, TextArray
from incsnap.columns.variable import take
from incsnap.connect.avro_columns import AvroRow, join, one
from incsnap.connect.avro_schema import avro_json, avro_schema
from incsnap.connect.schema import Schema
from incsnap.envelope.connect_envelope import SOURCE, envelope_schema, key_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceColumns, SourceConstants, source_values
from incsnap.envelope.table_view import TableView
from incsnap.envelope.value_texts import Fields, avro_template
from incsnap.tables import TableId
from incsnap.transforms.record_spec import RecordSpec
from incsnap.types.modes import Modes

#: A function (subject, Avro schema as JSON) -> id of the schema in the registry.
Register = Callable[[str, str], int]

#: The bytes that choose a member of the union [null, T]. The envelope's own optional fields are such unions.
_NULL, _VALUE = b"\x00", b"\x02"
_STRING, _INT64 = Schema("string"), Schema("int64")
_FIELDS = dict(SOURCE.fields)
_NAMES = list(_FIELDS)
_ROW_AT = _NAMES.index("row")
_OPS = pa.array([one(_STRING, letter) for letter in OPERATIONS], pa.binary())


class AvroKeys:
    """The keys of a table's records as Avro.

    Making this object registers the key's schema. The constructor raises what `register` raises, and ConfigError for a
    name that Avro does not allow.
    """

    def __init__(self, view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, register: Register) -> None:
        self._view, self._modes = view, envelope.modes
        self._fields = [(field, field.schema(envelope.modes)) for field in view.key]
        self._head = wire_head(register(f"{spec.topic}-key", avro_json(key_schema(view, spec, envelope.modes))))
        self._more = b"".join(one(_STRING, field.text) for field in spec.key_fields)

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row (`pa.binary()`)."""
        row = AvroRow(rows_of(columns))
        row.literal(self._head)
        write_fields(row, self._view.shape.id, self._fields, columns, self._modes)
        row.literal(self._more)
        return row.joined()

    def template(self) -> RowTemplate:
        """Return how one key is put together from the encoded values of its columns."""
        return avro_template(self._fields, self._modes, self._head, self._more)


class AvroValues:
    """The envelopes of a table's records as Avro.

    Making this object registers the envelope's schema. The constructor raises what `register` raises, and ConfigError
    for a name that Avro does not allow.
    """

    def __init__(self, view: TableView, spec: RecordSpec, envelope: EnvelopeSettings, register: Register) -> None:
        self._view, self._envelope = view, envelope
        self._fields = [(field, field.schema(envelope.modes)) for field in view.fields]
        schema = avro_json(envelope_schema(view, spec, envelope.modes))
        self._head = wire_head(register(f"{spec.topic}-value", schema))

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        row = AvroRow(rows_of(columns))
        row.literal(self._head + _NULL + _VALUE)
        write_fields(row, self._view.shape.id, self._fields, columns, self._envelope.modes)
        row.literal(self._one_source(source) + _NULL + one(_STRING, "r") + _moments(now_us))
        return row.joined()

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        table = self._view.shape.id
        sources = _event_sources(table.database, table.table, what.source, self._envelope)
        return _envelopes(self._head, self._rows(images), what, sources)

    def template(self) -> RowTemplate:
        """Return how one row of `before` or `after` is put together from the encoded values of its columns."""
        return avro_template(self._fields, self._envelope.modes, _VALUE)

    @property
    def constant_bytes(self) -> int:
        """Return the length of the head, a zero byte and the schema id.

        The other constant parts of a value are short.
        """
        return len(self._head)

    def of_tables(
        self, formats: Sequence[AvroValues], tables: ManyTables, rows: BytesArray, what: Changes
    ) -> BytesArray:
        """Return the value of each record of `what`, of many tables; see `JoinedFormat.of_tables`."""
        sources = _event_sources(tables.databases, tables.names, what.source, self._envelope)
        heads = take(pa.array([each._head for each in formats], pa.binary()), tables.of_record)
        return _envelopes(heads, rows, what, sources)

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of the record of a TRUNCATE."""
        body = _NULL + _NULL + self._one_source(source) + _NULL + one(_STRING, "t") + _moments(now_us)
        return self._head + body

    def _rows(self, columns: Columns) -> BytesArray:
        """Return each row as the non-null member of the union [null, row].

        The byte that chooses the member stands before the row, so a missing row is the byte of the null member alone.
        """
        row = AvroRow(rows_of(columns))
        row.literal(_VALUE)
        write_fields(row, self._view.shape.id, self._fields, columns, self._envelope.modes)
        return row.joined()

    def _one_source(self, source: SourceConstants) -> bytes:
        table = self._view.shape.id
        values = source_values(source, self._envelope.version, self._envelope.name, table.database, table.table)
        return b"".join(one(schema, values[name]) for name, schema in SOURCE.fields)


class AvroStructs:
    """An Avro encoder for keys or values that come one at a time. Each schema is registered once."""

    def __init__(self, register: Register) -> None:
        self._register = register
        self._known: dict[tuple[str, Schema], tuple[bytes, Any]] = {}

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """Return `value` in the wire format.

        `value` is as Connect's JsonConverter writes a value: bytes are base64. Raise what `register` raises.
        """
        known = self._known.get((subject, schema))
        if known is None:
            head = wire_head(self._register(subject, avro_json(schema)))
            known = self._known[subject, schema] = head, fastavro.parse_schema(avro_schema(schema))
        out = io.BytesIO()
        out.write(known[0])
        fastavro.schemaless_writer(out, known[1], _plain(schema, value))
        return out.getvalue()


def wire_head(number: int) -> bytes:
    """Return the five bytes before each record: a zero byte and the schema id `number`, big-endian."""
    return b"\x00" + number.to_bytes(4, "big")


def write_fields(row: AvroRow, table: TableId, fields: Fields, columns: Columns, modes: Modes) -> None:
    """Add one field for each of `fields` to `row`. Its values are made from `columns`, the columns of table `table`."""
    for field, schema in fields:
        row.field(f"{table}.{field.name}", schema, field.connect(columns, modes))


def _envelopes(
    head: bytes | BytesArray, rows: BytesArray, what: Changes, sources: tuple[BytesArray, BytesArray]
) -> BytesArray:
    """Return one envelope per record of `what` (`pa.binary()`).

    `head`: the bytes before the envelope, shared or one array element per record. `rows`: the row of each image.
    `sources`: of each event the source block before and behind the row's number.
    """
    number = AvroRow(len(what.row))
    number.field("row", _FIELDS["row"], pa.array(what.row, pa.int64()))
    begin, end = sources
    parts = [
        head,
        take(rows, what.before),
        take(rows, what.after),
        take(begin, what.event),
        number.joined(),
        take(end, what.event),
        *_transaction(what),
        _OPS.take(pa.array(what.op)),
        _moments(what.now_us),
    ]
    return join(parts, _NULL, len(what.row))


def _event_sources(
    database: str | TextArray, table: str | TextArray, source: SourceColumns, envelope: EnvelopeSettings
) -> tuple[BytesArray, BytesArray]:
    """Return the source blocks of the events, each in two parts: up to the row's number, and behind the number.

    Both parts have one element per event. `database`, `table`: one name that all events share, or one per event.
    """
    values = {
        "version": envelope.version,
        "connector": "mysql",
        "name": envelope.name,
        "db": database,
        "sequence": None,
        "table": table,
        "snapshot": "false",
        "ts_ms": pa.array(source.ts_us // 1000),
        "ts_us": pa.array(source.ts_us),
        "ts_ns": pa.array(source.ts_us * 1000),
        "server_id": pa.array(source.server_id),
        "gtid": source.gtid,
        "file": source.file,
        "pos": pa.array(source.pos),
        "thread": source.thread,
        "query": source.query,
    }
    events = len(source.ts_us)
    return _source_fields(_NAMES[:_ROW_AT], values, events), _source_fields(_NAMES[_ROW_AT + 1 :], values, events)


def _source_fields(names: Sequence[str], values: Mapping[str, Any], events: int) -> BytesArray:
    row = AvroRow(events)
    for name in names:
        value = values[name]
        if isinstance(value, pa.Array):
            row.field(f"source.{name}", _FIELDS[name], value)
        else:
            row.literal(one(_FIELDS[name], value))
    return row.joined()


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
    optional = _INT64.as_optional()
    return one(optional, now_us // 1000) + one(optional, now_us) + one(optional, now_us * 1000)


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
