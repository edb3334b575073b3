"""Columns of records that are made alike, whether the records are of one table or of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bools, Ints, take, variable
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.record_images import DELETE, UPDATE, RecordImages
from incsnap.envelope.records import MARKS
from incsnap.envelope.source_block import SourceColumns

#: The place of a tombstone among the first four of ``written.CHANGES``.
_TOMBSTONE = 3


def kinds_of(records: RecordImages) -> npt.NDArray[np.uint8]:
    """Indexes into ``written.CHANGES``: the operation, a tombstone last of four, and another four of moved rows."""
    return np.minimum(records.op, np.uint8(_TOMBSTONE)) + np.uint8(4) * records.moved


def orders_of(order: TransactionOrder, whole: RecordImages, which: Bools | None) -> TransactionOrder:
    """The numbers of the records that ``which`` names, None for all; ``order``: those of the records of ``whole`` that
    have a value. Tombstones have no number of their own."""
    at = np.cumsum(whole.has_value) - 1
    at = at if which is None else at[which]
    return TransactionOrder(order.total[at], order.of_table[at])


def marks_of(records: RecordImages, event: Ints, source: SourceColumns) -> Any:
    """MARKS of each record, in binlog order; ``event``: of each, ascending. Tombstones have no operation."""
    assert source.number is not None
    row = np.arange(len(records)) - np.searchsorted(event, event)
    is_change = records.has_value
    values = [
        pa.array(np.where(is_change, np.minimum(records.op, np.uint8(DELETE)), 0), pa.int8(), mask=~is_change),
        pa.array(source.ts_us[event]),
        take(source.gtid, event),
        pa.array(source.number[event], pa.int64()),
        pa.array(row, pa.int64()),
    ]
    return pa.StructArray.from_arrays(values, fields=list(MARKS))


def identities(records: RecordImages, of_image: Any) -> tuple[Any, Any]:
    """``identity`` and ``old_identity`` of each record; ``of_image``: what ``identities_of`` gives, null where the key
    serves."""
    identity = take(of_image, records.key)
    before = take(of_image, np.where(records.op == UPDATE, records.before_key, -1))
    changed = pc.fill_null(pc.not_equal(before, identity), False)
    return identity, pc.if_else(changed, before, pa.scalar(None, pa.binary()))


def spread(parts: Sequence[tuple[Bools, Any]], n: int) -> Any:
    """Values of the records that each part names, null for the others."""
    if not parts:
        return pa.nulls(n, pa.binary())
    if len(parts) == 1 and pa.types.is_binary(parts[0][1].type) and not parts[0][1].null_count:
        return _with_gaps(parts[0][1], parts[0][0])
    index, first = np.full(n, -1, np.int64), 0
    for which, values in parts:
        index[which] = np.arange(first, first + len(values))
        first += len(values)
    return take(pa.concat_arrays([values for _, values in parts]), index)


def _with_gaps(values: Any, present: Bools) -> Any:
    """``values`` spread over the records that are ``present``, null elsewhere; the bytes stay where they are."""
    if present.all():
        return values
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    places = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=places[1:])
    return variable(offsets[places], values.buffers()[2], pa.binary(), present)
