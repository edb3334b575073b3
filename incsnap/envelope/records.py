"""Kafka records of row changes and of snapshot rows, as one Arrow batch: the end of the columnar path.

Changes: an image's row and key are encoded once per image; which image is ``before`` and ``after`` of which record is
then a matter of index vectors, also where one change gives several records (a deletion and its tombstone; an update
that moves a row to another key, which Debezium writes as deletion, tombstone and creation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.envelope.format import Changes, TransactionOrder
from incsnap.envelope.header_text import key_headers
from incsnap.envelope.json_rows import json_objects, rows_of
from incsnap.envelope.partitioner import bucket_of, partition
from incsnap.envelope.source_block import SourceColumns, SourceConstants
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.table_view import Columns, TableView, ViewField
from incsnap.errors import BinlogError
from incsnap.tables import TableShape
from incsnap.types.modes import Modes
from incsnap.types.variable import MAX_BYTES, Bools, Ints, take, variable

#: ``value`` null: a tombstone. ``old_key`` and ``new_key``: of the headers __debezium.oldkey and __debezium.newkey,
#: or null. ``identity``: what de-duplication of window rows goes by, null where that is the key; ``old_identity``:
#: of the row before an update that changed it.
RECORDS = pa.schema(
    [
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("old_key", pa.binary()),
        ("new_key", pa.binary()),
        ("identity", pa.binary()),
        ("old_identity", pa.binary()),
    ]
)

_INSERT, _UPDATE, _DELETE, _UNKNOWN = 0, 1, 2, 3
#: event type code -> what it does. https://dev.mysql.com/doc/dev/mysql-server/latest/namespacebinary__log.html
_DOES = np.full(256, _UNKNOWN, np.uint8)
_DOES[[23, 30]], _DOES[[24, 31]], _DOES[[25, 32]] = _INSERT, _UPDATE, _DELETE

_TOMBSTONE = 3
_LETTER = {"c": _INSERT, "u": _UPDATE, "d": _DELETE}


#: Raw bytes of rows whose values are encoded at once: that takes some ten times as many for a moment.
_ENCODED_AT_ONCE = 8 << 20


class RecordsTooLarge(Exception):
    """The records of more than one row take more bytes than they may."""


#: The year 1 must not look like 2001 in an identity.
_EXACT = Modes(time_adjuster="false")


def overtaken_by(records: Any) -> Any:
    """Identities (``pa.binary()``) of the rows that the records of RECORDS are about."""
    now = pc.coalesce(records.column("identity"), records.column("key"))
    return pa.concat_arrays([now, records.column("old_identity").drop_null()])


def shares_identity(records: Any) -> bool:
    """Are two of the rows of one identity, by which they cannot be told apart?"""
    return len(pc.unique(overtaken_by(records))) < len(records)


def snapshot_records(
    format_: TableFormat,
    columns: Columns,
    source: SourceConstants,
    partitions: int,
    buckets: int,
    *,
    now_us: int,
    most: int = MAX_BYTES,
) -> dict[int, Any]:
    """``op: "r"`` records of a chunk's rows, a batch of RECORDS for each bucket that has any, rows in the chunk's
    order. Raises ``RecordsTooLarge`` as soon as the values of more than one row take more than ``most`` bytes.

    The raw columns are split, not the encoded values: those are five times as many bytes.
    """
    n = rows_of(columns)
    if n == 0:
        return {}
    keys = _keys(format_, columns, n)
    places = partition(keys, partitions)
    owners = bucket_of(format_.topic, places, buckets)
    first, counts = 0, np.bincount(owners)
    if len(counts) - 1 != int(owners[0]) or int(counts[-1]) != n:
        order = pa.array(np.argsort(owners, kind="stable"))
        keys, places = keys.take(order), places[order.to_numpy()]
        columns = [None if column is None else column.take(order) for column in columns]
    values = _reads(format_, columns, n, source, now_us, most)
    none = pa.nulls(n, pa.binary())
    identity = _identities(format_.view, columns)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(places, pa.int32()), keys, values, none, none, none if identity is None else identity, none],
        schema=RECORDS,
    )
    found = {}
    for bucket in np.flatnonzero(counts).tolist():
        found[bucket] = batch.slice(first, int(counts[bucket]))
        first += int(counts[bucket])
    return found


def _reads(format_: TableFormat, columns: Columns, n: int, source: SourceConstants, now_us: int, most: int) -> Any:
    raw = sum(column.nbytes for column in columns if column is not None)
    step = max(1, n * _ENCODED_AT_ONCE // max(raw, 1))
    found: list[Any] = []
    size = 0
    for begin in range(0, n, step):
        rows = [None if column is None else column.slice(begin, step) for column in columns]
        found.append(format_.value.reads(rows, source, now_us))
        size += found[-1].nbytes
        if size > most and n > 1:
            raise RecordsTooLarge(f"its records take more than {most} bytes")
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """What row images of one table become, before any value is encoded: ``lay_out`` makes it."""

    format: TableFormat
    images: Columns
    keys: Any
    image_event: npt.NDArray[np.int32]
    changes: _Changes
    out: _Out

    @property
    def events(self) -> Ints:
        """The event of each record that has a value, in binlog order: what a transaction counts."""
        return self._event_of(self.out.op != _TOMBSTONE)

    def _event_of(self, which: Bools) -> Ints:
        return self.image_event[self.changes.image[self.out.change[which]]].astype(np.int64)


def lay_out(
    format_: TableFormat,
    images: Columns,
    event: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.uint8],
) -> RowChanges:
    """``images`` in binlog order, as ``decode_rows`` gives them: ``event[i]`` is the event of image ``i``; ``kinds``
    has one element per event. Skipped operations leave no records, and do not overtake the rows of a window: what
    nobody is told of must not keep a row from being read.

    Raises ``BinlogError`` for an event type that changes no rows.
    """
    keys = _keys(format_, images, len(event))
    changes = _changes(format_.view.shape, event, kinds)
    skipped = [_LETTER[letter] for letter in format_.envelope.skipped if letter in _LETTER]
    if skipped:
        changes = changes.only(~np.isin(changes.does, skipped))
    out = _expand(changes, _moved(changes, keys), format_.envelope.tombstones)
    return RowChanges(format_, images, keys, event, changes, out)


def change_records(
    laid: RowChanges, source: SourceColumns, order: TransactionOrder | None, partitions: int, *, now_us: int
) -> Any:
    """Records (RECORDS) in binlog order. ``source`` has one element per event, ``order`` one per record that has a
    value.
    """
    out, keys = laid.out, laid.keys
    real = out.op != _TOMBSTONE
    rows = laid.format.value.rows(laid.images)
    change = out.change[real]
    values = laid.format.value.changes(
        rows,
        Changes(
            before=out.before[real],
            after=out.after[real],
            event=laid._event_of(real),
            row=laid.changes.row[change],
            op=out.op[real],
            source=source,
            order=order,
            now_us=now_us,
        ),
    )
    taken = take(keys, np.where(out.op >= 2, out.before_key, out.after_key))
    identity, old_identity = _identities_of(laid)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(partition(taken, partitions), pa.int32()),
            taken,
            _with_tombstones(values, real),
            _headers(laid, out.before_key, out.moved & (out.op == _INSERT)),
            _headers(laid, out.after_key, out.moved & (out.op != _INSERT)),
            identity,
            old_identity,
        ],
        schema=RECORDS,
    )


def _keys(format_: TableFormat, columns: Columns, n: int) -> Any:
    return pa.nulls(n, pa.binary()) if format_.key is None else format_.key.keys(columns)


def _identities(view: TableView, columns: Columns) -> Any:
    """The columns of ``view.identity`` of each row as JSON; None where the record's key serves."""
    if view.key_is_identity or not view.identity:
        return None
    shape = view.shape
    fields = [ViewField(i, shape.columns[i].name, shape.columns[i], shape.id) for i in view.identity]
    return json_objects(fields, columns, _EXACT)


