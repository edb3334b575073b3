"""The records of the transaction topic: where transactions begin and end, and how many records each has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from incsnap.binlog.slices import Slice
from incsnap.config.settings import Settings
from incsnap.config.topics import ControlTopic, transaction_topic
from incsnap.envelope import control_records, control_schemas
from incsnap.envelope.control_records import bucket_of_partition_0, in_partition_0
from incsnap.envelope.format import StructFormat
from incsnap.snapshot.offset import OpenCounts
from incsnap.tasks.formats import struct_formats
from incsnap.tasks.numbering import TransactionTotals


@dataclass(frozen=True, slots=True)
class Border:
    """The state of a slice's first and last transactions."""

    #: counts of the first transaction in earlier batches; None if it begins in this slice
    begun: OpenCounts | None = None
    open: bool = False  #: whether the last transaction goes on in the next batch


#: The border of a slice that has whole transactions only.
WHOLE = Border()


def transaction_records(
    settings: Settings, slice_: Slice, totals: TransactionTotals, border: Border, buckets: int
) -> tuple[str, int, Any] | None:
    """Return (topic, bucket, records) for the transaction topic; None if no transaction begins or ends, or there is no
    topic.

    A transaction without records is left out: its rows are of tables that are not captured, or were skipped.
    """
    topic = transaction_topic(settings)
    if topic is None:
        return None
    writer = _MetadataWriter(settings, topic)
    transactions = slice_.transactions
    gtids, ts_us = transactions.gtids(), transactions.column("ts_us").tolist()
    counted = zip(totals.owner.tolist(), totals.table, totals.count.tolist(), strict=True)
    for owner, counts in groupby(counted, key=lambda each: each[0]):
        if owner or border.begun is None or not border.begun.total:
            writer.begin(gtids[owner], ts_us[owner])
        if not border.open or owner + 1 < len(gtids):
            writer.end(gtids[owner], ts_us[owner], [(table, count) for _, table, count in counts])
    return (topic.name, *writer.records(buckets)) if writer.used else None


def ending(settings: Settings, topic: ControlTopic, gtid: str, counts: OpenCounts, buckets: int) -> tuple[int, Any]:
    """Return (bucket, records) with the END record of a transaction that has no more events in this batch.

    All its events came in earlier batches; `counts` are theirs.
    """
    writer = _MetadataWriter(settings, topic)
    writer.end(gtid, counts.ts_us, list(counts.tables))
    return writer.records(buckets)


class _MetadataWriter:
    """A collector of records for the transaction topic."""

    def __init__(self, settings: Settings, topic: ControlTopic) -> None:
        self._topic = topic
        self._formats: tuple[StructFormat, StructFormat] = struct_formats(settings)
        self._keys: list[bytes | None] = []
        self._values: list[bytes] = []

    def begin(self, gtid: str, ts_us: int) -> None:
        self._add(gtid, control_records.transaction_begins(gtid, ts_us))

    def end(self, gtid: str, ts_us: int, counts: list[tuple[str, int]]) -> None:
        self._add(gtid, control_records.transaction_ends(gtid, ts_us, counts))

    def _add(self, gtid: str, value: dict[str, Any]) -> None:
        keys, values = self._formats
        topic = self._topic
        self._keys.append(keys.struct(f"{topic.name}-key", topic.key_schema, topic.key({"id": gtid})))
        self._values.append(values.struct(f"{topic.name}-value", control_schemas.TRANSACTION_VALUE, value))

    @property
    def used(self) -> bool:
        """Whether any record was added."""
        return bool(self._values)

    def records(self, buckets: int) -> tuple[int, Any]:
        return bucket_of_partition_0(self._topic.name, buckets), in_partition_0(self._keys, self._values)
