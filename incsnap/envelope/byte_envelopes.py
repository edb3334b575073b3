"""The part of Debezium's envelope that Avro and Protobuf have in common: bytes behind the id of their schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.columns.variable import take
from incsnap.envelope.added_fields import Value
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import Changes, ManyTables
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceColumns, SourceConstants, source_values
from incsnap.tables import TableId


class RowWriter(Protocol):
    """A writer of the rows of an envelope."""

    def rows(self, columns: Columns, values: Sequence[Value]) -> BytesArray:
        """Return each row as bytes (`pa.binary()`). `values`: of the added fields, of which an envelope has none."""

    def template(self) -> RowTemplate:
        """Return how one row is put together from the encoded values of its columns."""


class ByteEnvelopes(ABC):
    """A writer of a table's record values as bytes. `head`: the bytes before each value, with the id of its schema."""

    #: Bytes in place of the rows before and after, where there is neither.
    no_rows: ClassVar[bytes] = b""

    def __init__(self, table: TableId, envelope: EnvelopeSettings, rows: RowWriter, head: bytes) -> None:
        self._table, self._envelope, self._row_writer, self._head = table, envelope, rows, head

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        return self._envelopes(self._head, self._table, self._row_writer.rows(images, ()), what)

    def template(self) -> RowTemplate:
        """Return how one row of `before` or `after` is put together from the encoded values of its columns."""
        return self._row_writer.template()

    @property
    def constant_bytes(self) -> int:
        """Return the length of the head. The other constant parts of a value are short."""
        return len(self._head)

    def of_tables(
        self, formats: Sequence[ByteEnvelopes], tables: ManyTables, rows: BytesArray, what: Changes
    ) -> BytesArray:
        """Return the value of each record of `what`, of many tables; see `JoinedFormat.of_tables`."""
        heads = take(pa.array([each._head for each in formats], pa.binary()), tables.of_record)
        return self._envelopes(heads, tables, rows, what)

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of the record of a TRUNCATE."""
        return self._head + self.no_rows + self._behind_row(source, "t", now_us)

    def _source(self, source: SourceColumns | SourceConstants, tables: TableId | ManyTables) -> list[tuple[str, Value]]:
        """Return names and values of the source block's fields."""
        envelope = self._envelope
        return [*source_values(source, envelope.version, envelope.name, tables.database, tables.table).items()]

    @abstractmethod
    def _behind_row(self, source: SourceConstants, op: str, now_us: int) -> bytes:
        """Return the bytes behind the row of records that share one source."""

    @abstractmethod
    def _envelopes(
        self, head: bytes | BytesArray, tables: TableId | ManyTables, rows: BytesArray, what: Changes
    ) -> BytesArray:
        """Return one envelope per record of `what` (`pa.binary()`).

        `head`: the bytes before the envelope, shared or one array element per record. `rows`: the row of each image.
        """