def _identities_of(laid: RowChanges) -> tuple[Any, Any]:
    """``identity`` and ``old_identity`` of each record."""
    out = laid.out
    none = pa.nulls(len(out.op), pa.binary())
    of_image = _identities(laid.format.view, laid.images)
    if of_image is None:
        return none, none
    identity = take(of_image, np.where(out.op >= 2, out.before_key, out.after_key))
    before = take(of_image, np.where(out.op == _UPDATE, out.before_key, -1))
    changed = pc.fill_null(pc.not_equal(before, identity), False)
    return identity, pc.if_else(changed, before, pa.scalar(None, pa.binary()))


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """One element per changed row: its (first) image, what was done, its number within its event."""

    image: Ints
    does: npt.NDArray[np.uint8]
    row: Ints

    def only(self, which: Bools) -> _Changes:
        return _Changes(self.image[which], self.does[which], self.row[which])


@dataclass(frozen=True, slots=True, eq=False)
class _Out:
    """One element per record: its change, its ``op`` (3: tombstone), and images; -1 where there is none."""

    change: Ints
    op: npt.NDArray[np.uint8]
    before: Ints
    after: Ints
    before_key: Ints
    after_key: Ints
    moved: Bools


def _changes(shape: TableShape, event: npt.NDArray[np.int32], kinds: npt.NDArray[np.uint8]) -> _Changes:
    does = _DOES[kinds][event]
    if (does == _UNKNOWN).any():
        unknown = int(kinds[event[int(np.argmax(does == _UNKNOWN))]])
        raise BinlogError(f"{shape.id}: event type {unknown} changes no rows")
    n = len(event)
    index = np.arange(n)
    begins = np.ones(n, np.bool_)
    begins[1:] = event[1:] != event[:-1]
    within = index - np.maximum.accumulate(np.where(begins, index, 0))
    update = does == _UPDATE
    image = np.flatnonzero(~(update & ((within & 1) == 1)))
    return _Changes(image, does[image], (within >> update)[image])


