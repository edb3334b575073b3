"""How keys and values of one table become bytes: what the record builder asks, and JSON and Avro answer. For a
DataFrame values become structs of columns instead (``frame_format``).

A format is made for one view of a table and one topic; every call takes whole columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.variable import Ints, take
from incsnap.connect.schema import Schema
from incsnap.envelope.cells import Pattern
from incsnap.envelope.source_block import SourceColumns, SourceConstants
from incsnap.envelope.table_view import Columns
from incsnap.tables import TableId

#: Connect's letters of operations, by the number that stands for them in ``Changes.op``.
OPERATIONS = ("c", "u", "d")


@dataclass(frozen=True, slots=True, eq=False)
class TransactionOrder:
    """The ``transaction`` block of each record: its number in the transaction, and among those of its table; its id is
    the GTID of its event."""

    total: Ints
    of_table: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """One element per record that has a value. ``before`` and ``after``: indexes of row images, -1 for none;
    ``event``: index into ``source``; ``row``: number within the event; ``op``: index into ``OPERATIONS``.
    """

    before: npt.NDArray[Any]
    after: npt.NDArray[Any]
    event: npt.NDArray[Any]
    row: npt.NDArray[Any]
    op: npt.NDArray[np.uint8]
    source: SourceColumns
    order: TransactionOrder | None
    now_us: int


@dataclass(frozen=True, slots=True, eq=False)
class ManyTables:
    """``of_event``: index into ``ids`` of each event; ``of_record``: of each record which of the formats writes it."""

    ids: Sequence[TableId]
    of_event: Ints
    of_record: Ints

    @property
    def databases(self) -> Any:
        """The database of each event (``pa.string()``)."""
        return take(pa.array([each.database for each in self.ids], pa.string()), self.of_event)

    @property
    def names(self) -> Any:
        """The table's name of each event (``pa.string()``)."""
        return take(pa.array([each.table for each in self.ids], pa.string()), self.of_event)


class KeyFormat(Protocol):
    def keys(self, columns: Columns) -> Any:
        """``pa.binary()``, one key per row; the view has a key."""


class ValueFormat(Protocol):
    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> Any:
        """``pa.binary()``, or structs: values of rows read by SELECT."""

    def changes(self, images: Columns, what: Changes) -> Any:
        """``pa.binary()``, or structs: a value for each record of ``what``."""


@runtime_checkable
class JoinedFormat(ValueFormat, Protocol):
    """One that can also write rows of many tables at once."""

    def pattern(self) -> Pattern:
        """How a row is put together, without what differs from record to record."""

    @property
    def constant_bytes(self) -> int:
        """What a record takes beside its row and its source, about."""

    def of_tables(self, formats: Sequence[Any], tables: ManyTables, rows: Any, what: Changes) -> Any:
        """As ``changes``, by ``formats``, which differ from this one by their tables alone; ``rows``: of each image
        what the patterns have given."""


class EnvelopeFormat(ValueFormat, Protocol):
    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """The value of an ``op: "t"`` record."""


class StructFormat(Protocol):
    """Keys, or values, that come one at a time (notifications, transactions, schema changes): any schema."""

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """``value``: dicts, lists and primitives as Connect's JsonConverter would write them. ``subject`` is the
        registry's name for the schema: ``<topic>-key`` or ``<topic>-value``."""
