"""How keys and values of one table become bytes: what the record builder asks, and JSON and Avro answer. For a
DataFrame values become structs of columns instead (``frame_format``).

A format is made for one view of a table and one topic; every call takes whole columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from incsnap.columns.variable import Ints
from incsnap.connect.schema import Schema
from incsnap.envelope.source_block import SourceColumns, SourceConstants
from incsnap.envelope.table_view import Columns

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
    """Of each event, and of each record that has a value, the number of its table."""

    of_event: Ints
    of_record: Ints


class KeyFormat(Protocol):
    def keys(self, columns: Columns) -> Any:
        """``pa.binary()``, one key per row; the view has a key."""


class ValueFormat(Protocol):
    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> Any:
        """``pa.binary()``, or structs: values of rows read by SELECT."""

    def changes(self, images: Columns, what: Changes) -> Any:
        """``pa.binary()``, or structs: a value for each record of ``what``."""


class EnvelopeFormat(ValueFormat, Protocol):
    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """The value of an ``op: "t"`` record."""


class StructFormat(Protocol):
    """Keys, or values, that come one at a time (notifications, transactions, schema changes): any schema."""

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """``value``: dicts, lists and primitives as Connect's JsonConverter would write them. ``subject`` is the
        registry's name for the schema: ``<topic>-key`` or ``<topic>-value``."""