def _moved(changes: _Changes, keys: Any) -> Bools:
    """Which changes are updates that give the row another key."""
    moved = np.zeros(len(changes.image), np.bool_)
    update = changes.does == _UPDATE
    if keys.null_count == len(keys) or not update.any():
        return moved
    image = changes.image[update]
    differs = pc.not_equal(keys.take(pa.array(image)), keys.take(pa.array(image + 1)))
    moved[update] = np.asarray(differs.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return moved


def _expand(changes: _Changes, moved: Bools, tombstones: bool) -> _Out:
    does = changes.does
    count = np.ones(len(does), np.int64)
    if tombstones:
        count += (does == _DELETE) | moved
    count += moved
    base = np.cumsum(count) - count
    change = np.repeat(np.arange(len(does)), count)
    step = np.arange(len(change)) - base[change]
    last = step == count[change] - 1
    op = does[change].copy()
    again = moved[change]
    op[again & (step == 0)] = _DELETE
    op[again & (step > 0)] = _INSERT
    op[(step > 0) & ~(again & last)] = _TOMBSTONE
    image = changes.image[change]
    before_key = np.where(does[change] == _INSERT, -1, image)
    after_key = np.where(does[change] == _DELETE, -1, image + (does[change] == _UPDATE))
    before = np.where((op == _UPDATE) | (op == _DELETE), before_key, -1)
    after = np.where((op == _UPDATE) | (op == _INSERT), after_key, -1)
    return _Out(change, op, before, after, before_key, after_key, again)


def _headers(laid: RowChanges, index: Ints, wanted: Bools) -> Any:
    return key_headers(laid.format.view, laid.images, index, wanted, laid.format.envelope.modes)


def _with_tombstones(values: Any, real: Bools) -> Any:
    """``values`` spread over the records that are ``real``, null elsewhere; the bytes stay where they are."""
    if real.all():
        return values
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    spread = np.zeros(len(real) + 1, np.int64)
    np.cumsum(real, out=spread[1:])
    return variable(offsets[spread], values.buffers()[2], pa.binary(), real)
