"""The changes of one table or of many tables, before records are encoded: which records the row images become.

Row images come in two forms:

- `TableImages`: columns of values of one table. Row and key of an image are encoded as whole columns.
- `EncodedImages`: images of many tables with a few changed rows each. Keys and rows are encoded (`value_texts`).

Index vectors (`record_images`) then say which image is `before` and `after` of which record, also if one change gives
several records. Both forms answer the same questions, so `change_records` writes the records of both in one way.

Example: three tables have two inserted rows each. As `TableImages` they would make three batches of two records, and
each table costs 2 ms or more, however few its rows are. As `EncodedImages` they make one batch of six records, whose
tables are [0, 0, 1, 1, 2, 2].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, Columns
from incsnap.columns.variable import Bools, Ints
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import Changes, JoinedFormat, ManyTables
from incsnap.envelope.header_text import key_headers
from incsnap.envelope.json_rows import json_objects
from incsnap.envelope.partitioner import crc, partition
from incsnap.envelope.record_encoder import RecordEncoder
from incsnap.envelope.record_images import (
    DELETE,
    INSERT,
    UPDATE,
    ChangedRows,
    RecordImages,
    changed_rows,
    moves,
    record_images,
)
from incsnap.envelope.table_format import TableFormat
from incsnap.tables import TableId

#: Letter of `skipped.operations` -> operation, for the letters that stand for changes of rows.
_LETTER = {"c": INSERT, "u": UPDATE, "d": DELETE}


@dataclass(frozen=True, slots=True, eq=False)
class TableImages:
    """Row images of one table, in binlog order."""

    format: TableFormat  #: the table's format
    columns: Columns  #: columns of the row images
    keys: BytesArray  #: of each image its key by `TableFormat.keys`, which chooses the bucket
    image_event: npt.NDArray[np.int32]  #: of each image the index of its event

    @property
    def formats(self) -> Sequence[TableFormat]:
        """Return the table's format, as a sequence of one."""
        return (self.format,)

    @property
    def tables(self) -> TableId:
        """Return the table."""
        return self.format.view.shape.id

    @property
    def encoders(self) -> Sequence[RecordEncoder]:
        """Return the encoders of records, each once."""
        return self.format.change_encoders

    def numbers(self, kinds: npt.NDArray[np.uint8], event: Ints) -> npt.NDArray[np.int8]:
        """Return of each record the index of its encoder, -1 if a transform drops the record.

        `kinds`: of each record its index in `CHANGES`. `event`: of each record its event.
        """
        return np.array(self.format.encoder_numbers, np.int8)[kinds]

    def table_numbers(self, event: Ints) -> None:
        """Return None: all records are of one table."""

    def bucket_partitions(
        self, keys: BytesArray, event: Ints, partitions: Mapping[str, int]
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Return the partition of each key that chooses its bucket, and the checksum of the partitions' topic.

        `partitions`: how many partitions each topic has.
        """
        return self.format.bucket_partitions(keys, partitions), crc(self.format.topic)

    def shown(self) -> BytesArray:
        """Return each row as JSON, as skip.messages.without.change compares it."""
        return json_objects(self.format.view.fields, self.columns, self.format.envelope.modes)

    def identities(self) -> BytesArray | None:
        """Return the identity of each image; None if the records' keys identify the rows."""
        return self.format.identities(self.columns, self.keys)

    def values(self, encoders: Sequence[RecordEncoder], of_record: Ints | None, what: Changes) -> Array:
        """Return the value of each record of `what`. There is one encoder, which has a value."""
        assert encoders[0].value is not None
        return encoders[0].value.changes(self.columns, what)

    def key_headers(self, index: Ints, chosen: Bools) -> BytesArray:
        """Return the text of the key of image `index[i]` where `chosen[i]` is True, otherwise null."""
        format_ = self.format
        if format_.envelope.marked:
            # A DataFrame has no headers. Its keys may hold values that the modes cannot express.
            return pa.nulls(len(index), pa.binary())
        return key_headers(format_.view, self.columns, index, chosen, format_.envelope.modes)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedImages:
    """Encoded row images of many tables: table by table, and in binlog order within a table.

    The formats are uniform, and have templates (`table_templates`). Their encoders with equal `RecordEncoder.kind`
    encode records together.
    """

    formats: Sequence[TableFormat]  #: the formats of the tables
    keys: BytesArray  #: of each image its key, null for a table without a key
    rows: BytesArray  #: of each image its row
    of_identities: BytesArray  #: of each image its identity, null if the key identifies rows
    of_shown: BytesArray  #: of each image the row to compare, null without skip.messages.without.change
    image_event: npt.NDArray[np.int32]  #: of each image the index of its event
    of_event: Ints  #: of each event the index of its table

    @property
    def tables(self) -> ManyTables:
        """Return the tables. The formats of the records are missing (`ManyTables.of_record`)."""
        return self._tables(np.zeros(0, np.int64))

    def _tables(self, of_record: Ints) -> ManyTables:
        return ManyTables([each.view.shape.id for each in self.formats], self.of_event, of_record)

    @property
    def encoders(self) -> Sequence[RecordEncoder]:
        """Return the encoders of records, table by table."""
        return [encoder for each in self.formats for encoder in each.change_encoders]

    def numbers(self, kinds: npt.NDArray[np.uint8], event: Ints) -> Ints:
        """Return of each record the index of its encoder, -1 if a transform drops the record.

        `kinds`: of each record its index in `CHANGES`. `event`: of each record its event.
        """
        firsts = np.cumsum([0, *(len(each.change_encoders) for each in self.formats[:-1])])
        number = np.array([each.encoder_numbers for each in self.formats], np.int64)
        return np.where(number < 0, -1, number + firsts[:, None])[self.of_event[event], kinds]

    def table_numbers(self, event: Ints) -> Ints:
        """Return of each record the index of its table. `event`: of each record its event."""
        return self.of_event[event]

    def bucket_partitions(
        self, keys: BytesArray, event: Ints, partitions: Mapping[str, int]
    ) -> tuple[npt.NDArray[np.int32], Ints]:
        """Return the partition of each key that chooses its bucket, and the checksum of each partition's topic.

        `partitions`: how many partitions each topic has.
        """
        topics, table = [each.topic for each in self.formats], self.of_event[event]
        counts = np.array([partitions.get(topic, 1) for topic in topics], np.uint32)
        return partition(keys, counts[table]), np.array([crc(topic) for topic in topics], np.int64)[table]

    def shown(self) -> BytesArray:
        """Return each row as JSON, as skip.messages.without.change compares it."""
        return self.of_shown

    def identities(self) -> BytesArray | None:
        """Return the identity of each image; None if the keys of all tables identify the rows."""
        return self.of_identities if self.of_identities.null_count < len(self.of_identities) else None

    def values(self, encoders: Sequence[RecordEncoder], of_record: Ints | None, what: Changes) -> BytesArray:
        """Return the value of each record of `what`.

        `encoders` are of one kind, and have values. `of_record`: of each record the index of its encoder.
        """
        first = encoders[0].value
        assert isinstance(first, JoinedFormat)
        assert of_record is not None
        return first.of_tables([one.value for one in encoders], self._tables(of_record), self.rows, what)

    def key_headers(self, index: Ints, chosen: Bools) -> BytesArray:
        """Return nulls: no update changes a key."""
        return pa.nulls(len(index), pa.binary())


RowImages = TableImages | EncodedImages


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """Changed rows, and which records they become."""

    images: RowImages  #: the row images
    changes: ChangedRows  #: the changed rows that are not skipped
    records: RecordImages  #: the records of `changes`, dropped ones included
    #: indexes of tables of `EncodedImages` that are left out, because an update changed a row's key
    moved: frozenset[int] = frozenset()

    @property
    def events(self) -> Ints:
        """Return the event of each record with a value, in binlog order: transaction metadata counts these records."""
        return self.event_of(self.records.change[self.records.has_value])

    def event_of(self, change: Ints) -> Ints:
        """Return the event of each changed row of `change`, which has indexes into `changes`."""
        return self.images.image_event[self.changes.image[change]].astype(np.int64)


def changes_of_table(
    format_: TableFormat, columns: Columns, event: npt.NDArray[np.int32], types: npt.NDArray[np.uint8]
) -> RowChanges:
    """Return the changes of one table, and which records they become.

    `columns` are row images in binlog order, as `decode_rows` returns them. `event[i]` is the event of image `i`.
    `types` has the type code of each event. Raise BinlogError for an event type that changes no rows.
    """
    return row_changes(TableImages(format_, columns, format_.keys(columns), event), types)


def row_changes(images: RowImages, types: npt.NDArray[np.uint8]) -> RowChanges:
    """Return the changes that the row images show, and which records they become.

    `types` has the type code of each event. Raise BinlogError for an event type that changes no rows.

    Skipped changes leave no records and do not overtake the rows of a window: a change that no record shows must not
    remove the row that the snapshot has read.
    """
    envelope = images.formats[0].envelope
    changes = changed_rows(images.formats[0].view.shape.id, images.image_event, types)
    changes = _without_skipped(changes, envelope)
    if envelope.skip_unchanged and (changes.does == UPDATE).any():
        changes = changes.only(~_unchanged(changes, images.shown()))
    moved: list[int] = []
    if isinstance(images, EncodedImages):
        of_change = images.of_event[images.image_event[changes.image]]
        moved = np.unique(of_change[moves(changes, images.keys)]).tolist()
        if moved:
            changes = changes.only(~np.isin(of_change, moved))
    records = record_images(changes, images.keys, tombstones=envelope.tombstones)
    return RowChanges(images, changes, records, frozenset(moved))


def _without_skipped(changes: ChangedRows, envelope: EnvelopeSettings) -> ChangedRows:
    """Return the changes without the operations that skipped.operations names."""
    skipped = [_LETTER[letter] for letter in envelope.skipped if letter in _LETTER]
    return changes.only(~np.isin(changes.does, skipped)) if skipped else changes


def _unchanged(changes: ChangedRows, shown: BytesArray) -> Bools:
    """Return a mask of the changes: True for updates after which the written row is the same.

    Such an update changed only columns that are left out or masked. `shown`: of each image its row as JSON.
    """
    same: Bools = changes.does == UPDATE
    image = changes.image[same]
    equal = pc.equal(shown.take(pa.array(image)), shown.take(pa.array(image + 1)))
    same[same] = np.asarray(equal.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return same
