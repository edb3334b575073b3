"""Keys and values as JSON, with or without their schemas, as Kafka Connect's JsonConverter writes them.

All rows have the same schema. So the schema is one constant text before the payload, and a brace follows the payload.
The `source` block is made once for each binlog event, and all rows of the event use that text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.connect.json_text import literal, strings
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import Value, moments
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import OPERATIONS, Changes, ManyTables
from incsnap.envelope.json_rows import Members, Piece, around, join, json_objects, json_value, members
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceColumns, SourceConstants, source_values
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.envelope.value_texts import json_template
from incsnap.tables import TableId
from incsnap.transforms.record_spec import Added, Constant, Inserted
from incsnap.types.modes import Modes

_OPS = pa.array(OPERATIONS)


class JsonRows:
    """A writer of table rows as JSON objects. It writes keys, flat rows, and identities (values that tell rows apart).

    A flat row is a value without envelope, as the transform ExtractNewRecordState makes it. `schema`: the schema that
    each object is written with; None to write no schemas. `constants`: members that follow the columns and have the
    same value in all rows. `added`: members that follow the constants; each call brings their values, one for all rows
    or one per row.
    """

    def __init__(
        self,
        fields: Sequence[ViewField],
        modes: Modes,
        schema: Schema | None = None,
        *,
        constants: Sequence[Constant] = (),
        added: Sequence[Added] = (),
    ) -> None:
        self._fields, self._modes, self._added = fields, modes, added
        self.has_schema = schema is not None  #: whether the bytes of a row contain its schema
        self._head, self._tail = around(schema)
        self._constants = [(each.name, literal(each.text)) for each in constants]

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row as a JSON object, with its schema if schemas are written (`pa.binary()`)."""
        return self.rows(columns, ())

    def rows(self, columns: Columns, values: Sequence[Value]) -> BytesArray:
        """Return each row as a JSON object (`pa.binary()`).

        `values` has for each added member one value for all rows, or an array with one value per row.
        """
        more = [*self._constants, *self._members(values)]
        return json_objects(self._fields, columns, self._modes, head=self._head, tail=self._tail, more=more)

    def template(self) -> RowTemplate:
        """Return a template of a key: its JSON, with a place for the encoded value of each column."""
        tail = "}" + self._tail
        return json_template(self._fields, self._modes, head=self._head, tail=tail, more=self._constants)

    def begun(self) -> RowTemplate:
        """Return a template of the beginning of a row: its columns, with a place for the encoded value of each, and no
        closing brace.

        `ended` appends the added members and the brace. The comma before the added members is in the template, because
        one call of `ended` serves rows of many tables, and a table may have no columns.
        """
        tail = "," if self._fields and self._added else ""
        return json_template(self._fields, self._modes, head=self._head, tail=tail)

    def ended(self, rows: BytesArray, values: Sequence[Value]) -> BytesArray:
        """Return `rows`, which were made by the template `begun`, with the added members and the closing brace.
        `values`: as in `rows`.
        """
        more = members((name, (text,)) for name, text in self._members(values))
        return join([rows.cast(pa.string()), *more, "}" + self._tail])

    def _members(self, values: Sequence[Value]) -> Members:
        return [(field.name, json_value(value)) for field, value in zip(self._added, values, strict=True)]


class JsonValues:
    """The envelopes of a table's records as JSON.

    `schema`: the envelope's schema; None if schemas are not written. `constants`: fields at the end of each envelope.
    `read_op`: operation of rows that a SELECT has read.
    """

    def __init__(
        self,
        view: TableView,
        envelope: EnvelopeSettings,
        schema: Schema | None,
        constants: Sequence[Inserted] = (),
        read_op: str = "r",
    ) -> None:
        self._read_op = read_op
        self._view, self._envelope, self._modes = view, envelope, envelope.value_modes
        self._head, behind = around(schema)
        texts = "".join(members((each.name, (json_value(each.text),)) for each in constants))
        #: The end of the envelope behind its times.
        self._tail = f"{',' if texts else ''}{texts}}}{behind}"

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        head, tail = self._around_row(source, self._read_op, now_us)
        return json_objects(self._view.fields, columns, self._modes, head=head, tail=tail)

    def rows(self, columns: Columns) -> BytesArray:
        """Return each row as it stands in `before` and `after` (`pa.binary()`)."""
        return json_objects(self._view.fields, columns, self._modes)

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        return self._envelopes(self._head, self._view.shape.id, self.rows(images), what)

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
        head = take(pa.array(heads, pa.string()), tables.of_record) if len(set(heads)) > 1 else self._head
        return self._envelopes(head, tables, rows, what)

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of the record of a TRUNCATE."""
        return "null".join(self._around_row(source, "t", now_us)).encode()

    def _around_row(self, source: SourceConstants, op: str, now_us: int) -> tuple[str, str]:
        """Return the texts before and behind the row of records that share one source."""
        begin, end = self._source(source, self._view.shape.id)
        behind = self._behind_rows([*begin, "0", *end], ["null"], op, now_us)
        return self._head + '{"before":null,"after":', "".join(behind)

    def _envelopes(self, head: Piece, tables: TableId | ManyTables, rows: BytesArray, what: Changes) -> BytesArray:
        """Return one envelope per record of `what` (`pa.binary()`).

        `head`: the text before the envelope, shared or one array element per record. `rows`: the row of each image.
        """
        texts = rows.cast(pa.string())
        begin, end = (take(join(part).cast(pa.string()), what.event) for part in self._source(what.source, tables))
        source, ops = [begin, pa.array(what.row).cast(pa.string()), end], _OPS.take(pa.array(what.op))
        rows_pieces = ['{"before":', take(texts, what.before), ',"after":', take(texts, what.after)]
        return join([head, *rows_pieces, *self._behind_rows(source, _transaction(what), ops, what.now_us)])

    def _behind_rows(
        self, source: Sequence[Piece], transaction: Sequence[Piece], op: Piece, now_us: int
    ) -> list[Piece]:
        times = "".join(members((name, (str(value),)) for name, value in moments(now_us).items()))
        return [",", *source, ',"transaction":', *transaction, ',"op":"', op, f'",{times}{self._tail}']

    def _source(
        self, source: SourceColumns | SourceConstants, tables: TableId | ManyTables
    ) -> tuple[list[Piece], list[Piece]]:
        """Return the texts of the source block in two parts: up to the row's number, and behind the number."""
        values = source_values(source, self._envelope.version, self._envelope.name, tables.database, tables.table)
        texts = ['"source":{', *members((name, (json_value(value),)) for name, value in values.items()), "}"]
        row_at = 2 + 2 * list(values).index("row")
        return texts[:row_at], texts[row_at + 1 :]


def _transaction(what: Changes) -> Sequence[Piece]:
    if what.order is None:
        return ("null",)
    return (
        '{"id":',
        take(strings(what.source.gtid).complete(), what.event),
        ',"total_order":',
        pa.array(what.order.total).cast(pa.string()),
        ',"data_collection_order":',
        pa.array(what.order.of_table).cast(pa.string()),
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
