"""Edits of the fields of keys and values, as Kafka Connect's transforms of the kinds `$Key` and `$Value` make them.

An edit is a description. `envelope.edited_fields` applies it to whole columns, once the columns of a table are known.
https://kafka.apache.org/documentation/#connect_transforms
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.errors import ConfigError
from incsnap.transforms.headers import is_text
from incsnap.transforms.record_spec import (
    CastFields,
    ChangedColumns,
    Constant,
    ConvertTimestamp,
    Edit,
    ExtractField,
    FlattenFields,
    HoistField,
    Inserted,
    KeepFields,
    MaskFields,
    RecordSpec,
    TakeFromValue,
    ValueShape,
    edited,
)


@dataclass(frozen=True, slots=True)
class EditFields:
    """A transform that edits the fields of the key or of the value."""

    name: str  #: of the transform, for messages
    side: Literal["Key", "Value"]  #: what is edited
    #: what is done to the fields
    edit: MaskFields | KeepFields | CastFields | ConvertTimestamp | ExtractField | HoistField | FlattenFields
    kind: Literal["EditFields"] = "EditFields"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the edit. Records that are no rows stay as they are.

        A record without a value stays without one. Its edits only say what a later ValueToKey takes. Raise ConfigError
        if the value is an envelope, whose rows the edit does not reach.
        """
        if spec.value is ValueShape.OTHER:
            return spec
        if self.side == "Key":
            return edited(spec, key=self.edit)
        if not spec.is_tombstone:
            require_row(self.name, spec, takes_after=self.edit == ExtractField("after"))
        return edited(spec, value=self.edit)


@dataclass(frozen=True, slots=True)
class InsertFields:
    """A transform that adds constant fields to the key or to the value, as InsertField does."""

    name: str  #: of the transform, for messages
    side: Literal["Key", "Value"]  #: what is edited
    fields: tuple[Inserted, ...]  #: fields with their texts
    topic: Inserted | None = None  #: field that gets the record's topic; None for none
    kind: Literal["InsertFields"] = "InsertFields"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the fields. Records that are no rows stay as they are."""
        if spec.value is ValueShape.OTHER:
            return spec
        of_topic = () if self.topic is None else (replace(self.topic, text=spec.topic),)
        for field in (*of_topic, *self.fields):
            spec = edited(spec, key=field) if self.side == "Key" else edited(spec, value=field)
        return spec


@dataclass(frozen=True, slots=True)
class ValueToKey:
    """A transform that makes the key of fields of the value."""

    name: str  #: of the transform, for messages
    fields: tuple[str, ...]  #: names of the fields
    kind: Literal["ValueToKey"] = "ValueToKey"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the key. The key of a record without a value comes from the row that was deleted.

        Raise ConfigError if the value is an envelope.
        """
        if spec.value is ValueShape.OTHER:
            return spec
        if not spec.is_tombstone:
            require_row(self.name, spec)
        return replace(spec, key_name="", key_fields=(), key_edits=(TakeFromValue(self.fields, spec.edits),))


@dataclass(frozen=True, slots=True)
class SetSchemaMetadata:
    """A transform that names the schema of the key or of the value."""

    side: Literal["Key", "Value"]  #: what is edited
    schema_name: str  #: name of the schema; "": the name stays
    version: int | None = None  #: version of the schema; None: the version stays
    kind: Literal["SetSchemaMetadata"] = "SetSchemaMetadata"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the new names. Records that are no rows stay as they are.

        A missing value may have a schema, which gets the name too.
        """
        if spec.value is ValueShape.OTHER or (self.side == "Value" and spec.value is ValueShape.NOTHING):
            return spec
        if self.side == "Key":
            named = replace(spec, key_name=self.schema_name or spec.key_name)
            return named if self.version is None else replace(named, key_version=self.version)
        if spec.value is not ValueShape.ENVELOPE:
            named = replace(spec, row_name=self.schema_name or spec.row_name)
        else:
            named = replace(spec, envelope_name=self.schema_name or spec.envelope_name)
        return named if self.version is None else replace(named, value_version=self.version)


@dataclass(frozen=True, slots=True)
class HeaderToValue:
    """A transform that copies or moves headers into fields of the value, as Debezium's HeaderToValue does."""

    name: str  #: of the transform, for messages
    headers: tuple[str, ...]  #: names of the headers
    fields: tuple[str, ...]  #: names of their fields
    moves: bool  #: whether the headers are removed
    kind: Literal["HeaderToValue"] = "HeaderToValue"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the fields. Records without a value, and records that are no rows, stay as they are.

        Raise ConfigError if the value is an envelope.
        """
        if spec.value is ValueShape.OTHER or spec.is_tombstone:
            return spec
        by_name = {each.name: each for each in spec.headers}
        present = [
            (by_name[name], field) for name, field in zip(self.headers, self.fields, strict=True) if name in by_name
        ]
        if not present:
            return spec
        require_row(self.name, spec)
        for header, field in present:
            if isinstance(header, ChangedColumns):
                raise ConfigError(
                    f"transforms.{self.name}: the transform puts the header {header.name} into the value, but"
                    " its list of columns is written as a header alone",
                    "Leave the header out of headers, and let consumers read it from the record's headers.",
                )
            if isinstance(header, Constant) and not is_text(header.text):
                raise ConfigError(
                    f"transforms.{self.name}: the transform puts the header {header.name} into the value, where"
                    f" Kafka Connect gives {header.text!r} the type of a number, a date or another value that is"
                    " no text",
                    f"Add the field by an InsertField behind {self.name}, as a text; or let the header be a text.",
                )
            # Connect parses the literal of an InsertHeader into a value that is not optional.
            if isinstance(header, Constant):
                spec = edited(spec, value=Inserted(field, header.text, optional=False))
            else:
                spec = edited(spec, value=replace(header, name=field))
        left = tuple(each for each in spec.headers if each.name not in self.headers)
        return replace(spec, headers=left) if self.moves else spec


def require_row(name: str, spec: RecordSpec, *, takes_after: bool = False) -> None:
    """Raise ConfigError if the value of the records is no row. `takes_after`: the transform takes `after` out of it."""
    if spec.value is not ValueShape.ROW:
        raise ConfigError(
            f"transforms.{name}: the transform edits fields of rows, but the records of topic {spec.topic} are"
            " envelopes with before and after",
            f"Write transforms.{name}.type=io.debezium.transforms.ExtractNewRecordState with"
            " delete.tombstone.handling.mode=delete-to-tombstone instead."
            if takes_after
            else f"Let transforms.{name} stand behind an ExtractNewRecordState, or give it a predicate"
            " (TopicNameMatches) that keeps it from these topics.",
        )


__all__ = ["Edit", "EditFields", "HeaderToValue", "InsertFields", "SetSchemaMetadata", "ValueToKey", "require_row"]
