"""The Connect schemas of heartbeats: records that say that the job goes on, also while no captured table changes.

https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-property-heartbeat-interval-ms
"""

from __future__ import annotations

from incsnap.connect.schema import Schema

HEARTBEAT_KEY = Schema(
    "struct",
    name="io.debezium.connector.common.ServerNameKey",
    version=1,
    fields=(("serverName", Schema("string")),),
)
HEARTBEAT_VALUE = Schema(
    "struct",
    name="io.debezium.connector.common.Heartbeat",
    version=1,
    fields=(("ts_ms", Schema("int64")),),
)
