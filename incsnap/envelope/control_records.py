"""Records that are no rows of a table: the begin and end of transactions, and changes of tables' definitions. Their
Connect schemas, and their values as Connect's JsonConverter would write them.

https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-transaction-metadata and
#mysql-schema-change-topic
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.connect.schema import Schema
from incsnap.envelope.connect_envelope import SOURCE
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.records import RECORDS
from incsnap.envelope.source_block import SourceConstants, source_values
from incsnap.tables import TableId

_STRING, _INT32, _INT64, _BOOLEAN = (Schema(kind) for kind in ("string", "int32", "int64", "boolean"))
_STRING_OR_NULL, _INT32_OR_NULL, _BOOLEAN_OR_NULL = (each.as_optional() for each in (_STRING, _INT32, _BOOLEAN))
_STRINGS = Schema("array", optional=True, items=_STRING)


def _struct(name: str, *fields: tuple[str, Schema], optional: bool = False) -> Schema:
    return Schema("struct", optional=optional, name=name, version=1, fields=fields)


TRANSACTION_KEY = _struct("io.debezium.connector.common.TransactionMetadataKey", ("id", _STRING))

_COLLECTION = _struct("event.collection", ("data_collection", _STRING), ("event_count", _INT64), optional=True)
TRANSACTION_VALUE = _struct(
    "io.debezium.connector.common.TransactionMetadataValue",
    ("status", _STRING),
    ("id", _STRING),
    ("event_count", _INT64.as_optional()),
    ("data_collections", Schema("array", optional=True, items=_COLLECTION)),
    ("ts_ms", _INT64),
)

SCHEMA_CHANGE_KEY = _struct("io.debezium.connector.mysql.SchemaChangeKey", ("databaseName", _STRING))

_COLUMN = _struct(
    "io.debezium.connector.schema.Column",
    ("name", _STRING),
    ("jdbcType", _INT32),
    ("nativeType", _INT32_OR_NULL),
    ("typeName", _STRING),
    ("typeExpression", _STRING_OR_NULL),
    ("charsetName", _STRING_OR_NULL),
    ("length", _INT32_OR_NULL),
    ("scale", _INT32_OR_NULL),
    ("position", _INT32),
    ("optional", _BOOLEAN_OR_NULL),
    ("autoIncremented", _BOOLEAN_OR_NULL),
    ("generated", _BOOLEAN_OR_NULL),
    ("comment", _STRING_OR_NULL),
    ("defaultValueExpression", _STRING_OR_NULL),
    ("enumValues", _STRINGS),
)
_TABLE = _struct(
    "io.debezium.connector.schema.Table",
    ("defaultCharsetName", _STRING_OR_NULL),
    ("primaryKeyColumnNames", _STRINGS),
    ("columns", Schema("array", items=_COLUMN)),
    ("comment", _STRING_OR_NULL),
    optional=True,
)
_CHANGE = _struct("io.debezium.connector.schema.Change", ("type", _STRING), ("id", _STRING), ("table", _TABLE))
SCHEMA_CHANGE_VALUE = _struct(
    "io.debezium.connector.mysql.SchemaChangeValue",
    ("source", SOURCE),
    ("ts_ms", _INT64),
    ("databaseName", _STRING_OR_NULL),
    ("schemaName", _STRING_OR_NULL),
    ("ddl", _STRING_OR_NULL),
    ("tableChanges", Schema("array", items=_CHANGE)),
)


def transaction_begins(gtid: str, ts_us: int) -> dict[str, Any]:
    return {"status": "BEGIN", "id": gtid, "event_count": None, "data_collections": None, "ts_ms": ts_us // 1000}


def transaction_ends(gtid: str, ts_us: int, counts: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """``counts``: (data collection, records that have a value) pairs."""
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
    """``version`` is incsnap's, ``name`` topic.prefix; ``changes`` are of ``table_change``."""
    return {
        "source": source_values(source, version, name, database, table),
        "ts_ms": now_ms,
        "databaseName": database,
        "schemaName": None,
        "ddl": ddl,
        "tableChanges": list(changes),
    }


def table_change(type_: str, table: TableId, definition: dict[str, Any] | None) -> dict[str, Any]:
    """``type_``: CREATE, ALTER or DROP; ``definition``: of the table after the change, None after DROP."""
    return {"type": type_, "id": f'"{_quoted(table.database)}"."{_quoted(table.table)}"', "table": definition}


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def home(topic: str, buckets: int) -> int:
    """The bucket of the topic's partition 0."""
    return int(bucket_of(topic, np.zeros(1, np.int32), buckets)[0])


def in_partition_0(keys: Sequence[bytes | None], values: Sequence[bytes]) -> Any:
    """RECORDS"""
    none = pa.nulls(len(values), pa.binary())
    columns = [pa.array([0] * len(values), pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
    return pa.RecordBatch.from_arrays([*columns, none, none, none, none], schema=RECORDS)
