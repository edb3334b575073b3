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
from typing import Literal

from incsnap.connect.field_names import adjust
from incsnap.transforms.conditions import Choice, Condition

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


@dataclass(frozen=True, slots=True)
class BytesHeader(Constant):
    """A header whose value is no text. `text` is not used."""

    data: bytes = b""  #: value of the header


@dataclass(frozen=True, slots=True)
class ChangedColumns(Constant):
    """A header with the names of columns (ExtractChangedRecordState).

    Its text is that of records other than updates.
    """

    changed: bool = True  #: the columns that an update has changed; False: those that it has left alone


@dataclass(frozen=True, slots=True)
class Inserted:
    """A field of one value that a transform adds to rows, envelopes or keys, with its own type."""

    name: str  #: the name under which it is added
    text: str | None  #: value of the field; None for null
    type: str = "string"  #: type of its schema
    logical: str | None = None  #: name of its schema, if that is a logical type
    optional: bool = True  #: whether its schema allows null


Added = EnvelopeField | Constant | Inserted


@dataclass(frozen=True, slots=True)
class KeepFields:
    """An edit that leaves fields out or renames them (ReplaceField)."""

    include: tuple[str, ...] = ()  #: names of the fields that stay; (): all
    exclude: tuple[str, ...] = ()  #: names of the fields that are left out
    renames: tuple[tuple[str, str], ...] = ()  #: pairs of a name and its new name
    #: name of the class where settings are stored as JSON
    kind: Literal["KeepFields"] = "KeepFields"


@dataclass(frozen=True, slots=True)
class MaskFields:
    """An edit that replaces values by the empty value of their type, or by a text (MaskField)."""

    fields: tuple[str, ...]  #: names of the fields
    replacement: str = ""  #: text or number in place of values; "": the type's empty value
    #: name of the class where settings are stored as JSON
    kind: Literal["MaskFields"] = "MaskFields"


@dataclass(frozen=True, slots=True)
class CastFields:
    """An edit that gives fields other types (Cast)."""

    types: tuple[tuple[str, str], ...]  #: pairs of a field and its type; the field "" is the whole value
    #: name of the class where settings are stored as JSON
    kind: Literal["CastFields"] = "CastFields"


@dataclass(frozen=True, slots=True)
class ConvertTimestamp:
    """An edit that writes a time in another form (TimestampConverter)."""

    field: str  #: name of the field; "": the whole value
    target: str  #: string, unix, Date, Time or Timestamp
    format: str = ""  #: pattern of SimpleDateFormat, for texts
    precision: str = "milliseconds"  #: of numbers
    #: name of the class where settings are stored as JSON
    kind: Literal["ConvertTimestamp"] = "ConvertTimestamp"


@dataclass(frozen=True, slots=True)
class ExtractField:
    """An edit that puts one field in the place of the whole (ExtractField)."""

    field: str  #: name of the field
    #: name of the class where settings are stored as JSON
    kind: Literal["ExtractField"] = "ExtractField"


@dataclass(frozen=True, slots=True)
class HoistField:
    """An edit that puts the whole into one field of a new struct (HoistField)."""

    field: str  #: name of the field
    #: name of the class where settings are stored as JSON
    kind: Literal["HoistField"] = "HoistField"


@dataclass(frozen=True, slots=True)
class FlattenFields:
    """An edit that puts the fields of inner structs beside the others (Flatten)."""

    delimiter: str = "."  #: between the names of the struct and of its field
    #: name of the class where settings are stored as JSON
    kind: Literal["FlattenFields"] = "FlattenFields"


@dataclass(frozen=True, slots=True)
class TakeFromValue:
    """An edit that makes a key of fields of the value (ValueToKey)."""

    fields: tuple[str, ...]  #: names of the fields
    edits: tuple[object, ...] = ()  #: edits that the value has had before


#: An edit of the fields of a key or of a value, in the order of transforms.
Edit = (
    EnvelopeField
    | Constant
    | Inserted
    | KeepFields
    | MaskFields
    | CastFields
    | ConvertTimestamp
    | ExtractField
    | HoistField
    | FlattenFields
    | TakeFromValue
)


@dataclass(frozen=True, slots=True)
class Route:
    """A column whose value is the topic of the row (route.by.field)."""

    name: str  #: of the transform, for messages
    column: str  #: name of the column


@dataclass(frozen=True, slots=True)
class ZoneRule:
    """An item of a list of TimezoneConverter: a table or a topic, and perhaps one of its fields."""

    place: Literal["source", "topic", ""]  #: what `name` names: a table, a topic, either
    name: str  #: name of the table without its database, or of the topic
    field: str = ""  #: name of the field; "": all fields


@dataclass(frozen=True, slots=True)
class TimeZone:
    """A time zone in which times of envelopes are written (TimezoneConverter)."""

    zone: str  #: name of the zone, or an offset as +05:30
    topic: str  #: topic of the records where they pass the transform
    rules: tuple[ZoneRule, ...]  #: of include.list or exclude.list
    includes: bool  #: whether `rules` name what is converted; False: what is not

    def converts(self, table: str, field: str) -> bool:
        """Return True if a field of a table is converted. `table`: its name without the database.

        As in Debezium, the rules for the topic count first, then those for the table, then those for either.
        """
        order = (("topic", self.topic), ("source", table), ("", self.topic), ("", table))
        named = ([rule.field for rule in self.rules if (rule.place, rule.name) == each] for each in order)
        matching = next((fields for fields in named if fields), None)
        if matching is None:
            return not self.includes
        fields = [each for each in matching if each]
        if not fields:
            return self.includes
        return (field in fields) == self.includes


@dataclass(frozen=True, slots=True)
class CaseRoute:
    """Conditions on columns that choose the topic of the row (ContentBasedRouter)."""

    name: str  #: of the transform, for messages
    choice: Choice  #: the topic; None: the topic of the table


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
    route: Route | CaseRoute | None = None  #: what in the row chooses its topic; None: all go to `topic`
    conditions: tuple[Condition, ...] = ()  #: conditions on columns; rows for which one does not hold are dropped
    zones: tuple[TimeZone, ...] = ()  #: time zones in which times are written, one after the other
    edits: tuple[Edit, ...] = ()  #: edits of the value behind `fields`; of an envelope, fields that are added to it
    key_edits: tuple[Edit, ...] = ()  #: edits of the key behind `key_fields`
    value_version: int | None = None  #: version of the value's schema; None: as Debezium has it
    key_version: int | None = None  #: version of the key's schema; None: as Debezium has it
    read_op: str = "r"  #: operation that records of rows read by SELECT show; c behind a ReadToInsertEvent

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


def edited(spec: RecordSpec, *, key: Edit | None = None, value: Edit | None = None) -> RecordSpec:
    """Return the spec with another edit of its key, or of its value."""
    keys = spec.key_edits if key is None else (*spec.key_edits, key)
    return replace(spec, key_edits=keys, edits=spec.edits if value is None else (*spec.edits, value))


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
