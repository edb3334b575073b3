"""The settings for keys and values of records: names, modes of types, formats, transforms."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from incsnap.connect.proto_schema import ProtoStyle
from incsnap.envelope.column_rules import ColumnRules
from incsnap.transforms.chain import Chain
from incsnap.transforms.record_spec import Added
from incsnap.types.modes import Modes


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """The chosen format of keys, or of values."""

    #: json, json-schema (JSON behind the id of its schema), ext-json (JSON with the id as a member), avro, protobuf,
    #: cloudevents (only values), text or bytes. Text and bytes are for outbox events; all other records are then JSON.
    #: Without an outbox, text is for keys. For values also row, images and described: columns of a DataFrame
    #: (`frame_format`).
    kind: str = "json"
    schemas: bool = False  #: each message carries its JSON schema
    decimals: str = field(default="base64", repr=False)  #: decimal.format of JSON: base64 or numeric
    raw: bool = False  #: outbox events: values of bytes are sent as they are; all other values are JSON
    closed: bool = field(default=False, repr=False)  #: JSON Schemas say that objects have no other members
    optional: bool = field(default=False, repr=False)  #: Protobuf: optional.for.nullables
    wrapped: bool = field(default=False, repr=False)  #: Protobuf: wrapper.for.nullables
    scrubbed: bool = field(default=False, repr=False)  #: Protobuf: scrub.invalid.names
    #: Avro: where the id of the schema is. "": in four bytes before the record; wide: in eight; globalId or contentId:
    #: in a header, whose name ends so
    frame: str = field(default="", repr=False)
    extended: bool = field(default=False, repr=False)  #: CloudEvents: extension.attributes.enable

    @property
    def proto_style(self) -> ProtoStyle:
        """Return the options of Protobuf."""
        return ProtoStyle(self.optional, self.wrapped, self.scrubbed)

    @property
    def is_registered(self) -> bool:
        """Return True if schemas are in a registry, and records have their ids."""
        return self.kind in ("avro", "json-schema", "ext-json", "protobuf")


@dataclass(frozen=True, slots=True)
class EnvelopeSettings:
    """The settings that shape the records of tables."""

    name: str  #: topic.prefix
    version: str  #: incsnap's version
    modes: Modes = field(default_factory=Modes)  #: how values of types are written
    tombstones: bool = True  #: tombstones.on.delete
    rules: ColumnRules = field(default_factory=ColumnRules)  #: which columns are written, how, and which form the key
    skipped: frozenset[str] = frozenset("t")  #: skipped.operations, as letters of operations
    key: FormatChoice = field(default_factory=FormatChoice)  #: the format of keys
    value: FormatChoice = field(default_factory=FormatChoice)  #: the format of values
    transactions: bool = False  #: provide.transaction.metadata
    schema_names: str = "none"  #: schema.name.adjustment.mode
    transforms: Chain = ()  #: `transforms`, in their order
    skip_unchanged: bool = False  #: skip.messages.without.change
    headers: tuple[Added, ...] = ()  #: headers of all records before transforms (extended.headers.enabled)
    marked: bool = False  #: records carry what a DataFrame shows beside the value (`records.MARKS`)

    @property
    def key_modes(self) -> Modes:
        """Return the modes for values inside keys: the decimal format is that of the key's converter."""
        return replace(self.modes, json_decimals=self.key.decimals)

    @property
    def value_modes(self) -> Modes:
        """Return the modes for values inside values: the decimal format is that of the value's converter."""
        return replace(self.modes, json_decimals=self.value.decimals)
