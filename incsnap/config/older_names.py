"""Names and values of Debezium 1 and 2 that Debezium 3 does not have, with the ones that mean the same today.

`unsupported` and `unwrap` refuse those that change what is sent. `corrections` replaces all of them in a file.
"""

from __future__ import annotations

#: Old names of lists. Debezium 3 ignores them, so data that they should exclude would be sent.
LISTS = {
    f"{kind}.{old}list": f"{kind}.{new}.list"
    for kind in ("database", "table", "column")
    for old, new in (("white", "include"), ("black", "exclude"))
}
#: Old name -> present name; the values stay.
NAMES = {
    **LISTS,
    "database.server.name": "topic.prefix",
    "database.history": "schema.history.internal",
    "database.history.store.only.monitored.tables.ddl": "schema.history.internal.store.only.captured.tables.ddl",
    "heartbeat.topics.prefix": "topic.heartbeat.prefix",
    "event.deserialization.failure.handling.mode": "event.processing.failure.handling.mode",
}
#: Old beginning of names -> present beginning.
PREFIXES = {"database.history.": "schema.history.internal."}
#: Setting -> old values with the present ones.
VALUES = {
    "schema.history.internal": {
        f"io.debezium.relational.history.{old}": f"io.debezium.storage.{new}"
        for old, new in (
            ("KafkaDatabaseHistory", "kafka.history.KafkaSchemaHistory"),
            ("FileDatabaseHistory", "file.history.FileSchemaHistory"),
        )
    },
    "snapshot.mode": {"schema_only": "no_data", "schema_only_recovery": "recovery"},
}
#: Old class of a transform -> the present class.
TRANSFORMS = {"io.debezium.transforms.UnwrapFromEnvelope": "io.debezium.transforms.ExtractNewRecordState"}
#: Old option of the EventRouter -> the present one.
OUTBOX_OPTIONS = {
    "table.field.payload": "table.field.event.payload",
    "table.field.payload.id": "table.field.event.key",
    "table.field.event.payload.id": "table.field.event.key",
    "table.field.schema.version": "table.field.event.schema.version",
    "debezium.op.invalid.behavior": "table.op.invalid.behavior",
}
#: Old options of ExtractNewRecordState that list fields of the source block, and the one that adds the operation.
SOURCE_FIELDS, OPERATION_HEADER = "add.source.fields", "operation.header"
#: The two old options of ExtractNewRecordState that one option replaced.
DROP_TOMBSTONES, DELETE_HANDLING = "drop.tombstones", "delete.handling.mode"
TOMBSTONE_HANDLING = "delete.tombstone.handling.mode"
#: (drop.tombstones, delete.handling.mode) -> delete.tombstone.handling.mode
_HANDLING = {
    (True, "drop"): "drop",
    # Without the deletion the tombstone behind it is left.
    (False, "drop"): "delete-to-tombstone",
    (True, "rewrite"): "rewrite",
    (False, "rewrite"): "rewrite-with-tombstone",
    # `none` passed the deletion on without a value. A JSON converter writes the text null of it.
    (True, "none"): "tombstone",
    # Behind the text null came the tombstone, a second record that says the same.
    (False, "none"): "delete-to-tombstone",
}
#: delete.tombstone.handling.mode -> a sentence that tells a tombstone from the text null
OF_NULLS = {
    "delete-to-tombstone": "With JsonConverter the value tombstone would write the text null.",
    "tombstone": "JsonConverter writes the text null, which is no tombstone.",
}


def tombstone_handling(drop_tombstones: str, delete_handling: str) -> str | None:
    """Return the value of `delete.tombstone.handling.mode` that means the same as the two older options.

    An option that is "" has its old default. Return None if a value was never allowed.

    >>> tombstone_handling("false", "rewrite")
    'rewrite-with-tombstone'
    """
    drops = {"true": True, "": True, "false": False}.get(drop_tombstones.strip().lower())
    return None if drops is None else _HANDLING.get((drops, delete_handling.strip().lower() or "drop"))


def present_name(name: str) -> str:
    """Return the present name of the setting `name`, or `name` itself if it has no newer one."""
    if name in NAMES:
        return NAMES[name]
    beginning = next((old for old in PREFIXES if name.startswith(old)), "")
    return PREFIXES[beginning] + name.removeprefix(beginning) if beginning else name
