"""Source blocks of events and of rows of a snapshot, for tests of records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.envelope.sources import SourceColumns, SourceConstants

#: The time of the records, in microseconds since 1970, and the fields of an envelope that show it.
NOW = 1_700_000_000_123_456
MOMENTS = {"ts_ms": NOW // 1000, "ts_us": NOW, "ts_ns": NOW * 1000}
#: The source of a snapshot's rows of shop.orders, and the source block that shows it.
SOURCE = SourceConstants("binlog.000007", 2**33, 1_600_000_000_654_321, 5, "uuid:9", query="TRUNCATE orders")
SOURCE_BLOCK = {
    "version": "1.2.3",
    "connector": "mysql",
    "name": "pre",
    "ts_ms": 1_600_000_000_654,
    "snapshot": "incremental",
    "db": "shop",
    "sequence": None,
    "ts_us": 1_600_000_000_654_321,
    "ts_ns": 1_600_000_000_654_321_000,
    "table": "orders",
    "server_id": 5,
    "gtid": "uuid:9",
    "file": "binlog.000007",
    "pos": 2**33,
    "row": 0,
    "thread": None,
    "query": "TRUNCATE orders",
}


def source_columns(events: int) -> SourceColumns:
    """Return the columns of `events` events: one transaction, time 0, one byte of the binlog apart."""
    return SourceColumns(
        gtid=pa.array(["u:1"] * events, pa.string()),
        ts_us=np.zeros(events, np.int64),
        server_id=np.full(events, 7, np.int64),
        thread=pa.nulls(events, pa.int64()),
        file=pa.array(["b"] * events, pa.string()),
        pos=np.arange(events, dtype=np.int64),
    )


def two_events(query: Any = None) -> SourceColumns:
    """Return the columns of two events of two transactions. `query`: their statements; None without them."""
    return SourceColumns(
        gtid=pa.array(["uuid:1", "uuid:2"], pa.string()),
        ts_us=np.array([1_001, 2_002]),
        server_id=np.array([7, 2**32 - 1]),
        thread=pa.array([None, 12], pa.int64()),
        file=pa.array(["binlog.000001", "binlog.000002"], pa.string()),
        pos=np.array([4, 2**40]),
        query=query,
    )
