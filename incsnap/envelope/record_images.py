"""Which records changed rows become, and of which row images each is made: index vectors, no values.

    change                     records
    insertion                  c
    update                     u
    update of the record's key d, tombstone, c    (the row moves to another key, as Debezium writes it)
    deletion                   d, tombstone

Tombstones only where they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bools, Ints
from incsnap.errors import BinlogError
from incsnap.tables import TableId

#: What is done to a row, and what a record says of it: indexes into ``format.OPERATIONS``.
INSERT, UPDATE, DELETE = 0, 1, 2
#: A record that has no value, and an event that changes no row; no letter stands for them.
TOMBSTONE, _NO_CHANGE = 100, 255
#: event type code -> what it does. https://dev.mysql.com/doc/dev/mysql-server/latest/namespacebinary__log.html
_DOES = np.full(256, _NO_CHANGE, np.uint8)
_DOES[[23, 30]], _DOES[[24, 31]], _DOES[[25, 32]] = INSERT, UPDATE, DELETE

#: The records of an insertion, an update, a deletion, and (``_MOVE``) an update that moves the row to another key.
_MOVE = 3
_WITH_TOMBSTONES = ((INSERT,), (UPDATE,), (DELETE, TOMBSTONE), (DELETE, TOMBSTONE, INSERT))
_WITHOUT = ((INSERT,), (UPDATE,), (DELETE,), (DELETE, INSERT))


@dataclass(frozen=True, slots=True, eq=False)
class ChangedRows:
    """One element per changed row: its first image (an update has the next one too), what was done, its number within
    its event."""

    image: Ints
    does: npt.NDArray[np.uint8]
    row: Ints

    def only(self, which: Bools) -> ChangedRows:
        return ChangedRows(self.image[which], self.does[which], self.row[which])


def changed_rows(table: TableId, event: npt.NDArray[np.int32], kinds: npt.NDArray[np.uint8]) -> ChangedRows:
    """``event[i]`` is the event of image ``i``, ``kinds`` the type of each event. Raises ``BinlogError`` for one that
    changes no rows."""
    does = _DOES[kinds][event]
    if (does == _NO_CHANGE).any():
        unknown = int(kinds[event[int(np.argmax(does == _NO_CHANGE))]])
        raise BinlogError(f"{table}: event type {unknown} changes no rows")
    index = np.arange(len(event))
    begins = np.ones(len(event), np.bool_)
    begins[1:] = event[1:] != event[:-1]
    within = index - np.maximum.accumulate(np.where(begins, index, 0))
    update = does == UPDATE
    image = np.flatnonzero(~(update & ((within & 1) == 1)))
    return ChangedRows(image, does[image], (within >> update)[image])


@dataclass(frozen=True, slots=True, eq=False)
class RecordImages:
    """One element per record. ``change``: the changed row that it tells of; ``op``: INSERT, UPDATE, DELETE, TOMBSTONE.

    ``before``, ``after``: the images that its value shows; ``before_key``, ``after_key``: those that the row had before
    and after its change, whatever the record shows of them. -1 where there is none. ``moved``: it is one of the records
    of a change that moved the row to another key.
    """

    change: Ints
    op: npt.NDArray[np.uint8]
    before: Ints
    after: Ints
    before_key: Ints
    after_key: Ints
    moved: Bools

    def __len__(self) -> int:
        return len(self.op)

    @property
    def has_value(self) -> Bools:
        """False for tombstones."""
        present: Bools = self.op != TOMBSTONE
        return present

    def only(self, which: Bools) -> RecordImages:
        return RecordImages(*(getattr(self, each.name)[which] for each in fields(self)))

    @property
    def key(self) -> Ints:
        """The image whose key is the record's."""
        gone = (self.op == DELETE) | (self.op == TOMBSTONE)
        return np.where(gone, self.before_key, self.after_key)


def record_images(changes: ChangedRows, keys: Any, *, tombstones: bool) -> RecordImages:
    """``keys``: of each image (``pa.binary()``), null in a table without any."""
    moved = moves(changes, keys)
    sequences = _WITH_TOMBSTONES if tombstones else _WITHOUT
    kind = np.where(moved, _MOVE, changes.does)
    count = np.array([len(each) for each in sequences])[kind]
    change = np.repeat(np.arange(len(kind)), count)
    step = np.arange(len(change)) - (np.cumsum(count) - count)[change]
    op = _padded(sequences)[kind[change], step]
    does, image = changes.does[change], changes.image[change]
    before_key = np.where(does == INSERT, -1, image)
    after_key = np.where(does == DELETE, -1, image + (does == UPDATE))
    before = np.where((op == UPDATE) | (op == DELETE), before_key, -1)
    after = np.where((op == UPDATE) | (op == INSERT), after_key, -1)
    return RecordImages(change, op, before, after, before_key, after_key, moved[change])


def _padded(sequences: tuple[tuple[int, ...], ...]) -> npt.NDArray[np.uint8]:
    """As a matrix; what is behind the end of a row is never looked at."""
    most = max(map(len, sequences))
    return np.array([(*each, *[_NO_CHANGE] * (most - len(each))) for each in sequences], np.uint8)


def moves(changes: ChangedRows, keys: Any) -> Bools:
    """Which changes are updates that give the row another key."""
    moved = np.zeros(len(changes.image), np.bool_)
    update = changes.does == UPDATE
    if keys.null_count == len(keys) or not update.any():
        return moved
    image = changes.image[update]
    differs = pc.not_equal(keys.take(pa.array(image)), keys.take(pa.array(image + 1)))
    moved[update] = np.asarray(differs.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return moved
