"""The envelope fields that a transform adds to a row or to the headers: their schemas, and their values by column.

Debezium gives an added field the schema of the envelope's field, but optional and without a default. The field's value
does not take the schema's default either, so an added `snapshot` is null for changes of the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, MapArray
from incsnap.connect.schema import Schema
from incsnap.envelope.connect_envelope import SOURCE, TRANSACTION
from incsnap.envelope.connect_envelope import schema_of as inserted_schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables
from incsnap.envelope.sources import SourceConstants, source_values
from incsnap.tables import TableId
from incsnap.transforms.record_spec import Added, BytesHeader, Constant, EnvelopeField, Inserted

_STRING, _INT64 = Schema("string", optional=True), Schema("int64", optional=True)
_ROOT = {"op": _STRING, "ts_ms": _INT64, "ts_us": _INT64, "ts_ns": _INT64}
_STRUCTS = {"": _ROOT, "source": dict(SOURCE.fields), "transaction": dict(TRANSACTION.fields)}
_OPS = pa.array(OPERATIONS)

#: The column with the added headers of a batch of records: of each record a map of header name to bytes, or null.
HEADERS = pa.field("headers", pa.map_(pa.string(), pa.binary()))
#: A str, int, None or (of a header) bytes that all records share, or an Arrow array with one element per record.
Value = Any


def schema_of(added: Added) -> Schema:
    """Return the Connect schema of an added field: the envelope's schema for it, optional and without a default."""
    if isinstance(added, Constant):
        return _STRING
    if isinstance(added, Inserted):
        return inserted_schema(added)
    return replace(_STRUCTS[added.struct][added.field], optional=True, default=None)


def is_known(reference: EnvelopeField) -> bool:
    """Return True if the envelope of MySQL's changes has the field that `reference` names."""
    return reference.field in _STRUCTS.get(reference.struct, ())


def read_values(
    fields: Sequence[Added],
    source: SourceConstants,
    now_us: int,
    table: TableId,
    envelope: EnvelopeSettings,
    op: str,
) -> list[Value]:
    """Return one value per field for records of rows that a SELECT has read; all these records share each value.

    `source`: the source of these records; `now_us`: the records' time, in microseconds since 1970. `op`: `read_op` of
    their spec.
    """
    block = source_values(source, envelope.version, envelope.name, table.database, table.table)
    own = {"": {"op": op, **moments(now_us)}, "source": block, "transaction": dict.fromkeys(_STRUCTS["transaction"])}
    return [_shared(each) if isinstance(each, Constant | Inserted) else own[each.struct][each.field] for each in fields]


def change_values(
    fields: Sequence[Added], what: Changes, tables: TableId | ManyTables, envelope: EnvelopeSettings
) -> list[Value]:
    """Return one value per field for records of changes. An array has one element per record of `what`.

    `tables`: the table of all the changes, or the table of each change.
    """
    if not fields:
        return []
    block: dict[str, Value] = {"snapshot": None}
    if any(isinstance(each, EnvelopeField) and each.struct == "source" for each in fields):
        block = source_values(what.source, envelope.version, envelope.name, tables.database, tables.table) | block
    return [_changed(each, what, block) for each in fields]


def _changed(added: Added, what: Changes, block: Mapping[str, Value]) -> Value:
    """Return the value of one field. `block`: the source block by events."""
    if not isinstance(added, EnvelopeField):
        return _shared(added)
    if added.struct == "transaction":
        return _of_transaction(added.field, what)
    if added.struct == "":
        return _OPS.take(pa.array(what.op)) if added.field == "op" else moments(what.now_us)[added.field]
    if added.field == "row":
        return pa.array(what.row, pa.int64())
    value = block[added.field]
    return value.take(pa.array(what.event)) if isinstance(value, pa.Array) else value


def _shared(added: Constant | Inserted) -> Value:
    return added.data if isinstance(added, BytesHeader) else added.text


def _of_transaction(field: str, what: Changes) -> Value:
    if what.order is None:
        return None
    if field == "id":
        return what.source.gtid.take(pa.array(what.event))
    return pa.array(what.order.total if field == "total_order" else what.order.of_table, pa.int64())


def moments(now_us: int) -> dict[str, int]:
    """Return the envelope's fields `ts_ms`, `ts_us` and `ts_ns` for the time `now_us`, in µs since 1970, at which
    records are made.
    """
    return {"ts_ms": now_us // 1000, "ts_us": now_us, "ts_ns": now_us * 1000}


def header_maps(headers: Sequence[Added], values: Sequence[Value], records: int) -> MapArray | None:
    """Return an array of `HEADERS` with one map per record, or None if `headers` is empty.

    `values`: the value of each header, as `read_values` or `change_values` return them. `records`: how many records.
    """
    if not headers:
        return None
    return map_of([header.name for header in headers], [_header_bytes(value, records) for value in values])


def map_of(headers: Sequence[str], texts: Sequence[Any]) -> MapArray:
    """Return an array of `HEADERS` with one map per record.

    `headers`: the names. `texts`: for each name the values of all records (`pa.binary()`).
    """
    columns, records = pa.concat_arrays(texts), len(texts[0])
    # Arrow wants the headers of one record side by side; `columns` holds one header of all records after another.
    places = (np.arange(records)[:, None] + records * np.arange(len(headers))[None, :]).ravel()
    names = pa.array(headers, pa.string())
    return pa.MapArray.from_arrays(
        pa.array(np.arange(records + 1, dtype=np.int32) * np.int32(len(headers))),
        names.take(pa.array(np.tile(np.arange(len(headers)), records))),
        columns.take(pa.array(places)),
    )


def _header_bytes(value: Value, records: int) -> BytesArray:
    """Return the header's text as Connect's SimpleHeaderConverter writes it: `pa.binary()`, one per record, null for
    null.
    """
    if isinstance(value, pa.Array):
        return value.cast(pa.string()).cast(pa.binary())
    if isinstance(value, bytes):
        return pa.repeat(pa.scalar(value, pa.binary()), records)
    return pa.repeat(pa.scalar(None if value is None else str(value).encode(), pa.binary()), records)
