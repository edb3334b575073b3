"""The interfaces of formats: how keys and values of a table become bytes, as JSON, Avro or Protobuf.

For a DataFrame values become structs of columns instead (`frame_format`). A format is made for one view of a table and
one topic. Each call takes whole columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray, Columns, TextArray
from incsnap.columns.variable import Ints, take
from incsnap.connect.schema import Schema
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.sources import SourceColumns, SourceConstants
from incsnap.tables import TableId

#: Connect's letters of operations; `Changes.op` has their indexes.
OPERATIONS = ("c", "u", "d")


@dataclass(frozen=True, slots=True, eq=False)
class TransactionOrder:
    """The numbers in the `transaction` block of each record. The block's id is the GTID of the record's event."""

    total: Ints  #: number of the record in its transaction
    of_table: Ints  #: number of the record among those of its table in the transaction

    def only(self, which: Any) -> TransactionOrder:
        """Return the order of some of the records. `which` is a mask, an array of indexes or a slice of the records."""
        return TransactionOrder(self.total[which], self.of_table[which])


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Records of changes that one encoder writes: one element per record in each array.

    Records without a value are among them only if the encoder makes headers. A tombstone then has the `op` of its
    deletion.
    """

    before: npt.NDArray[Any]  #: index of the row image before the change, -1 for none
    after: npt.NDArray[Any]  #: index of the row image after the change, -1 for none
    event: npt.NDArray[Any]  #: index into `source`
    row: npt.NDArray[Any]  #: number of the changed row within its event
    op: npt.NDArray[np.uint8]  #: index into `OPERATIONS`
    source: SourceColumns  #: one element per event
    order: TransactionOrder | None  #: None if no transaction metadata is wanted
    now_us: int  #: the records' own time, in microseconds since 1970

    def only(self, which: Any) -> Changes:
        """Return some of the records. `which` is a mask or a slice."""
        of_records = {name: getattr(self, name)[which] for name in ("before", "after", "event", "row", "op")}
        return replace(self, **of_records, order=self.order and self.order.only(which))


@dataclass(frozen=True, slots=True, eq=False)
class ManyTables:
    """The tables that changes of many tables belong to."""

    ids: Sequence[TableId]  #: the tables
    of_event: Ints  #: of each event: index into `ids`
    of_record: Ints  #: of each record: index of the format that encodes it

    @property
    def database(self) -> TextArray:
        """Return the name of each event's database (`pa.string()`, one element per event)."""
        return take(pa.array([each.database for each in self.ids], pa.string()), self.of_event)

    @property
    def table(self) -> TextArray:
        """Return the name of each event's table without its database (`pa.string()`, one element per event)."""
        return take(pa.array([each.table for each in self.ids], pa.string()), self.of_event)


class KeyFormat(Protocol):
    """The format of keys of one table that has a key."""

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row (`pa.binary()`)."""


class ValueFormat(Protocol):
    """The format of values of one table."""

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> Array:
        """Return the value of each row that a SELECT has read (`pa.binary()`, or structs).

        `now_us`: microseconds since 1970.
        """

    def changes(self, images: Columns, what: Changes) -> Array:
        """Return the value of each record of `what` (`pa.binary()`, or structs).

        `images`: columns of the row images.
        """


@runtime_checkable
class JoinedFormat(ValueFormat, Protocol):
    """A format of values that can also encode records of many tables at once."""

    def template(self) -> RowTemplate:
        """Return how one row is put together from the encoded values of its columns."""

    @property
    def constant_bytes(self) -> int:
        """Return about how many bytes a value has besides its row and its source block.

        This serves to estimate the memory of records before they are encoded.
        """

    def of_tables(self, formats: Sequence[Any], tables: ManyTables, rows: BytesArray, what: Changes) -> BytesArray:
        """Return the value of each record of `what`, of many tables (`pa.binary()`).

        `formats`: the format of each table; they differ from this one by their tables alone. `rows`: of each image the
        row that its table's `template` has made.
        """


class EnvelopeFormat(ValueFormat, Protocol):
    """A format whose values are whole envelopes. It can also encode a TRUNCATE."""

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of a record with `op: "t"`. `now_us`: microseconds since 1970."""


class StructFormat(Protocol):
    """The format of keys or values that come one at a time.

    They may have any schema: notifications, transactions, schema changes.
    """

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes | None:
        """Return `value` encoded, or None if such records have no value.

        `value`: dicts, lists and primitives as Connect's JsonConverter would write them. `subject`: the registry's name
        for the schema, `<topic>-key` or `<topic>-value`.
        """
