"""Columns of records that are made in one way for the records of one table and of many tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, StructArray
from incsnap.columns.variable import Bools, Ints, take, variable
from incsnap.envelope.format import TransactionOrder
from incsnap.envelope.record_images import DELETE, UPDATE, RecordImages
from incsnap.envelope.records import MARKS
from incsnap.envelope.sources import SourceColumns

#: Index of the tombstone in `record_encoder.CHANGES`.
_TOMBSTONE = 3


def kinds_of(records: RecordImages) -> npt.NDArray[np.uint8]:
    """Return the kind of each record as an index into `record_encoder.CHANGES`.

    The indexes 0 to 3 are the three operations and the tombstone. The indexes 4 to 7 are those of updates of the key.
    """
    return np.minimum(records.op, np.uint8(_TOMBSTONE)) + np.uint8(4) * records.moved


def orders_of(order: TransactionOrder, whole: RecordImages, which: Bools | None) -> TransactionOrder:
    """Return the transaction numbers of the records of `whole` that the mask `which` chooses; of all records if `which`
    is None.

    `order` has the numbers of the records with a value, in their order. A tombstone gets the numbers of its deletion.
    """
    at = np.cumsum(whole.has_value) - 1
    return order.only(at if which is None else at[which])


def marks_of(records: RecordImages, event: Ints, source: SourceColumns) -> StructArray:
    """Return MARKS of each record. The records are in binlog order; a tombstone has no operation.

    `event`: of each record its event, ascending.
    """
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


def identities(records: RecordImages, of_image: BytesArray) -> tuple[BytesArray, BytesArray]:
    """Return the columns `identity` and `old_identity` of the records.

    `old_identity` is null, except for an update that changed the row's identity. `of_image`: the identity of each row
    image, null where the key identifies rows.
    """
    identity = take(of_image, records.key)
    before = take(of_image, np.where(records.op == UPDATE, records.before_key, -1))
    changed = pc.fill_null(pc.not_equal(before, identity), False)
    return identity, pc.if_else(changed, before, pa.scalar(None, pa.binary()))


def spread(parts: Sequence[tuple[Bools, Array]], n: int) -> Array:
    """Return an array of `n` elements with the values of each part in the places that its mask chooses, null elsewhere.

    `parts`: pairs of a mask of `n` elements and one value for each True in it.
    """
    if not parts:
        return pa.nulls(n, pa.binary())
    if len(parts) == 1 and pa.types.is_binary(parts[0][1].type) and not parts[0][1].null_count:
        return _with_gaps(parts[0][1], parts[0][0])
    index, first = np.full(n, -1, np.int64), 0
    for which, values in parts:
        index[which] = np.arange(first, first + len(values))
        first += len(values)
    return take(pa.concat_arrays([values for _, values in parts]), index)


def _with_gaps(values: Array, present: Bools) -> BytesArray:
    """Return `values` in the places where `present` is True, null elsewhere, without a copy of the bytes."""
    if present.all():
        return values
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    places = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=places[1:])
    return variable(offsets[places], values.buffers()[2], pa.binary(), present)
