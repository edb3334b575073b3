"""The Connect schemas of records that describe no row: heartbeats, notifications, transactions, schema changes."""

from __future__ import annotations

from incsnap.connect.schema import Schema
from incsnap.envelope.connect_envelope import SOURCE

_STRING, _INT32, _INT64, _BOOLEAN = (Schema(kind) for kind in ("string", "int32", "int64", "boolean"))
_STRING_OR_NULL, _INT32_OR_NULL, _BOOLEAN_OR_NULL = (each.as_optional() for each in (_STRING, _INT32, _BOOLEAN))
_STRINGS = Schema("array", optional=True, items=_STRING)


def _struct(name: str, *fields: tuple[str, Schema], optional: bool = False) -> Schema:
    return Schema("struct", optional=optional, name=name, version=1, fields=fields)


#: https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-transaction-metadata
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

#: https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-schema-change-topic
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

#: Heartbeats show that the job goes on while no captured table changes.
#: https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-property-heartbeat-interval-ms
HEARTBEAT_KEY = _struct("io.debezium.connector.common.ServerNameKey", ("serverName", _STRING))
HEARTBEAT_VALUE = _struct("io.debezium.connector.common.Heartbeat", ("ts_ms", _INT64))

#: https://debezium.io/documentation/reference/stable/configuration/notification.html
NOTIFICATION_KEY = _struct("io.debezium.connector.common.NotificationKey", ("id", _STRING))
NOTIFICATION_VALUE = _struct(
    "io.debezium.connector.common.Notification",
    ("id", _STRING),
    ("type", _STRING),
    ("aggregate_type", _STRING),
    ("additional_data", Schema("map", optional=True, items=_STRING)),
    ("timestamp", _INT64),
)
