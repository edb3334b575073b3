"""Names and values of Debezium 1 and 2 that Debezium 3 does not have, with the ones that mean the same today.

`unsupported` and `unwrap` refuse those that change what is sent. `corrections` replaces all of them in a file.
"""

from __future__ import annotations

from collections.abc import Mapping

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
_CONVERTERS = {"io.debezium.converters.ByteBufferConverter": "io.debezium.converters.BinaryDataConverter"}
#: Setting -> old values with the present ones.
VALUES = {
    "schema.history.internal": {
        f"io.debezium.relational.history.{old}": f"io.debezium.storage.{new}"
        for old, new in (
            ("KafkaDatabaseHistory", "kafka.history.KafkaSchemaHistory"),
            ("FileDatabaseHistory", "file.history.FileSchemaHistory"),
        )
    },
    **dict.fromkeys(("key.converter", "value.converter"), _CONVERTERS),
    "snapshot.mode": {"schema_only": "no_data", "schema_only_recovery": "recovery"},
}
#: Settings whose defaults were others in Debezium 1, with these defaults.
FIRST_DEFAULTS = {"schema.name.adjustment.mode": "avro", "skipped.operations": "none"}
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
#: The old options of ExtractNewRecordState that one option replaced. UnwrapFromEnvelope had the last one.
DROP_TOMBSTONES, DELETE_HANDLING, DROP_DELETES = "drop.tombstones", "delete.handling.mode", "drop.deletes"
TOMBSTONES = "tombstones.on.delete"
OF_DELETIONS = (DROP_TOMBSTONES, DELETE_HANDLING, DROP_DELETES)
TOMBSTONE_HANDLING = "delete.tombstone.handling.mode"
#: (drop.tombstones, delete.handling.mode) -> delete.tombstone.handling.mode
_HANDLING = {
    ("true", "drop"): "drop",
    # Without the deletion the tombstone behind it is left.
    ("false", "drop"): "delete-to-tombstone",
    ("true", "rewrite"): "rewrite",
    ("false", "rewrite"): "rewrite-with-tombstone",
    # `none` passed the deletion on without a value. A JSON converter writes the text null of it.
    ("true", "none"): "tombstone",
    # Behind the text null came the tombstone, a second record that says the same.
    ("false", "none"): "delete-to-tombstone",
}
#: drop.deletes -> delete.handling.mode
_DELETIONS = {"true": "drop", "false": "none"}
#: delete.tombstone.handling.mode -> a sentence that tells a tombstone from the text null
OF_NULLS = {
    "delete-to-tombstone": "With JsonConverter the value tombstone would write the text null.",
    "tombstone": "JsonConverter writes the text null, which is no tombstone.",
}


def tombstone_handling(options: Mapping[str, str], *, tombstones: bool = True) -> str | None:
    """Return the value of `delete.tombstone.handling.mode` that means the same as the older `options`.

    An option that is missing or "" has its old default. `drop.deletes` is read where `delete.handling.mode` is missing.
    `tombstones`: whether the connector writes a tombstone behind a deletion (`tombstones.on.delete`). Return None if a
    value was never allowed.

    >>> tombstone_handling({"drop.tombstones": "false", "delete.handling.mode": "rewrite"})
    'rewrite-with-tombstone'
    >>> tombstone_handling({"drop.tombstones": "false", "delete.handling.mode": "rewrite"}, tombstones=False)
    'rewrite'
    """
    given = {name: value.strip().lower() for name, value in options.items()}
    drops = given.get(DROP_TOMBSTONES) or "true"
    if drops == "false" and not tombstones:
        # There is no tombstone that could be left.
        drops = "true"
    handling = given.get(DELETE_HANDLING) or _DELETIONS.get(given.get(DROP_DELETES) or "true", "")
    return _HANDLING.get((drops, handling))


def present_name(name: str) -> str:
    """Return the present name of the setting `name`, or `name` itself if it has no newer one."""
    if name in NAMES:
        return NAMES[name]
    beginning = next((old for old in PREFIXES if name.startswith(old)), "")
    return PREFIXES[beginning] + name.removeprefix(beginning) if beginning else name
