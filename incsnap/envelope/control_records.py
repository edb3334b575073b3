"""The records that describe no row: BEGIN and END of transactions, and changes of tables' definitions.

This module makes their values as Connect's JsonConverter would write them. `control_schemas` has their schemas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.columns.arrow import RecordBatch
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.records import RECORDS
from incsnap.envelope.sources import SourceConstants, source_values
from incsnap.tables import TableId


def transaction_begins(gtid: str, ts_us: int) -> dict[str, Any]:
    """Return the value of a BEGIN record. `ts_us`: the transaction's time, in microseconds since 1970."""
    return {"status": "BEGIN", "id": gtid, "event_count": None, "data_collections": None, "ts_ms": ts_us // 1000}


def transaction_ends(gtid: str, ts_us: int, counts: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Return the value of an END record. `counts`: (data collection, records with a value) pairs."""
    return {
        "status": "END",
        "id": gtid,
        "event_count": sum(count for _, count in counts),
        "data_collections": [{"data_collection": name, "event_count": count} for name, count in counts],
        "ts_ms": ts_us // 1000,
    }


def schema_change(
    version: str,
    name: str,
    source: SourceConstants,
    database: str,
    table: str | None,
    ddl: str,
    changes: Sequence[dict[str, Any]],
    now_ms: int,
) -> dict[str, Any]:
    """Return the value of a record of the schema change topic.

    `version` is incsnap's version, `name` is topic.prefix. `changes` are values of `table_change`. `now_ms`:
    milliseconds since 1970.
    """
    return {
        "source": source_values(source, version, name, database, table),
        "ts_ms": now_ms,
        "databaseName": database,
        "schemaName": None,
        "ddl": ddl,
        "tableChanges": list(changes),
    }


def table_change(type_: str, table: TableId, definition: dict[str, Any] | None) -> dict[str, Any]:
    """Return one element of `tableChanges`.

    `type_` is CREATE, ALTER or DROP. `definition`: the table after the change; None for DROP.
    """
    return {"type": type_, "id": f'"{_quoted(table.database)}"."{_quoted(table.table)}"', "table": definition}


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def bucket_of_partition_0(topic: str, buckets: int) -> int:
    """Return the bucket of the topic's partition 0."""
    return int(bucket_of(topic, np.zeros(1, np.int32), buckets)[0])


def in_partition_0(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> RecordBatch:
    """Return a RecordBatch of `RECORDS` with these keys and values, all for partition 0."""
    none = pa.nulls(len(values), pa.binary())
    columns = [pa.array([0] * len(values), pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    return pa.RecordBatch.from_arrays([*columns, none, none, none, none], schema=RECORDS)
