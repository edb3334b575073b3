"""Keys and values as JSON, with or without their schemas, as Kafka Connect's JsonConverter writes them.

A schema is the same for all rows, so it is one literal before the payload, and one brace behind it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from incsnap.columns.variable import take
from incsnap.connect.json_schema import schema_json
from incsnap.connect.json_text import literal, strings
from incsnap.connect.schema import Schema
from incsnap.envelope.cells import Pattern
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables, TransactionOrder
from incsnap.envelope.json_rows import join, json_objects, json_pattern
from incsnap.envelope.source_block import (
    SourceConstants,
    event_sources,
    moments,
    one_source,
    sources_of_tables,
)
from incsnap.envelope.table_view import Columns, TableView
from incsnap.transforms.form import Constant

_OPS = pa.array(OPERATIONS)


def around(schema: Schema | None) -> tuple[str, str]:
    """What stands before and behind a payload; nothing when schemas are not written."""
    return ("", "") if schema is None else (f'{{"schema":{schema_json(schema)},"payload":', "}")


class JsonKeys:
    """``schema``: of the key struct, None where it is not to be written; ``more``: what stands behind the columns."""

    def __init__(
        self, view: TableView, envelope: EnvelopeSettings, schema: Schema | None, more: Sequence[Constant] = ()
    ) -> None:
        self._view, self._modes = view, envelope.key_modes
        self.has_schema = schema is not None  #: whether the bytes of a key change with its schema
        self._head, self._tail = around(schema)
        self._more = [(field.name, literal(field.text)) for field in more]

    def keys(self, columns: Columns) -> Any:
        return json_objects(self._view.key, columns, self._modes, head=self._head, tail=self._tail, more=self._more)

    def pattern(self) -> Pattern:
        return json_pattern(self._view.key, self._modes, head=self._head, tail=self._tail, more=self._more)


class JsonValues:
    """``schema``: of the envelope, None where it is not to be written."""

    def __init__(self, view: TableView, envelope: EnvelopeSettings, schema: Schema | None) -> None:
        self._view, self._envelope, self._modes = view, envelope, envelope.value_modes
        self._head, self._tail = around(schema)

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> Any:
        block = one_source(self._view.shape.id, source, self._envelope)
        return json_objects(
            self._view.fields,
            columns,
            self._modes,
            head=self._head + '{"before":null,"after":',
            tail=f',{block},"transaction":null,"op":"r",{moments(now_us)}}}' + self._tail,
        )

    def changes(self, images: Columns, what: Changes) -> Any:
        rows = json_objects(self._view.fields, images, self._modes)
        sources = event_sources(self._view.shape.id, what.source, self._envelope)
        return _envelopes(self._head, rows, what, sources, self._tail)

    def pattern(self) -> Pattern:
        return json_pattern(self._view.fields, self._modes)

    @property
    def constant_bytes(self) -> int:
        return len(self._head)

    def of_tables(self, formats: Sequence[JsonValues], tables: ManyTables, rows: Any, what: Changes) -> Any:
        heads = [each._head for each in formats]
        sources = sources_of_tables(tables.ids, tables.of_event, what.source, self._envelope)
        head: Any = self._head
        if len(set(heads)) > 1:
            head = take(pa.array(heads, pa.string()), tables.of_record)
        return _envelopes(head, rows, what, sources, self._tail)

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        block = one_source(self._view.shape.id, source, self._envelope)
        body = f'{{"before":null,"after":null,{block},"transaction":null,"op":"t",{moments(now_us)}}}'
        return (self._head + body + self._tail).encode()


def _envelopes(head: Any, rows: Any, what: Changes, sources: tuple[Any, Any], tail: str) -> Any:
    """``head``: a text, or one for each record; ``rows``: of each image; ``sources``: of each event."""
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


def _transaction(what: Changes) -> Sequence[Any]:
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
    """Keys or values that come one at a time; ``schemas``: whether their schemas are written."""

    def __init__(self, *, schemas: bool) -> None:
        self._schemas = schemas

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        head, tail = around(schema if self._schemas else None)
        return (head + json.dumps(value, separators=(",", ":"), ensure_ascii=False) + tail).encode()
