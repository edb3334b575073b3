"""Kafka records of row changes, as Arrow batches, one for each topic.

Most tables have one form of records, and all goes through as whole columns; where kinds are written differently, each
is written by itself, and put into its places.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.variable import Bools, Ints, take
from incsnap.envelope.added_fields import change_values, header_maps
from incsnap.envelope.format import Changes, TransactionOrder
from incsnap.envelope.header_text import key_headers
from incsnap.envelope.outbox_events import EventFormat
from incsnap.envelope.oversized import Shortening, with_origins, with_row_keys
from incsnap.envelope.partitioner import partition
from incsnap.envelope.record_columns import identities, kinds_of, marks_of, orders_of, spread
from incsnap.envelope.record_images import DELETE, INSERT, UPDATE
from incsnap.envelope.records import batch_of, identities_of
from incsnap.envelope.row_changes import RowChanges
from incsnap.envelope.source_block import SourceColumns
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.written import CHANGES, Written
from incsnap.errors import ValueRefused

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class TopicRecords:
    """Records (RECORDS) of one topic in binlog order; ``home``: of each the partition that its bucket goes by, of the
    format's own topic."""

    topic: str
    records: Any
    home: npt.NDArray[np.int32]


def change_records(
    laid: RowChanges,
    source: SourceColumns,
    order: TransactionOrder | None,
    partitions: Mapping[str, int],
    *,
    now_us: int,
    shortening: Shortening | None = None,
) -> list[TopicRecords]:
    """Return the records of the changes, by topic.

    ``source`` has one element per event, ``order`` one per record that has a value before transforms;
    ``partitions``: how many each topic has. Records that are dropped stand in the format's own topic. ``shortening``
    cuts records that are too large for Kafka.
    """
    written = [laid.format.written[kind] for kind in CHANGES]
    kinds = kinds_of(laid.records)
    present = np.flatnonzero(np.bincount(kinds, minlength=len(CHANGES))).tolist()
    # A dropped tombstone says nothing that the deletion before it does not.
    sent = [kind for kind in present if written[kind] is not None or CHANGES[kind].op]
    if laid.format.updates and (refused := int(np.count_nonzero(kinds == UPDATE))):
        _refuse_updates(laid.format, refused)
    topics: dict[str, list[int]] = {}
    for kind in sent:
        one = written[kind]
        topics.setdefault(laid.format.topic if one is None else one.form.topic, []).append(kind)
    records = []
    for topic, of_topic in topics.items():
        which = np.isin(kinds, of_topic) if len(of_topic) < len(present) else None
        records.append(_TopicWriter(laid, which, source, order, now_us, shortening).records(topic, written, partitions))
    return records


def _among(numbers: Sequence[int], count: int) -> Bools:
    """By number below ``count``, whether it is one of these."""
    among = np.zeros(count, np.bool_)
    among[list(numbers)] = True
    return among


def _refuse_updates(format_: TableFormat, count: int) -> None:
    """As table.op.invalid.behavior says. Raises ``ValueRefused``."""
    what = f"{format_.view.shape.id}: {count} updates of an outbox table are no events"
    if format_.updates == "fatal":
        raise ValueRefused(
            f"{what}, and table.op.invalid.behavior is fatal",
            "Set it to warn, which leaves them out, and let nobody update the table.",
        )
    _log.log(logging.WARNING if format_.updates == "warn" else logging.ERROR, "%s; they are left out", what)


