"""The records that tell where transactions begin and end, and how many records each has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from incsnap.binlog.slices import Slice
from incsnap.config.settings import Settings
from incsnap.config.topics import ControlTopic, transaction_topic
from incsnap.envelope import control_records
from incsnap.envelope.control_records import home, in_partition_0
from incsnap.envelope.format import StructFormat
from incsnap.snapshot.offset import OpenCounts
from incsnap.tasks.formats import struct_formats
from incsnap.tasks.numbering import TransactionTotals


@dataclass(frozen=True, slots=True)
class Border:
    """How a slice lies in its transactions. ``begun``: what was counted of the first one in earlier batches, None where
    it begins here; ``open``: the last one goes on in the next batch."""

    begun: OpenCounts | None = None
    open: bool = False


WHOLE = Border()


def transaction_records(
    settings: Settings, slice_: Slice, totals: TransactionTotals, border: Border, buckets: int
) -> tuple[str, int, Any] | None:
    """Gives (topic, bucket, RECORDS) of the transaction topic, None where nothing begins or ends. Of transactions
    without records nothing is told: their rows are of tables that are not captured, or were skipped."""
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
    """Gives (bucket, RECORDS) of a transaction that ends without any more events."""
    writer = _MetadataWriter(settings, topic)
    writer.end(gtid, counts.ts_us, list(counts.tables))
    return writer.records(buckets)


class _MetadataWriter:
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
        self._values.append(values.struct(f"{topic.name}-value", control_records.TRANSACTION_VALUE, value))

    @property
    def used(self) -> bool:
        return bool(self._values)

    def records(self, buckets: int) -> tuple[int, Any]:
        return home(self._topic.name, buckets), in_partition_0(self._keys, self._values)
