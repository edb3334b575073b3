"""The Connect schemas of notifications. https://debezium.io/documentation/reference/stable/configuration/notification.html"""

from __future__ import annotations

from incsnap.connect.schema import Schema

_STRING = Schema("string")

NOTIFICATION_KEY = Schema(
    "struct", name="io.debezium.connector.common.NotificationKey", version=1, fields=(("id", _STRING),)
)
NOTIFICATION_VALUE = Schema(
    "struct",
    name="io.debezium.connector.common.Notification",
    version=1,
    fields=(
        ("id", _STRING),
        ("type", _STRING),
        ("aggregate_type", _STRING),
        ("additional_data", Schema("map", optional=True, items=_STRING)),
        ("timestamp", Schema("int64")),
    ),
)
