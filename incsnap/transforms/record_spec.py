"""The spec of records: what all records of one kind have in common, and what a transform changes in it.

Kafka Connect asks a transform record by record. The supported transforms look only at the record's topic, its headers'
names, its operation, and whether it has a value. So they are asked once for each table and kind of record. Their answer
is then applied to whole columns.

Example: updates of table inventory.customers with topic prefix `shop`, and the transform RegexRouter from `shop\\.(.*)`
to `$1`. `change_spec` gives the spec with the topic `shop.inventory.customers` and the operation `u`; the router
returns this spec with the topic `inventory.customers`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from incsnap.connect.field_names import adjust

#: Headers of the records of an update of the key: the deletion has the new key, the creation has the old key.
NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


class ValueShape(Enum):
    """The kind of value that records have."""

    #: Debezium's envelope: before, after, source, op.
    ENVELOPE = "envelope"
    #: A row without an envelope, with added fields.
    ROW = "row"
    #: No value, but the schema of a row: what ExtractNewRecordState makes of a deletion.
    EMPTY_ROW = "empty row"
    #: Neither value nor schema: a tombstone.
    NOTHING = "nothing"
    #: The event that a row of an outbox table holds.
    EVENT = "event"
    #: The value of a record that is no change of a row, such as a heartbeat.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class EnvelopeField:
    """A field of the envelope that a transform adds to rows or headers."""

    struct: str  #: source or transaction; "" for a field of the envelope itself
    field: str  #: its name in the struct
    name: str  #: the name under which it is added


@dataclass(frozen=True, slots=True)
class Constant:
    """A text that a transform adds to rows, keys or headers."""

    name: str  #: the name under which it is added
    text: str  #: value of the field or header


Added = EnvelopeField | Constant


@dataclass(frozen=True, slots=True)
class Route:
    """A column whose value is the topic of the row (route.by.field)."""

    name: str  #: of the transform, for messages
    column: str  #: name of the column


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column of an outbox table that goes with the event (table.fields.additional.placement)."""

    column: str  #: its name in the table
    place: str  #: header; envelope: beside the payload; partition: the number of the event's partition
    name: str  #: of the header, or of the field beside the payload
    optional: bool = False  #: the table may lack the column


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """The columns of an outbox table, and how they make an outbox event."""

    name: str  #: of the transform, for messages
    id: str  #: column with the event's id, a header
    key: str  #: column with the key
    payload: str  #: column with the payload
    timestamp: str  #: column with the time; "": events have the time of their records
    route: str  #: column from which `regex` and `replacement` make the topic
    regex: str  #: Java regex
    replacement: str  #: as for Java's Matcher.replaceFirst
    placed: tuple[PlacedColumn, ...] = ()  #: further columns
    #: Version of a schema that no format writes. The digests that checkpoints hold contain the version.
    version: str = ""
    tombstones: bool = False  #: an empty payload makes a tombstone
    expands: bool = False  #: a JSON payload becomes a struct
    keeps_nulls: bool = False  #: the struct of a JSON payload keeps fields that are null

    @property
    def in_envelope(self) -> bool:
        """Return True if a column stands beside the payload."""
        return any(each.place == "envelope" for each in self.placed)


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """The spec of all records of one kind. A transform returns a changed copy, or None to drop the records."""

    #: "" for outbox events, whose rows name the topics. With `route`: the topic of rows whose column is blank.
    topic: str
    op: str  #: c, u, d, r or t; "" for a tombstone and for a record that is no change
    value: ValueShape  #: the kind of value
    key_name: str  #: name of the key's schema
    row_name: str = ""  #: name of the row's schema
    envelope_name: str = ""  #: name of the envelope's schema
    key_fields: tuple[Constant, ...] = ()  #: fields behind the key's columns
    fields: tuple[Added, ...] = ()  #: fields behind the row's columns
    headers: tuple[Added, ...] = ()  #: added headers, in order
    own_headers: tuple[str, ...] = ()  #: names of the headers before any transform
    event: OutboxEvent | None = None  #: for outbox events only
    route: Route | None = None  #: the column with the row's topic, for ExtractNewRecordState with route.by.field only

    @property
    def is_tombstone(self) -> bool:
        """Return True if the records have no value; as in Kafka Connect, with or without a schema."""
        return self.value in (ValueShape.EMPTY_ROW, ValueShape.NOTHING)

    @property
    def encoder_key(self) -> RecordSpec:
        """Return the spec without what makes no difference to the bytes of records.

        Kinds of records whose results are equal share one encoder. The operation is left out, except that of a deletion
        whose value or topic comes from the row before it.
        """
        image = "d" if self.op == "d" and (self.value is ValueShape.ROW or self.route is not None) else ""
        return replace(self, op=image, own_headers=())


def change_spec(
    topic: str,
    op: str = "c",
    schema_names: str = "none",
    *,
    moved: bool = False,
    headers: tuple[Added, ...] = (),
) -> RecordSpec:
    """Return the spec of a table's records as Debezium makes them, before any transform.

    `topic` is the table's topic. `op` is c, u, d, r or t; "" is the tombstone of a deletion. `moved`: the record
    belongs to an update that changes the key. `schema_names` is schema.name.adjustment.mode. `headers` are those of all
    records of the job (extended.headers.enabled).
    """
    own = {"c": (OLD_KEY,), "d": (NEW_KEY,), "": (NEW_KEY,)}.get(op, ()) if moved else ()
    key, row, envelope = (adjust(f"{topic}.{what}", schema_names) for what in ("Key", "Value", "Envelope"))
    value = ValueShape.ENVELOPE if op else ValueShape.NOTHING
    return RecordSpec(topic, op, value, key, row, envelope, headers=headers, own_headers=own)
