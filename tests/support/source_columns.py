"""Source blocks of events for tests in which only the number of events matters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from incsnap.envelope.sources import SourceColumns


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
