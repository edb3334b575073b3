"""The records that changed rows become, and the row images that each record shows: index vectors, no values.

    change                     records
    insertion                  c
    update                     u
    update of the record's key d, tombstone, c    (the row moves to another key, as Debezium writes it)
    deletion                   d, tombstone

There are tombstones only if the settings ask for them (tombstones.on.delete).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import BytesArray
from incsnap.columns.variable import Bools, Ints
from incsnap.errors import BinlogError
from incsnap.tables import TableId

#: Operations on rows: indexes into `format.OPERATIONS`.
INSERT, UPDATE, DELETE = 0, 1, 2
#: The codes of a record without a value, and of an event that changes no row. They have no letter.
TOMBSTONE, _NO_CHANGE = 100, 255
#: Type code of an event -> its operation. https://dev.mysql.com/doc/dev/mysql-server/latest/namespacebinary__log.html
_DOES = np.full(256, _NO_CHANGE, np.uint8)
_DOES[[23, 30]], _DOES[[24, 31]], _DOES[[25, 32]] = INSERT, UPDATE, DELETE

#: For INSERT, UPDATE, DELETE and `_MOVE` (an update that moves the row to another key): the records of the change.
_MOVE = 3
_WITH_TOMBSTONES = ((INSERT,), (UPDATE,), (DELETE, TOMBSTONE), (DELETE, TOMBSTONE, INSERT))
_WITHOUT = ((INSERT,), (UPDATE,), (DELETE,), (DELETE, INSERT))


@dataclass(frozen=True, slots=True, eq=False)
class ChangedRows:
    """The changed rows of some events: one element per changed row."""

    image: Ints  #: index of its first image; an update also has the next image
    does: npt.NDArray[np.uint8]  #: INSERT, UPDATE or DELETE
    row: Ints  #: number of the row within its event

    def only(self, which: Bools) -> ChangedRows:
        """Return the changed rows that the mask `which` chooses."""
        return ChangedRows(self.image[which], self.does[which], self.row[which])


def changed_rows(table: TableId, event: npt.NDArray[np.int32], kinds: npt.NDArray[np.uint8]) -> ChangedRows:
    """Return the changed rows of the events.

    `event[i]` is the event of image `i`. `kinds` has the type code of each event. Raise BinlogError for an event type
    that changes no rows.
    """
    does = _DOES[kinds][event]
    if (does == _NO_CHANGE).any():
        unknown = int(kinds[event[int(np.argmax(does == _NO_CHANGE))]])
        raise BinlogError(f"{table}: an event of type {unknown} was taken for a rows event, but changes no rows")
    index = np.arange(len(event))
    begins = np.ones(len(event), np.bool_)
    begins[1:] = event[1:] != event[:-1]
    within = index - np.maximum.accumulate(np.where(begins, index, 0))
    update = does == UPDATE
    image = np.flatnonzero(~(update & ((within & 1) == 1)))
    return ChangedRows(image, does[image], (within >> update)[image])


@dataclass(frozen=True, slots=True, eq=False)
class RecordImages:
    """The records of changed rows: one element per record. An index of an image is -1 if there is none."""

    change: Ints  #: index of the changed row
    op: npt.NDArray[np.uint8]  #: INSERT, UPDATE, DELETE or TOMBSTONE
    before: Ints  #: image that the value shows as `before`
    after: Ints  #: image that the value shows as `after`
    before_key: Ints  #: image of the row before its change, even if the value does not show it
    after_key: Ints  #: image of the row after its change, even if the value does not show it
    moved: Bools  #: True: the record belongs to an update that moved the row to another key

    def __len__(self) -> int:
        return len(self.op)

    @property
    def has_value(self) -> Bools:
        """Return a mask that is False for tombstones."""
        present: Bools = self.op != TOMBSTONE
        return present

    def only(self, which: Bools) -> RecordImages:
        """Return the records that the mask `which` chooses."""
        return RecordImages(*(getattr(self, each.name)[which] for each in fields(self)))

    @property
    def key(self) -> Ints:
        """Return the index of the image whose key is the record's key."""
        gone = (self.op == DELETE) | (self.op == TOMBSTONE)
        return np.where(gone, self.before_key, self.after_key)


def record_images(changes: ChangedRows, keys: BytesArray, *, tombstones: bool) -> RecordImages:
    """Return the records of the changed rows.

    `keys`: of each image its key (`pa.binary()`), null in a table without a key. `tombstones`: whether a deletion gets
    one.
    """
    moved = moves(changes, keys)
    sequences = _WITH_TOMBSTONES if tombstones else _WITHOUT
    kind = np.where(moved, _MOVE, changes.does)
    count = np.array([len(each) for each in sequences])[kind]
    change = np.repeat(np.arange(len(kind)), count)
    step = np.arange(len(change)) - (np.cumsum(count) - count)[change]
    # Elements behind the end of a sequence are never read.
    op = np.array(list(zip_longest(*sequences, fillvalue=_NO_CHANGE)), np.uint8)[step, kind[change]]
    does, image = changes.does[change], changes.image[change]
    before_key = np.where(does == INSERT, -1, image)
    after_key = np.where(does == DELETE, -1, image + (does == UPDATE))
    before = np.where((op == UPDATE) | (op == DELETE), before_key, -1)
    after = np.where((op == UPDATE) | (op == INSERT), after_key, -1)
    return RecordImages(change, op, before, after, before_key, after_key, moved[change])


def moves(changes: ChangedRows, keys: BytesArray) -> Bools:
    """Return a mask of the changes: True for updates that give the row another key."""
    moved = np.zeros(len(changes.image), np.bool_)
    update = changes.does == UPDATE
    if keys.null_count == len(keys) or not update.any():
        return moved
    image = changes.image[update]
    differs = pc.not_equal(keys.take(pa.array(image)), keys.take(pa.array(image + 1)))
    moved[update] = np.asarray(differs.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return moved