class _TopicWriter:
    """Writes the records that go to one topic; ``which`` they are, None where all do."""

    def __init__(
        self,
        laid: RowChanges,
        which: Bools | None,
        source: SourceColumns,
        order: TransactionOrder | None,
        now_us: int,
        shortening: Shortening | None,
    ) -> None:
        self._shortening = shortening
        self._laid, self._source, self._now_us = laid, source, now_us
        whole = laid.records
        self._out = whole if which is None else whole.only(which)
        self._kinds, self._n = kinds_of(self._out), len(self._out)
        self._order = None if order is None else orders_of(order, whole, which)

    def records(self, topic: str, written: Sequence[Written | None], partitions: Mapping[str, int]) -> TopicRecords:
        laid, out, format_ = self._laid, self._out, self._laid.format
        parts = self._parts(written)
        own = take(laid.keys, out.key)
        keys = own if format_.alike else spread([(which, self._keys(one, which)) for which, one in parts], self._n)
        places = home = format_.home(own, partitions)
        if not format_.alike:
            places = partition(keys, partitions.get(topic, 1))
        kept = np.array([one is not None for one in written])[self._kinds]
        identity, old_identity = self._identities(own)
        arrays = [
            pa.array(places if kept.all() else np.where(kept, places, -1), pa.int32()),
            keys,
            spread([(which, self._values(one, which)) for which, one in parts if one.has_bytes], self._n),
            self._headers(out.before_key, out.moved & (out.op == INSERT)),
            self._headers(out.after_key, out.moved & (out.op != INSERT)),
            identity,
            old_identity,
        ]
        headers = [(which, self._added(one, which)) for which, one in parts if one.form.headers]
        marks = marks_of(out, laid.event_of(out.change), self._source) if format_.envelope.marked else None
        if events := [(which, one.event) for which, one in parts if one.event is not None]:
            return TopicRecords(topic, self._placed(self._events(arrays, events, marks)), home)
        own_topics: tuple[Any, ...] = ()
        if any(one.topics is not None for _, one in parts):
            own_topics = (spread([(which, self._topics(one, which)) for which, one in parts], self._n),)
        added = spread(headers, self._n) if headers else None
        return TopicRecords(topic, self._placed(batch_of(arrays, added, own_topics, marks)), home)

    def _placed(self, records: Any) -> Any:
        """The records, of which large ones tell where they stand in the binlog, and of which row they are."""
        change = self._out.change
        placed = with_origins(records, self._laid.event_of(change), self._laid.changes.row[change], self._source)
        return with_row_keys(placed, self._laid.format.view, self._laid.images, self._out.key)

    def _events(self, arrays: Sequence[Any], parts: Sequence[tuple[Bools, EventFormat]], marks: Any) -> Any:
        """What goes to the topic "", to which nothing else does."""
        rows = [(which, event, event.rows(self._laid.images, self._out.after[which])) for which, event in parts]
        headers = spread([(which, event.headers(each)) for which, event, each in rows], self._n)
        own = [(which, event.own(each, self._now_us)) for which, event, each in rows]
        by_column = [spread([(which, values[at]) for which, values in own], self._n) for at in range(len(own[0][1]))]
        return batch_of(arrays, headers, by_column, marks)

    def _topics(self, written: Written, which: Bools) -> Any:
        """Of records that may have their topics in their rows."""
        if written.topics is None:
            return pa.repeat(pa.scalar(written.form.topic), int(which.sum()))
        return written.topics.changes(self._laid.images, self._out.before[which], self._out.after[which])

    def _parts(self, written: Sequence[Written | None]) -> list[tuple[Bools, Written]]:
        """Records that are written alike."""
        kinds: dict[int, tuple[Written, list[int]]] = {}
        for kind in np.unique(self._kinds).tolist():
            one = written[kind]
            if one is not None:
                kinds.setdefault(id(one), (one, []))[1].append(kind)
        return [(_among(alike, len(written))[self._kinds], one) for one, alike in kinds.values()]

    def _keys(self, written: Written, which: Bools) -> Any:
        if written.key is None:
            return pa.nulls(int(which.sum()), pa.binary())
        return take(written.key.keys(self._laid.images), self._out.key[which])

    def _values(self, written: Written, which: Bools) -> Any:
        if written.value is None:
            return pa.repeat(pa.scalar(written.nothing, pa.binary()), int(which.sum()))
        images, changes = self._laid.images, self._changes(which)
        values = written.value.changes(images, changes)
        if self._shortening is None or written.event is not None:
            return values
        keys, view = self._keys(written, which), self._laid.format.view
        return self._shortening.shortened(view, written.form.topic, written.value, images, changes, keys, values)

    def _added(self, written: Written, which: Bools) -> Any:
        format_ = self._laid.format
        values = change_values(written.form.headers, self._changes(which), format_.view.shape.id, format_.envelope)
        return header_maps(written.form.headers, values, int(which.sum()))

    def _changes(self, which: Bools) -> Changes:
        out, order = self._out, self._order
        change = out.change[which]
        return Changes(
            before=out.before[which],
            after=out.after[which],
            event=self._laid.event_of(change),
            row=self._laid.changes.row[change],
            # Headers of a tombstone tell of its deletion.
            op=np.minimum(out.op[which], np.uint8(DELETE)),
            source=self._source,
            order=None if order is None else TransactionOrder(order.total[which], order.of_table[which]),
            now_us=self._now_us,
        )

    def _headers(self, index: Ints, chosen: Bools) -> Any:
        format_ = self._laid.format
        if format_.envelope.marked:
            # A DataFrame has no headers, and the modes need have no form for a key that it tells.
            return pa.nulls(self._n, pa.binary())
        return key_headers(format_.view, self._laid.images, index, chosen, format_.envelope.modes)

    def _identities(self, own: Any) -> tuple[Any, Any]:
        """``identity`` and ``old_identity`` of each record."""
        out, none = self._out, pa.nulls(self._n, pa.binary())
        of_image = identities_of(self._laid.format, self._laid.images, self._laid.keys)
        return (none, none) if of_image is None else identities(out, of_image)
