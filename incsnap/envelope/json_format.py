"""Keys and values as JSON, with or without their schemas, as Kafka Connect's JsonConverter writes them.

All rows have the same schema, so it is one literal before the payload, and a brace behind it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns, TextArray
from incsnap.columns.variable import take
from incsnap.connect.json_text import literal, strings
from incsnap.connect.schema import Schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables, TransactionOrder
from incsnap.envelope.json_rows import around, join, json_objects
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.source_block import event_sources, moments, one_source, sources_of_tables
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView
from incsnap.envelope.value_texts import json_template
from incsnap.transforms.record_spec import Constant

_OPS = pa.array(OPERATIONS)


class JsonKeys:
    """The keys of a table's records as JSON.

    `schema`: the schema of the key; None if schemas are not written. `more`: fields behind the columns, alike in all
    keys.
    """

    def __init__(
        self, view: TableView, envelope: EnvelopeSettings, schema: Schema | None, more: Sequence[Constant] = ()
    ) -> None:
        self._view, self._modes = view, envelope.key_modes
        self.has_schema = schema is not None  #: whether the bytes of a key contain its schema
        self._head, self._tail = around(schema)
        self._more = [(field.name, literal(field.text)) for field in more]

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row (`pa.binary()`)."""
        return json_objects(self._view.key, columns, self._modes, head=self._head, tail=self._tail, more=self._more)

    def template(self) -> RowTemplate:
        """Return how one key is put together from the encoded values of its columns."""
        return json_template(self._view.key, self._modes, head=self._head, tail=self._tail, more=self._more)


class JsonValues:
    """The envelopes of a table's records as JSON. `schema`: the envelope's schema; None if schemas are not written."""

    def __init__(self, view: TableView, envelope: EnvelopeSettings, schema: Schema | None) -> None:
        self._view, self._envelope, self._modes = view, envelope, envelope.value_modes
        self._head, self._tail = around(schema)

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        block = one_source(self._view.shape.id, source, self._envelope)
        return json_objects(
            self._view.fields,
            columns,
            self._modes,
            head=self._head + '{"before":null,"after":',
            tail=f',{block},"transaction":null,"op":"r",{moments(now_us)}}}' + self._tail,
        )

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        rows = json_objects(self._view.fields, images, self._modes)
        sources = event_sources(self._view.shape.id, what.source, self._envelope)
        return _envelopes(self._head, rows, what, sources, self._tail)

    def template(self) -> RowTemplate:
        """Return how one row of `before` or `after` is put together from the encoded values of its columns."""
        return json_template(self._view.fields, self._modes)

    @property
    def constant_bytes(self) -> int:
        """Return the length of the schema that stands before each value, 0 without schemas.

        The other constant parts are short.
        """
        return len(self._head)

    def of_tables(
        self, formats: Sequence[JsonValues], tables: ManyTables, rows: BytesArray, what: Changes
    ) -> BytesArray:
        """Return the value of each record of `what`, of many tables; see `JoinedFormat.of_tables`."""
        heads = [each._head for each in formats]
        sources = sources_of_tables(tables.ids, tables.of_event, what.source, self._envelope)
        head: str | TextArray = self._head
        if len(set(heads)) > 1:
            head = take(pa.array(heads, pa.string()), tables.of_record)
        return _envelopes(head, rows, what, sources, self._tail)

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of the record of a TRUNCATE."""
        block = one_source(self._view.shape.id, source, self._envelope)
        body = f'{{"before":null,"after":null,{block},"transaction":null,"op":"t",{moments(now_us)}}}'
        return (self._head + body + self._tail).encode()


def _envelopes(
    head: str | TextArray, rows: BytesArray, what: Changes, sources: tuple[TextArray, TextArray], tail: str
) -> BytesArray:
    """Return one envelope per record of `what` (`pa.binary()`).

    `head`: the text before the envelope, shared or one array element per record. `rows`: the row of each image.
    `sources`: of each event the source block before and behind the row's number.
    """
    texts, (begin, end) = rows.cast(pa.string()), sources
    return join(
        [
            *((head + '{"before":',) if isinstance(head, str) else (head, '{"before":')),
            take(texts, what.before),
            ',"after":',
            take(texts, what.after),
            ",",
            take(begin, what.event),
            pa.array(what.row).cast(pa.string()),
            take(end, what.event),
            ',"transaction":',
            *_transaction(what),
            ',"op":"',
            _OPS.take(pa.array(what.op)),
            f'",{moments(what.now_us)}}}' + tail,
        ]
    )


def _transaction(what: Changes) -> Sequence[str | TextArray]:
    order: TransactionOrder | None = what.order
    if order is None:
        return ("null",)
    return (
        '{"id":',
        take(strings(what.source.gtid).complete(), what.event),
        ',"total_order":',
        pa.array(order.total).cast(pa.string()),
        ',"data_collection_order":',
        pa.array(order.of_table).cast(pa.string()),
        "}",
    )


class JsonStructs:
    """A JSON encoder for keys or values that come one at a time. `schemas`: whether it writes their schemas."""

    def __init__(self, *, schemas: bool) -> None:
        self._schemas = schemas

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """Return `value` as JSON. `subject` is not used: JSON has no registry."""
        head, tail = around(schema if self._schemas else None)
        return (head + json.dumps(value, separators=(",", ":"), ensure_ascii=False) + tail).encode()
