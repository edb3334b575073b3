"""The records of the transaction topic: where transactions begin and end, and how many records each has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from incsnap.binlog.slices import Slice
from incsnap.config.settings import Settings
from incsnap.config.topics import ControlTopic, transaction_topic
from incsnap.envelope import control_records, control_schemas
from incsnap.envelope.control_records import bucket_of_partition_0, in_partition_0
from incsnap.envelope.seam import Seam
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import OpenCounts
from incsnap.tasks.formats import struct_formats


@dataclass(frozen=True, slots=True)
class Border:
    """The state of a slice's first and last transactions."""

    #: counts of the first transaction in earlier batches; None if it begins in this slice
    begun: OpenCounts | None = None
    open: bool = False  #: whether the last transaction goes on in the next batch


#: The border of a slice that has whole transactions only.
WHOLE = Border()


def transaction_records(
    settings: Settings,
    slice_: Slice,
    totals: Sequence[tuple[int, str, int]],
    border: Border,
    buckets: int,
    seam: Seam | None = None,
) -> tuple[str, int, Any] | None:
    """Return (topic, bucket, records) for the transaction topic; None if no transaction begins or ends, or there is no
    topic.

    A transaction without records is left out: its rows are of tables that are not captured, or were skipped. So is a
    record that another engine has sent (`seam`).
    """
    topic = transaction_topic(settings)
    if topic is None:
        return None
    values: list[dict[str, Any]] = []
    transactions = slice_.transactions
    gtids, ts_us = transactions.gtids(), transactions.column("ts_us").tolist()
    for owner, counts in groupby(totals, key=lambda each: each[0]):
        if owner or border.begun is None or not border.begun.total:
            values.append(control_records.transaction_begins(gtids[owner], ts_us[owner]))
        if not border.open or owner + 1 < len(gtids):
            of_tables = [(table, count) for _, table, count in counts]
            values.append(control_records.transaction_ends(gtids[owner], ts_us[owner], of_tables))
    values = not_sent(values, seam)
    return (topic.name, *_records(settings, topic, values, buckets)) if values else None


def not_sent(values: Sequence[dict[str, Any]], seam: Seam | None) -> list[dict[str, Any]]:
    """Return the records that no other engine has sent."""
    if seam is None:
        return list(values)
    sent = {"BEGIN": GtidSet.parse(seam.begun), "END": GtidSet.parse(seam.ended)}
    return [value for value in values if not GtidSet.parse(value["id"]) <= sent[value["status"]]]


def ending(
    settings: Settings, topic: ControlTopic, gtid: str, counts: OpenCounts, buckets: int, seam: Seam | None = None
) -> tuple[int, Any] | None:
    """Return (bucket, records) with the END record of a transaction that has no more events in this batch.

    All its events came in earlier batches; `counts` are theirs. Return None if another engine has sent it (`seam`).
    """
    values = not_sent([control_records.transaction_ends(gtid, counts.ts_us, counts.tables)], seam)
    return _records(settings, topic, values, buckets) if values else None


def _records(
    settings: Settings, topic: ControlTopic, values: Sequence[dict[str, Any]], buckets: int
) -> tuple[int, Any]:
    """Return (bucket, records) with these values for the transaction topic."""
    of_keys, of_values = struct_formats(settings)
    keys = [of_keys.struct(f"{topic.name}-key", topic.key_schema, topic.key({"id": value["id"]})) for value in values]
    schema = control_schemas.TRANSACTION_VALUE
    texts = [of_values.struct(f"{topic.name}-value", schema, value) for value in values]
    return bucket_of_partition_0(topic.name, buckets), in_partition_0(keys, texts)
