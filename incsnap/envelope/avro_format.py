"""Keys and values as Avro in Confluent's wire format: a zero byte, the schema's number in four, then the record.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fastavro
import pyarrow as pa

from incsnap.columns.variable import take
from incsnap.connect.avro_columns import AvroRow, join, one
from incsnap.connect.avro_schema import avro_json, avro_schema
from incsnap.connect.schema import Schema
from incsnap.envelope.cells import Pattern, avro_cells
from incsnap.envelope.connect_envelope import SOURCE, envelope_schema, key_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.source_block import SourceColumns, SourceConstants, source_values
from incsnap.envelope.table_view import Columns, TableView, ViewField
from incsnap.tables import TableId
from incsnap.transforms.form import Form
from incsnap.types.modes import Modes

#: (subject, Avro schema as JSON) -> its number in the registry.
Register = Callable[[str, str], int]

#: Fields and their schemas, which are made once: a DEFAULT in one is converted each time.
Fields = Sequence[tuple[ViewField, Schema]]

#: Members of the unions [null, T] of our own fields.
_NULL, _VALUE = b"\x00", b"\x02"
_STRING, _INT64 = Schema("string"), Schema("int64")
_FIELDS = dict(SOURCE.fields)
_NAMES = list(_FIELDS)
_ROW_AT = _NAMES.index("row")
_OPS = pa.array([one(_STRING, letter) for letter in OPERATIONS], pa.binary())


class AvroKeys:
    """Registers the key's schema when it is made: raises what ``register`` raises, and ``ConfigError`` for names."""

    def __init__(self, view: TableView, form: Form, envelope: EnvelopeSettings, register: Register) -> None:
        self._view, self._modes = view, envelope.modes
        self._fields = [(field, field.schema(envelope.modes)) for field in view.key]
        self._head = wire_head(register(f"{form.topic}-key", avro_json(key_schema(view, form, envelope.modes))))
        self._more = b"".join(one(_STRING, field.text) for field in form.key_fields)

    def keys(self, columns: Columns) -> Any:
        row = AvroRow(rows_of(columns))
        row.literal(self._head)
        write_fields(row, self._view.shape.id, self._fields, columns, self._modes)
        row.literal(self._more)
        return row.joined()

    def pattern(self) -> Pattern:
        return avro_pattern(self._fields, self._modes, self._head, self._more)


class AvroValues:
    """Registers the envelope's schema when it is made, as ``AvroKeys`` does."""

    def __init__(self, view: TableView, form: Form, envelope: EnvelopeSettings, register: Register) -> None:
        self._view, self._envelope = view, envelope
        self._fields = [(field, field.schema(envelope.modes)) for field in view.fields]
        schema = avro_json(envelope_schema(view, form, envelope.modes))
        self._head = wire_head(register(f"{form.topic}-value", schema))

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> Any:
        row = AvroRow(rows_of(columns))
        row.literal(self._head + _NULL + _VALUE)
        write_fields(row, self._view.shape.id, self._fields, columns, self._envelope.modes)
        row.literal(self._one_source(source) + _NULL + one(_STRING, "r") + _moments(now_us))
        return row.joined()

    def changes(self, images: Columns, what: Changes) -> Any:
        table = self._view.shape.id
        sources = _event_sources(table.database, table.table, what.source, self._envelope)
        return _envelopes(self._head, self._rows(images), what, sources)

    def pattern(self) -> Pattern:
        return avro_pattern(self._fields, self._envelope.modes, _VALUE)

    @property
    def constant_bytes(self) -> int:
        return len(self._head)

    def of_tables(self, formats: Sequence[AvroValues], tables: ManyTables, rows: Any, what: Changes) -> Any:
        sources = _event_sources(tables.databases, tables.names, what.source, self._envelope)
        heads = take(pa.array([each._head for each in formats], pa.binary()), tables.of_record)
        return _envelopes(heads, rows, what, sources)

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        body = _NULL + _NULL + self._one_source(source) + _NULL + one(_STRING, "t") + _moments(now_us)
        return self._head + body

    def _rows(self, columns: Columns) -> Any:
        """With the union's member before each, so that a missing row is the other member alone."""
        row = AvroRow(rows_of(columns))
        row.literal(_VALUE)
        write_fields(row, self._view.shape.id, self._fields, columns, self._envelope.modes)
        return row.joined()

    def _one_source(self, source: SourceConstants) -> bytes:
        table = self._view.shape.id
        values = source_values(source, self._envelope.version, self._envelope.name, table.database, table.table)
        return b"".join(one(schema, values[name]) for name, schema in SOURCE.fields)


class AvroStructs:
    """Keys or values that come one at a time."""

    def __init__(self, register: Register) -> None:
        self._register = register
        self._known: dict[tuple[str, Schema], tuple[bytes, Any]] = {}

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """``value`` as Connect's JsonConverter writes it: bytes are base64."""
        known = self._known.get((subject, schema))
        if known is None:
            head = wire_head(self._register(subject, avro_json(schema)))
            known = self._known[subject, schema] = head, fastavro.parse_schema(avro_schema(schema))
        out = io.BytesIO()
        out.write(known[0])
        fastavro.schemaless_writer(out, known[1], _plain(schema, value))
        return out.getvalue()


def wire_head(number: int) -> bytes:
    return b"\x00" + number.to_bytes(4, "big")


def write_fields(row: AvroRow, table: TableId, fields: Fields, columns: Columns, modes: Modes) -> None:
    for field, schema in fields:
        row.field(f"{table}.{field.name}", schema, field.connect(columns, modes))


def avro_pattern(fields: Fields, modes: Modes, head: bytes, tail: bytes = b"") -> Pattern:
    cells = [(field.index, avro_cells(field, schema, modes)) for field, schema in fields]
    literals = [head, *[b""] * (len(cells) - 1), tail] if cells else [head + tail]
    return Pattern.of(literals, cells)


def _envelopes(head: Any, rows: Any, what: Changes, sources: tuple[Any, Any]) -> Any:
    """``head``: bytes, or those of each record; ``rows``: of each image; ``sources``: of each event."""
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


def _event_sources(database: Any, table: Any, source: SourceColumns, envelope: EnvelopeSettings) -> tuple[Any, Any]:
    """The block up to the number of the row, and what follows that: one element per event. ``database``, ``table``: a
    name, or one for each event."""
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


def _source_fields(names: Sequence[str], values: Mapping[str, Any], events: int) -> Any:
    row = AvroRow(events)
    for name in names:
        value = values[name]
        if isinstance(value, pa.Array):
            row.field(f"source.{name}", _FIELDS[name], value)
        else:
            row.literal(one(_FIELDS[name], value))
    return row.joined()


def _transaction(what: Changes) -> Sequence[Any]:
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
    """Base64 as bytes; a missing optional field as None, or its default."""
    if value is None:
        return schema.default
    if schema.type == "bytes":
        return base64.b64decode(value)
    if schema.type == "struct":
        return {name: _plain(inner, value.get(name)) for name, inner in schema.fields}
    if schema.type == "array" and schema.items is not None:
        return [_plain(schema.items, item) for item in value]
    return value
