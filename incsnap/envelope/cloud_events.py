"""Envelopes as CloudEvents in JSON, as Debezium's CloudEventsConverter writes them.

The attributes come from the source block: `id` is the place in the binlog, and `iodebezium...` are the block's fields.
`data` has the rows before and after the change.
https://debezium.io/documentation/reference/stable/integrations/cloudevents.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.connect.json_text import literal, strings
from incsnap.connect.schema import Schema
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes
from incsnap.envelope.json_rows import Piece, around, join, json_objects, json_value, members
from incsnap.envelope.sources import SourceColumns, SourceConstants, source_values
from incsnap.envelope.table_view import TableView
from incsnap.types.temporal.iso_text import iso_moments

_OPS = pa.array(OPERATIONS)
_DATA = "io.debezium.connector.mysql.Data"
#: Fields of the source block that are numbers of 64 bits. CloudEvents has no such numbers, so they are texts.
_LONG = ("ts_ms", "ts_us", "ts_ns", "server_id", "pos", "thread")
_PLACE = "row"


class CloudEvents:
    """The values of a table's records as CloudEvents.

    `row`: the schema of the rows; it must be optional. `read_op`: operation of rows that a SELECT has read.
    """

    def __init__(self, view: TableView, envelope: EnvelopeSettings, row: Schema, read_op: str = "r") -> None:
        self._read_op = read_op
        self._view, self._envelope, self._modes = view, envelope, envelope.value_modes
        self._extended = envelope.value.extended
        data = Schema("struct", name=_DATA, fields=(("before", row), ("after", row)))
        self._head, self._tail = around(data if envelope.value.schemas else None)

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        head, tail = self._around_row(source, self._read_op)
        return json_objects(self._view.fields, columns, self._modes, head=head, tail=tail)

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        rows = json_objects(self._view.fields, images, self._modes).cast(pa.string())
        parts = self._attributes(what.source)
        begin, between, end = (take(join(part).cast(pa.string()), what.event) if part else "" for part in parts)
        data = [f',"data":{self._head}{{"before":', take(rows, what.before), ',"after":', take(rows, what.after)]
        texts: list[Piece] = [begin, *data, "}" + self._tail + "}"]
        if self._extended:
            op, row = _OPS.take(pa.array(what.op)), pa.array(what.row).cast(pa.string())
            texts[1:1] = [op, between, row, end, *_transaction(what)]
        return join(texts)

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of the record of a TRUNCATE."""
        return "null".join(self._around_row(source, "t")).encode()

    def _around_row(self, source: SourceConstants, op: str) -> tuple[str, str]:
        """Return the texts before and behind the row of records that share one source."""
        begin, between, end = ("".join(part) for part in self._attributes(source))
        texts = begin
        if self._extended:
            texts += f"{op}{between}0{end}" + "".join(_block("null", "null", "null"))
        return f'{texts},"data":{self._head}{{"before":null,"after":', "}" + self._tail + "}"

    def _attributes(self, source: SourceColumns | SourceConstants) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """Return the texts of the attributes: up to the operation, up to the number of the row, and behind the number.

        The second and third are empty without extension attributes.
        """
        table, name = self._view.shape.id, self._envelope.name
        values = source_values(source, self._envelope.version, name, table.database, table.table)
        prefix = literal(name)[1:-1]
        begin = [
            f'{{"id":"name:{prefix};file:',
            _inner(values["file"]),
            ";pos:",
            _digits(values["pos"]),
            f'","source":"/debezium/mysql/{prefix}","specversion":"1.0"'
            ',"type":"io.debezium.connector.mysql.DataChangeEvent","time":"',
            _time(source),
            '","datacontenttype":"application/json"',
        ]
        if not self._extended:
            return begin, [], []
        fields = [
            (f"iodebezium{field.replace('_', '')}", (_extension(field, value),)) for field, value in values.items()
        ]
        at = list(values).index(_PLACE)
        before, behind = members(fields[:at]), members(fields[at + 1 :])
        return [*begin, ',"iodebeziumop":"'], ['",', *before, ',"iodebeziumrow":'], [",", *behind]


def _extension(field: str, value: Any) -> Piece:
    """Return a field of the source block as JSON. Numbers of 64 bits are texts."""
    if field not in _LONG or value is None:
        return json_value(value)
    return json_value(value.cast(pa.string()) if isinstance(value, pa.Array) else str(value))


def _inner(value: Any) -> Piece:
    """Return a text as JSON without its quotes. Names of binlog files need no escapes."""
    return value if isinstance(value, pa.Array) else literal(value)[1:-1]


def _digits(value: Any) -> Piece:
    return value.cast(pa.string()) if isinstance(value, pa.Array) else str(value)


def _time(source: SourceColumns | SourceConstants) -> Piece:
    if isinstance(source, SourceColumns):
        return iso_moments(source.ts_us, 3, None)
    return str(iso_moments(np.array([source.ts_us]), 3, None)[0].as_py())


def _transaction(what: Changes) -> Sequence[Piece]:
    if what.order is None:
        return _block("null", "null", "null")
    numbers = (json_value(pa.array(each).cast(pa.string())) for each in (what.order.total, what.order.of_table))
    return _block(take(strings(what.source.gtid).complete(), what.event), *numbers)


def _block(id_: Piece, total: Piece, of_table: Piece) -> list[Piece]:
    return [
        ',"iodebeziumtxid":',
        id_,
        ',"iodebeziumtxtotalorder":',
        total,
        ',"iodebeziumtxdatacollectionorder":',
        of_table,
    ]


class NoEvents:
    """The format of values that are no changes of rows: Debezium's converter gives these records no value."""

    def struct(self, subject: str, schema: Schema, value: Any) -> None:
        """Return None, whatever the record is."""
