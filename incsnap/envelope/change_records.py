"""Kafka records of row changes, as one Arrow batch for each topic; or one batch for many tables.

Most tables encode all kinds of records alike, so all records go through as whole columns. If kinds of records are
encoded differently, the records of each kind are encoded by themselves and then put into their places.

The records of many tables (`EncodedImages`) are written in the same way as those of one table (`TableImages`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import Array, BytesArray, Columns, RecordBatch
from incsnap.columns.variable import Bools, Ints, take
from incsnap.envelope.added_fields import Value, change_values, header_maps
from incsnap.envelope.changed_columns import changed_columns, names_of
from incsnap.envelope.format import Changes, TransactionOrder
from incsnap.envelope.oversized import Shortening, with_origins, with_row_keys
from incsnap.envelope.partitioner import owners, partition
from incsnap.envelope.record_columns import identities, kinds_of, marks_of, orders_of, spread
from incsnap.envelope.record_encoder import CHANGES, RecordEncoder
from incsnap.envelope.record_images import DELETE, INSERT, UPDATE
from incsnap.envelope.records import OPERATION, batch_of
from incsnap.envelope.row_changes import RowChanges, TableImages
from incsnap.envelope.seam import Places
from incsnap.envelope.sources import SourceColumns
from incsnap.envelope.table_format import TableFormat
from incsnap.errors import ValueRefused
from incsnap.transforms.record_spec import Added, ChangedColumns

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class TopicRecords:
    """The records of one topic in binlog order, or those of many tables, table by table."""

    topic: str  #: name of the topic; "" for outbox events, whose rows name their topics, and for many tables
    records: RecordBatch  #: a RecordBatch of `RECORDS`
    #: of each record: the partition of its key in `TableFormat.topic`, which chooses the record's bucket
    bucket_partition: npt.NDArray[np.int32]
    crcs: int | Ints  #: `partitioner.crc` of `TableFormat.topic`: of the one table, or of each record's table
    table: Ints | None  #: of each record the index of its table; None for one table

    def by_bucket(self, buckets: int) -> Iterator[tuple[int, RecordBatch, Ints | None]]:
        """Yield (bucket, records, index of each record's table) for each bucket that has any records.

        `buckets`: how many buckets there are.
        """
        owner = owners(self.bucket_partition, self.crcs, buckets)
        present = np.unique(owner).tolist()
        if len(present) == 1:
            yield present[0], self.records, self.table
            return
        for bucket in present:
            of_bucket = np.flatnonzero(owner == bucket)
            table = None if self.table is None else self.table[of_bucket]
            yield bucket, self.records.take(pa.array(of_bucket)), table


def change_records(
    changes: RowChanges,
    source: SourceColumns,
    order: TransactionOrder | None,
    partitions: Mapping[str, int],
    *,
    now_us: int,
    shortening: Shortening | None = None,
) -> list[TopicRecords]:
    """Return the records of the changes: of one table by topic, of many tables as one batch.

    A record that a transform drops is not sent, but still overtakes rows of windows. So the result has it under
    `TableFormat.topic`, with partition -1.

    `source` has one element per event. `order` has one element per record with a value, before transforms; None if no
    transaction metadata is wanted. `partitions`: how many partitions each topic has. `now_us`: microseconds since 1970.
    `shortening` cuts records of one table that are too large for Kafka.

    Raise ValueRefused if an update of an outbox table is refused (table.op.invalid.behavior=fatal).
    """
    images, records = changes.images, changes.records
    if not len(records):
        return []
    kinds, format_ = kinds_of(records), images.formats[0]
    if format_.updates and (refused := int(np.count_nonzero(kinds == UPDATE))):
        _refuse_updates(format_, refused)
    event = changes.event_of(records.change)
    number = images.numbers(kinds, event)
    by_topic: Sequence[tuple[str, Bools | None]]
    if format_.uniform:
        # A dropped record stays, with partition -1, because it overtakes rows of windows. A dropped tombstone is left
        # out: its deletion overtakes the same rows.
        sent = None if number.min() >= 0 else (number >= 0) | records.has_value
        by_topic = [(format_.topic if isinstance(images, TableImages) else "", sent)]
    else:
        by_topic = _by_topic(format_, kinds)
    return [
        _BatchWriter(changes, which, event, number, source, order, now_us, shortening).records(topic, partitions)
        for topic, which in by_topic
    ]


def _by_topic(format_: TableFormat, kinds: npt.NDArray[np.uint8]) -> Sequence[tuple[str, Bools | None]]:
    """Return the topics of one table, each with a mask of its records; None for all records.

    Dropped tombstones are in no mask.
    """
    present = np.flatnonzero(np.bincount(kinds)).tolist()
    topics: dict[str, list[int]] = {}
    for kind in present:
        encoder = format_.encoders[CHANGES[kind]]
        if encoder is not None or CHANGES[kind].op:
            topics.setdefault(format_.topic if encoder is None else encoder.spec.topic, []).append(kind)
    return [
        (topic, np.isin(kinds, of_topic) if len(of_topic) < len(present) else None)
        for topic, of_topic in topics.items()
    ]


def _refuse_updates(format_: TableFormat, count: int) -> None:
    """Report updates of an outbox table as table.op.invalid.behavior says. Raise ValueRefused if it is fatal."""
    what = f"{format_.view.shape.id}: {count} updates of an outbox table, whose events are its inserted rows"
    if format_.updates == "fatal":
        raise ValueRefused(
            f"{what}; table.op.invalid.behavior=fatal stops the job",
            "Set table.op.invalid.behavior=warn, which skips updates. Let the application only insert and delete rows.",
        )
    _log.log(logging.WARNING if format_.updates == "warn" else logging.ERROR, "%s; they are skipped", what)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Records of a batch that are encoded together."""

    which: Bools  #: mask of the records
    encoders: Sequence[RecordEncoder]  #: one encoder of one table; of many tables the encoders of one `RecordKind`
    of_record: Ints | None  #: of each record that `which` chooses its index in `encoders`; None for one encoder

    def __len__(self) -> int:
        return int(self.which.sum())

    @property
    def encoder(self) -> RecordEncoder:
        """Return the first encoder, whose `RecordKind` all share."""
        return self.encoders[0]


class _BatchWriter:
    """A writer of one batch of records.

    `which`: a mask of these records among those of `changes`; None for all. `event`, `number`: of each record of
    `changes` its event and the index of its encoder, -1 for a dropped record.
    """

    def __init__(
        self,
        changes: RowChanges,
        which: Bools | None,
        event: Ints,
        number: Ints | npt.NDArray[np.int8],
        source: SourceColumns,
        order: TransactionOrder | None,
        now_us: int,
        shortening: Shortening | None,
    ) -> None:
        self._shortening = shortening
        self._images, self._envelope = changes.images, changes.images.formats[0].envelope
        whole = changes.records
        self._out = whole if which is None else whole.only(which)
        self._event = event if which is None else event[which]
        self._number = number if which is None else number[which]
        self._changes = Changes(
            before=self._out.before,
            after=self._out.after,
            event=self._event,
            row=changes.changes.row[self._out.change],
            # A tombstone has the headers of its deletion.
            op=np.minimum(self._out.op, np.uint8(DELETE)),
            source=source,
            order=None if order is None else orders_of(order, whole, which),
            now_us=now_us,
        )

    def records(self, topic: str, partitions: Mapping[str, int]) -> TopicRecords:
        """Return the records. `partitions`: how many partitions each topic has."""
        images, out, n = self._images, self._out, len(self._out)
        own = take(images.keys, out.key)
        bucket_partition, crcs = images.bucket_partitions(own, self._event, partitions)
        groups = self._groups()
        kept = self._kept(groups)
        keys, places = own, bucket_partition
        if not images.formats[0].uniform:
            keys = spread([(each.which, self._keys(each)) for each in groups], n)
            places = partition(keys, partitions.get(topic, 1))
        if self._changes.source.seam is not None:
            has_key = keys.is_valid().to_numpy(zero_copy_only=False)
            kept &= ~self._written_before(topic, np.where(has_key, places, np.int32(-1)))
        of_image, none = images.identities(), pa.nulls(n, pa.binary())
        identity, old_identity = (none, none) if of_image is None else identities(out, of_image)
        arrays = [
            pa.array(places if kept.all() else np.where(kept, places, -1), pa.int32()),
            keys,
            spread([(each.which, self._values(each, keys)) for each in groups if each.encoder.has_bytes], n),
            images.key_headers(out.before_key, out.moved & (out.op == INSERT)),
            images.key_headers(out.after_key, out.moved & (out.op != INSERT)),
            identity,
            old_identity,
        ]
        marks = marks_of(out, self._event, self._changes.source) if self._envelope.marked else None
        headers, destinations = self._destinations(groups)
        records = batch_of(arrays, headers, destinations, marks)
        if marks is None:
            records = records.append_column(OPERATION, pa.array(out.op.view(np.int8)))
        return TopicRecords(
            topic, self._with_origins(records), bucket_partition, crcs, images.table_numbers(self._event)
        )

    def _kept(self, groups: Sequence[_Group]) -> Bools:
        """Return a mask of the records that are sent: no transform has dropped them by their kind or by their row."""
        kept = self._number >= 0
        for group in groups:
            conditions = group.encoder.kept
            if conditions is not None:
                which = np.flatnonzero(group.which)
                before, after = self._out.before[which], self._out.after[which]
                kept[which] = conditions.changes(self._columns, before, after)
        return kept

    def _written_before(self, topic: str, partitions: npt.NDArray[np.int32]) -> Bools:
        """Return a mask of the records that another engine has sent.

        `partitions`: of each record its partition; -1 for a record without a key.
        """
        source, images = self._changes.source, self._images
        assert source.seam is not None
        files = source.file.take(pa.array(self._event))
        places = Places.of(files, source.pos[self._event], self._changes.row, self._out.op)
        numbers = images.table_numbers(self._event)
        topics = [topic] if numbers is None else [each.topic for each in images.formats]
        written = source.seam.has(topics, numbers, partitions, places)
        return written if source.sent_rows is None else written | (places.row < source.sent_rows[self._event])

    def _groups(self) -> list[_Group]:
        """Return the records that are not dropped, grouped by what one call encodes."""
        encoders, number = self._images.encoders, self._number
        present = np.flatnonzero(np.bincount(number + 1)[1:]).tolist()
        if isinstance(self._images, TableImages):
            return [_Group(number == each, [encoders[each]], None) for each in present]
        by_kind: dict[object, list[int]] = {}
        for each in present:
            by_kind.setdefault(encoders[each].kind, []).append(each)
        groups = []
        for numbers in by_kind.values():
            place = np.full(len(encoders) + 1, -1, np.int64)
            place[numbers] = np.arange(len(numbers))
            of_record = place[number]
            which = of_record >= 0
            groups.append(_Group(which, [encoders[each] for each in numbers], of_record[which]))
        return groups

    def _keys(self, group: _Group) -> BytesArray:
        """Return the keys as the encoder of one table writes them."""
        if group.encoder.key is None:
            return pa.nulls(len(group), pa.binary())
        return take(group.encoder.key.keys(self._columns), self._out.key[group.which])

    def _values(self, group: _Group, keys: BytesArray) -> Array:
        """Return the values. `keys`: of all records."""
        encoder = group.encoder
        if encoder.value is None:
            if group.of_record is None:
                return pa.repeat(pa.scalar(encoder.null_value, pa.binary()), len(group))
            return take(pa.array([one.null_value for one in group.encoders], pa.binary()), group.of_record)
        changes = self._changes.only(group.which)
        values = self._images.values(group.encoders, group.of_record, changes)
        if self._shortening is None or encoder.event is not None or not isinstance(self._images, TableImages):
            return values
        view, of_group = self._images.format.view, keys.filter(pa.array(group.which))
        return self._shortening.shortened(
            view, encoder.spec.topic, encoder.value, self._columns, changes, of_group, values
        )

    def _destinations(self, groups: Sequence[_Group]) -> tuple[Array | None, Sequence[Array]]:
        """Return the headers of the records, None without headers; and the columns of `OWN` that they have."""
        n = len(self._out)
        if events := [(each.which, each.encoder.event) for each in groups if each.encoder.event is not None]:
            # Nothing else goes to the topic "".
            rows = [(which, event, event.rows(self._columns, self._out.after[which])) for which, event in events]
            headers = spread([(which, event.headers(each)) for which, event, each in rows], n)
            own = [(which, event.own(each, self._changes.now_us)) for which, event, each in rows]
            return headers, [spread([(which, of[at]) for which, of in own], n) for at in range(len(own[0][1]))]
        added = [(each.which, self._headers(each)) for each in groups if each.encoder.spec.headers]
        topics: Sequence[Array] = ()
        if any(each.encoder.topics is not None for each in groups):
            topics = (spread([(each.which, self._topics(each)) for each in groups], n),)
        return spread(added, n) if added else None, topics

    def _headers(self, group: _Group) -> Array:
        headers = group.encoder.spec.headers
        values = change_values(headers, self._changes.only(group.which), self._images.tables, self._envelope)
        if any(isinstance(header, ChangedColumns) for header in headers):
            values = self._with_changed_columns(headers, values, group.which)
        return header_maps(headers, values, len(group))

    def _with_changed_columns(self, headers: Sequence[Added], values: Sequence[Value], which: Bools) -> list[Value]:
        """Return `values` with the lists of columns that updates have changed, and have left alone."""
        assert isinstance(self._images, TableImages)
        before, after = self._out.before[which], self._out.after[which]
        updates = (before >= 0) & (after >= 0)
        view, modes = self._images.format.view, self._envelope.value_modes
        changed = changed_columns(view, self._columns, before[updates], after[updates], modes)
        lists = {
            asked: names_of(view.fields, [each == asked for each in changed], updates)
            for asked in {header.changed for header in headers if isinstance(header, ChangedColumns)}
        }
        return [
            lists[header.changed] if isinstance(header, ChangedColumns) else value
            for header, value in zip(headers, values, strict=True)
        ]

    def _topics(self, group: _Group) -> Array:
        """Return the topic of each record: from its row, or the one topic of all."""
        encoder, which = group.encoder, group.which
        if encoder.topics is None:
            return pa.repeat(pa.scalar(encoder.spec.topic), len(group))
        return encoder.topics.changes(self._columns, self._out.before[which], self._out.after[which])

    def _with_origins(self, records: RecordBatch) -> RecordBatch:
        """Return the records; those of one table with the binlog position and the row's key of large ones."""
        if not isinstance(self._images, TableImages):
            return records
        placed = with_origins(records, self._changes)
        return with_row_keys(placed, self._images.format.view, self._columns, self._out.key)

    @property
    def _columns(self) -> Columns:
        """Return the columns of the images of one table."""
        assert isinstance(self._images, TableImages)
        return self._images.columns
