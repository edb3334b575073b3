"""Fields of the envelope that a transform adds to a row or to the headers: their schemas, and their values by column.

Debezium takes a field's schema without its default, and optional; and its value without the default of its schema, so
that ``snapshot`` is null in the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.connect.json_text import literal, strings
from incsnap.connect.schema import Schema
from incsnap.envelope.connect_envelope import SOURCE, TRANSACTION
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables
from incsnap.envelope.source_block import SourceConstants, source_values
from incsnap.tables import TableId
from incsnap.transforms.form import Added, Constant, Reference

_STRING, _INT64 = Schema("string", optional=True), Schema("int64", optional=True)
_ROOT = {"op": _STRING, "ts_ms": _INT64, "ts_us": _INT64, "ts_ns": _INT64}
_STRUCTS = {"": _ROOT, "source": dict(SOURCE.fields), "transaction": dict(TRANSACTION.fields)}
_OPS = pa.array(OPERATIONS)

#: The column of a batch of records that have headers added: a map of names to bytes, or null.
HEADERS = pa.field("headers", pa.map_(pa.string(), pa.binary()))
#: A str, an int or None of all records, or an array of one for each.
Value = Any


def schema_of(added: Added) -> Schema:
    if isinstance(added, Constant):
        return _STRING
    return replace(_STRUCTS[added.struct][added.field], optional=True, default=None)


def is_known(reference: Reference) -> bool:
    """Has the envelope of MySQL's changes such a field?"""
    return reference.field in _STRUCTS.get(reference.struct, ())


def read_values(
    fields: Sequence[Added], source: SourceConstants, now_us: int, table: TableId, envelope: EnvelopeSettings
) -> list[Value]:
    """The fields' values in records of rows that a SELECT has read."""
    block = source_values(source, envelope.version, envelope.name, table.database, table.table)
    return [_read(each, block, now_us) for each in fields]


def _read(added: Added, block: dict[str, Any], now_us: int) -> Value:
    if isinstance(added, Constant):
        return added.text
    if added.struct == "":
        return "r" if added.field == "op" else _moment(added.field, now_us)
    value: Value = block[added.field] if added.struct == "source" else None
    return value


def change_values(
    fields: Sequence[Added], what: Changes, tables: TableId | ManyTables, envelope: EnvelopeSettings
) -> list[Value]:
    """The fields' values in records of changes: arrays have one element for each record of ``what``."""
    return [_changed(each, what, tables, envelope) for each in fields]


def _changed(added: Added, what: Changes, tables: TableId | ManyTables, envelope: EnvelopeSettings) -> Value:
    if isinstance(added, Constant):
        return added.text
    if added.struct == "source":
        return _of_source(added.field, what, tables, envelope)
    if added.struct == "transaction":
        return _of_transaction(added.field, what)
    return _OPS.take(pa.array(what.op)) if added.field == "op" else _moment(added.field, what.now_us)


def _of_source(field: str, what: Changes, tables: TableId | ManyTables, envelope: EnvelopeSettings) -> Value:
    source = what.source
    constants: dict[str, Value] = {
        "version": envelope.version,
        "connector": "mysql",
        "name": envelope.name,
        "snapshot": None,
        "sequence": None,
    }
    if field in constants:
        return constants[field]
    if field in ("db", "table"):
        if isinstance(tables, TableId):
            return tables.database if field == "db" else tables.table
        names = tables.databases if field == "db" else tables.names
        return names.take(pa.array(what.event))
    if field == "row":
        return pa.array(what.row, pa.int64())
    if field == "query" and source.query is None:
        return None
    of_events = {
        "ts_ms": lambda: pa.array(source.ts_us // 1000),
        "ts_us": lambda: pa.array(source.ts_us),
        "ts_ns": lambda: pa.array(source.ts_us * 1000),
        "server_id": lambda: pa.array(source.server_id),
        "gtid": lambda: source.gtid,
        "file": lambda: source.file,
        "pos": lambda: pa.array(source.pos),
        "thread": lambda: source.thread,
        "query": lambda: source.query,
    }
    return of_events[field]().take(pa.array(what.event))


def _of_transaction(field: str, what: Changes) -> Value:
    if what.order is None:
        return None
    if field == "id":
        return what.source.gtid.take(pa.array(what.event))
    return pa.array(what.order.total if field == "total_order" else what.order.of_table, pa.int64())


def _moment(field: str, now_us: int) -> int:
    return {"ts_ms": now_us // 1000, "ts_us": now_us, "ts_ns": now_us * 1000}[field]


def json_text(value: Value) -> Any:
    """A text for all, or an array of texts, null for null."""
    if isinstance(value, pa.Array):
        return strings(value).complete() if pa.types.is_string(value.type) else value.cast(pa.string())
    if value is None:
        return "null"
    return literal(value) if isinstance(value, str) else str(value)


def header_maps(headers: Sequence[Added], values: Sequence[Value], records: int) -> Any:
    """An array of ``HEADERS``, None where nothing is added."""
    if not headers:
        return None
    return map_of([header.name for header in headers], [_header_bytes(value, records) for value in values])


def map_of(headers: Sequence[str], texts: Sequence[Any]) -> Any:
    """An array of ``HEADERS``; ``texts``: of each header a ``pa.binary()`` of all records."""
    columns, records = pa.concat_arrays(texts), len(texts[0])
    # A record's headers stand together, the columns' values one after another.
    places = (np.arange(records)[:, None] + records * np.arange(len(headers))[None, :]).ravel()
    names = pa.array(headers, pa.string())
    return pa.MapArray.from_arrays(
        pa.array(np.arange(records + 1, dtype=np.int32) * np.int32(len(headers))),
        names.take(pa.array(np.tile(np.arange(len(headers)), records))),
        columns.take(pa.array(places)),
    )


def _header_bytes(value: Value, records: int) -> Any:
    """``pa.binary()``, one for each record: text as Connect's SimpleHeaderConverter writes it, null for null."""
    if isinstance(value, pa.Array):
        return value.cast(pa.string()).cast(pa.binary())
    return pa.repeat(pa.scalar(None if value is None else str(value).encode(), pa.binary()), records)
