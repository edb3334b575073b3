"""The Connect schemas of a table's records, with the names and the order of Debezium 3.6.1: key, row, source, envelope.

https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-events
"""

from __future__ import annotations

from incsnap.connect.schema import Schema
from incsnap.envelope.table_view import TableView
from incsnap.transforms.record_spec import Inserted, RecordSpec
from incsnap.types.modes import Modes

_STRING, _INT32, _INT64 = Schema("string"), Schema("int32"), Schema("int64")
_STRING_OR_NULL, _INT64_OR_NULL = _STRING.as_optional(), _INT64.as_optional()

#: The schema of `source.snapshot`. A consumer takes the default "false" if a record has no value here.
_SNAPSHOT = Schema(
    "string",
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters=(("allowed", "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"),),
    default="false",
)

SOURCE = Schema(
    "struct",
    name="io.debezium.connector.mysql.Source",
    version=1,
    fields=(
        ("version", _STRING),
        ("connector", _STRING),
        ("name", _STRING),
        ("ts_ms", _INT64),
        ("snapshot", _SNAPSHOT),
        ("db", _STRING),
        ("sequence", _STRING_OR_NULL),
        ("ts_us", _INT64_OR_NULL),
        ("ts_ns", _INT64_OR_NULL),
        ("table", _STRING_OR_NULL),
        ("server_id", _INT64),
        ("gtid", _STRING_OR_NULL),
        ("file", _STRING),
        ("pos", _INT64),
        ("row", _INT32),
        ("thread", _INT64_OR_NULL),
        ("query", _STRING_OR_NULL),
    ),
)

#: The schema of `transaction`. No schema.name.adjustment.mode changes its name.
TRANSACTION = Schema(
    "struct",
    optional=True,
    name="event.block",
    version=1,
    fields=(("id", _STRING), ("total_order", _INT64), ("data_collection_order", _INT64)),
)


def key_schema(view: TableView, spec: RecordSpec, modes: Modes) -> Schema:
    """Return the schema of the key, `<topic>.Key`. The view must have a key."""
    fields = tuple((field.name, field.schema(modes)) for field in view.key)
    more = tuple((field.name, _STRING) for field in spec.key_fields)
    return Schema("struct", name=spec.key_name, fields=(*fields, *more))


def envelope_schema(view: TableView, spec: RecordSpec, modes: Modes) -> Schema:
    """Return the schema of the value, `<topic>.Envelope` of version 2."""
    row = row_schema(view, spec, modes)
    return Schema(
        "struct",
        name=spec.envelope_name,
        version=2 if spec.value_version is None else spec.value_version,
        fields=(
            ("before", row),
            ("after", row),
            ("source", SOURCE),
            ("transaction", TRANSACTION),
            ("op", _STRING),
            ("ts_ms", _INT64_OR_NULL),
            ("ts_us", _INT64_OR_NULL),
            ("ts_ns", _INT64_OR_NULL),
            *((added.name, schema_of(added)) for added in envelope_constants(spec)),
        ),
    )


def envelope_constants(spec: RecordSpec) -> list[Inserted]:
    """Return the fields that transforms have added to envelopes, each with one value for all records."""
    return [each for each in spec.edits if isinstance(each, Inserted)]


def schema_of(inserted: Inserted) -> Schema:
    """Return the Connect schema of a field that a transform inserts."""
    return Schema(inserted.type, inserted.optional, inserted.logical, None if inserted.logical is None else 1)


def row_schema(view: TableView, spec: RecordSpec, modes: Modes) -> Schema:
    """Return the schema of `before` and `after`. It is optional, because most records have only one of the two."""
    fields = tuple((field.name, field.schema(modes)) for field in view.fields)
    return Schema("struct", optional=True, name=spec.row_name, fields=fields)
