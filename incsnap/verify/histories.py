"""The records of single keys, and what the records of a partition show about how far it came."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import RecordBatch
from incsnap.verify.changed_keys import place_in_log
from incsnap.verify.proof import LastRecord, RowPlace, TopicKey
from incsnap.verify.record_reading import TOMBSTONE

#: Most older records of a key that are kept, to tell a stale row.
_OLDER = 50


@dataclass(slots=True)
class PartitionFacts:
    """The evidence in the records of a partition about how far it came."""

    last: RowPlace | None = None  #: place of the last record of an event
    snapshot: RowPlace | None = None  #: highest place of a row of a snapshot


@dataclass(slots=True)
class History:
    """The records of a key."""

    record: LastRecord | None = None  #: the last one
    older: list[LastRecord] = field(default_factory=list)  #: earlier ones but tombstones, the oldest first


def in_order_of_keys(records: pa.Table) -> pa.Table:
    """Return records of one topic, given in the order of partitions and offsets, so that each key's last one is last.

    A key that is in several partitions moved with the number of partitions. The partition whose last record of the key
    is the newest comes last.
    """
    key = records.column("key").combine_chunks().dictionary_encode().indices.to_numpy()
    partition, times = (records.column(name).to_numpy() for name in ("partition", "time"))
    order = np.argsort(key, kind="stable")
    key, partition, times = key[order], partition[order], times[order]
    is_end = np.append((key[1:] != key[:-1]) | (partition[1:] != partition[:-1]), True)
    left = times[is_end][np.cumsum(is_end) - is_end]
    return records.take(pa.array(order[np.lexsort((partition, left, key))]))


def note_records(records: RecordBatch, histories: dict[TopicKey, History], *, only: bool = False) -> None:
    """Add `records` (columns of TOPIC_RECORDS), in the order of their partitions, to the histories of their keys.

    `only`: add only to histories that are there.
    """
    names = ("topic", "key", "partition", "offset", "state", "row", "is_snapshot", "file", "pos", "row_number", "table")
    for topic, key, partition, offset, state, row, is_read, file, pos, number, table in zip(
        *(records.column(name).to_pylist() for name in names), strict=True
    ):
        if only and (topic, key) not in histories:
            continue
        history = histories.setdefault((topic, key), History())
        if history.record is not None and state != TOMBSTONE:
            history.older = [*history.older[-_OLDER:], history.record]
        known = place_in_log(file, pos, number) if file else None
        place, read_at = (None, known) if is_read else (known, None)
        if state == TOMBSTONE and history.record is not None:
            place, table = history.record.place, history.record.table
        history.record = LastRecord(row, partition, offset, state == TOMBSTONE, place, read_at, table or "")


def note_places(records: RecordBatch, facts: dict[tuple[str, int], PartitionFacts]) -> None:
    """Add the places of `records`, in the order of their partitions, to what they show about their partitions."""
    names = ("topic", "partition", "is_snapshot", "file", "pos", "row_number")
    for topic, partition, is_read, file, pos, number in zip(
        *(records.column(name).to_pylist() for name in names), strict=True
    ):
        if not file:
            continue
        place, known = place_in_log(file, pos, number), facts.setdefault((topic, partition), PartitionFacts())
        if is_read:
            known.snapshot = place if known.snapshot is None else max(known.snapshot, place)
        else:
            known.last = place
