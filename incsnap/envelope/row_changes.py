"""What row images of one table become, before any value is encoded: ``lay_out``.

An image's row and key are encoded once per image; which image is ``before`` and ``after`` of which record is then a
matter of index vectors (``record_images``), also where one change gives several records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bools, Ints
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.json_rows import json_objects
from incsnap.envelope.record_images import (
    DELETE,
    INSERT,
    UPDATE,
    ChangedRows,
    RecordImages,
    changed_rows,
    record_images,
)
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.table_view import Columns

#: The letters of ``skipped.operations`` that stand for changes of rows.
_LETTER = {"c": INSERT, "u": UPDATE, "d": DELETE}


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """``keys``: of each image before transforms; ``image_event``: its event."""

    format: TableFormat
    images: Columns
    keys: Any
    image_event: npt.NDArray[np.int32]
    changes: ChangedRows
    records: RecordImages

    @property
    def events(self) -> Ints:
        """The event of each record that has a value, in binlog order: what a transaction counts."""
        return self.event_of(self.records.change[self.records.has_value])

    def event_of(self, change: Ints) -> Ints:
        return self.image_event[self.changes.image[change]].astype(np.int64)


def lay_out(
    format_: TableFormat,
    images: Columns,
    event: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.uint8],
) -> RowChanges:
    """``images`` in binlog order, as ``decode_rows`` gives them: ``event[i]`` is the event of image ``i``; ``kinds``
    has one element per event. Skipped changes leave no records, and do not overtake the rows of a window: what
    nobody is told of must not keep a row from being read.

    Raises ``BinlogError`` for an event type that changes no rows.
    """
    keys = format_.keys(images)
    changes = without_skipped(changed_rows(format_.view.shape.id, event, kinds), format_.envelope)
    if format_.envelope.skip_unchanged and (changes.does == UPDATE).any():
        shown = json_objects(format_.view.fields, images, format_.envelope.modes)
        changes = changes.only(~unchanged(changes, shown))
    records = record_images(changes, keys, tombstones=format_.envelope.tombstones)
    return RowChanges(format_, images, keys, event, changes, records)


def without_skipped(changes: ChangedRows, envelope: EnvelopeSettings) -> ChangedRows:
    """Without those that skipped.operations names."""
    skipped = [_LETTER[letter] for letter in envelope.skipped if letter in _LETTER]
    return changes.only(~np.isin(changes.does, skipped)) if skipped else changes


def unchanged(changes: ChangedRows, shown: Any) -> Bools:
    """Which changes are updates that leave the row as it is written: columns that are left out may change, and what a
    mask hides. ``shown``: of each image, as JSON (``pa.binary()``)."""
    same: Bools = changes.does == UPDATE
    image = changes.image[same]
    equal = pc.equal(shown.take(pa.array(image)), shown.take(pa.array(image + 1)))
    same[same] = np.asarray(equal.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return same
