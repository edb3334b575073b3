"""Kafka records of row changes and of snapshot rows, as one Arrow batch: the end of the columnar path.

Changes: an image's JSON and key are made once per image; which image is ``before`` and ``after`` of which record is
then a matter of index vectors, also where one change gives several records (a deletion and its tombstone; an update
that moves a row to another key, which Debezium writes as deletion, tombstone and creation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.envelope.json_rows import join, key_json, row_json
from incsnap.envelope.partitioner import bucket_of, partition
from incsnap.envelope.source_block import (
    EnvelopeSettings,
    SourceColumns,
    SourceConstants,
    event_sources,
    moments,
    snapshot_source,
)
from incsnap.errors import BinlogError
from incsnap.tables import TableShape
from incsnap.types.variable import Bools, Ints, too_large, variable

#: ``value`` null: a tombstone. ``old_key`` and ``new_key``: of the headers __debezium.oldkey and __debezium.newkey,
#: or null.
RECORDS = pa.schema(
    [
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("old_key", pa.binary()),
        ("new_key", pa.binary()),
    ]
)

_INSERT, _UPDATE, _DELETE, _UNKNOWN = 0, 1, 2, 3
#: event type code -> what it does. https://dev.mysql.com/doc/dev/mysql-server/latest/namespacebinary__log.html
_DOES = np.full(256, _UNKNOWN, np.uint8)
_DOES[[23, 30]], _DOES[[24, 31]], _DOES[[25, 32]] = _INSERT, _UPDATE, _DELETE

_TOMBSTONE = 3
_OPS = pa.array(["c", "u", "d", ""])


def snapshot_records(
    shape: TableShape,
    columns: Sequence[Any],
    source: SourceConstants,
    envelope: EnvelopeSettings,
    partitions: int,
    buckets: int,
    topic: str,
    *,
    now_us: int,
) -> dict[int, Any]:
    """``op: "r"`` records of a chunk's rows, a batch of RECORDS for each bucket that has any, rows in the chunk's
    order.

    The raw columns are split, not the encoded values: those are five times as many bytes.
    """
    n = len(columns[0])
    if n == 0:
        return {}
    keys = key_json(shape, columns, envelope.modes)
    places = partition(keys, partitions)
    owners = bucket_of(topic, places, buckets)
    first, counts = 0, np.bincount(owners)
    if len(counts) - 1 != int(owners[0]) or int(counts[-1]) != n:
        order = pa.array(np.argsort(owners, kind="stable"))
        keys, places = keys.take(order), places[order.to_numpy()]
        columns = [column.take(order) for column in columns]
    tail = f',{snapshot_source(shape.id, source, envelope)},"transaction":null,"op":"r",{moments(now_us)}}}'
    values = row_json(shape, columns, envelope.modes, head='{"before":null,"after":', tail=tail)
    none = pa.nulls(n, pa.binary())
    batch = pa.RecordBatch.from_arrays([pa.array(places, pa.int32()), keys, values, none, none], schema=RECORDS)
    found = {}
    for bucket in np.flatnonzero(counts).tolist():
        found[bucket] = batch.slice(first, int(counts[bucket]))
        first += int(counts[bucket])
    return found


def change_records(
    shape: TableShape,
    images: Sequence[Any],
    event: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.uint8],
    source: SourceColumns,
    envelope: EnvelopeSettings,
    partitions: int,
    *,
    now_us: int,
) -> Any:
    """Records (RECORDS) of row images in binlog order, as ``decode_rows`` gives them: ``event[i]`` is the event of
    image ``i``.

    ``kinds`` and ``source`` have one element per event. Raises ``BinlogError`` for an event type that changes no rows.
    """
    keys = key_json(shape, images, envelope.modes)
    changes = _changes(shape, event, kinds)
    moved = _moved(changes, keys)
    out = _expand(changes, moved, envelope.tombstones)
    rows = row_json(shape, images, envelope.modes).cast(pa.string())
    real = out.op != _TOMBSTONE
    which = event[changes.image[out.change[real]]]
    begin, thread = event_sources(shape.id, source, envelope)
    values = join(
        [
            '{"before":',
            _take(rows, out.before[real]),
            ',"after":',
            _take(rows, out.after[real]),
            ",",
            _take(begin, which),
            pa.array(changes.row[out.change[real]]).cast(pa.string()),
            ',"thread":',
            _take(thread, which),
            ',"query":null},"transaction":null,"op":"',
            _OPS.take(pa.array(out.op[real])),
            f'",{moments(now_us)}}}',
        ]
    )
    key_of = np.where(out.op >= 2, out.before_key, out.after_key)
    taken = _take(keys, key_of)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(partition(taken, partitions), pa.int32()),
            taken,
            _with_tombstones(values, real),
            _header(keys, out.before_key, out.moved & (out.op == _INSERT)),
            _header(keys, out.after_key, out.moved & (out.op != _INSERT)),
        ],
        schema=RECORDS,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """One element per changed row: its (first) image, what was done, its number within its event."""

    image: Ints
    does: npt.NDArray[np.uint8]
    row: Ints


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


def _take(texts: Any, index: npt.NDArray[Any]) -> Any:
    """``texts[index]``, null where the index is -1; without a copy where nothing moves."""
    n = len(index)
    if n == len(texts) and bool((index == np.arange(n)).all()):
        return texts
    missing = index < 0
    if missing.all():
        return pa.nulls(n, texts.type)
    try:
        return texts.take(pa.array(index, mask=missing) if missing.any() else pa.array(index))
    except pa.ArrowInvalid as error:
        raise too_large("The JSON of these changes") from error


def _header(keys: Any, index: Ints, wanted: Bools) -> Any:
    return _take(keys, np.where(wanted, index, -1))


def _with_tombstones(values: Any, real: Bools) -> Any:
    """``values`` spread over the records that are ``real``, null elsewhere; the bytes stay where they are."""
    if real.all():
        return values
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    spread = np.zeros(len(real) + 1, np.int64)
    np.cumsum(real, out=spread[1:])
    return variable(offsets[spread], values.buffers()[2], pa.binary(), real)
