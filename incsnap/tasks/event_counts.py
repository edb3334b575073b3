"""The number of change events in a batch of records, by operation, as Debezium's metrics count them.

Debezium counts the records of a change, without tombstones. An update that moves a row to another key counts as a
deletion and a creation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from incsnap.checkpoint.progress import BucketCounts
from incsnap.envelope.record_images import DELETE, INSERT, TOMBSTONE, UPDATE
from incsnap.envelope.records import OPERATION


def event_counts(records: Any) -> BucketCounts:
    """Return the counts of change events, all and by operation.

    `records` has the columns of RECORDS. Without OPERATION, as in a DataFrame, only records with a value are counted.
    """
    if OPERATION.name not in records.schema.names:
        return BucketCounts(events=len(records) - records.column("value").null_count)
    counts = np.bincount(records.column(OPERATION.name).to_numpy(), minlength=TOMBSTONE + 1)
    return BucketCounts(
        events=len(records) - int(counts[TOMBSTONE]),
        creates=int(counts[INSERT]),
        updates=int(counts[UPDATE]),
        deletes=int(counts[DELETE]),
    )
