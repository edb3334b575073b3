"""Settings of Kafka Connect's transforms of fields and headers. Each function reads one class of transform.

https://kafka.apache.org/documentation/#connect_included_transformation
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Literal

from incsnap.config.declarations.kinds import one_of
from incsnap.config.header_literals import header_text
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader
from incsnap.envelope.casts import CAST_TYPES
from incsnap.envelope.timestamps import PRECISIONS, TARGETS, parts_of
from incsnap.transforms.chain import Transform
from incsnap.transforms.edits import EditFields, HeaderToValue, InsertFields, SetSchemaMetadata, ValueToKey
from incsnap.transforms.headers import DropHeaders, InsertHeader
from incsnap.transforms.record_spec import (
    CastFields,
    Constant,
    ConvertTimestamp,
    ExtractField,
    FlattenFields,
    HoistField,
    Inserted,
    KeepFields,
    MaskFields,
)

Side = Literal["Key", "Value"]
_CONNECT = "org.apache.kafka.connect.transforms."


def _insert_field(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    if reader.text(start + "offset.field"):
        reader.problem(
            start + "offset.field", "left out: a record has no offset before it is sent, and Connect refuses it too"
        )
    topic = reader.text(start + "topic.field")
    fields: list[Inserted] = []
    if partition := reader.text(start + "partition.field"):
        # A record has no partition before it is sent.
        fields.append(_inserted(partition, None, "int32"))
    if timestamp := reader.text(start + "timestamp.field"):
        fields.append(_inserted(timestamp, None, "int64", "org.apache.kafka.connect.data.Timestamp"))
    static, value = reader.text(start + "static.field"), reader.text(start + "static.value")
    if bool(static) != reader.given(start + "static.value"):
        given, other = ("field", "value") if static else ("value", "field")
        reader.problems.append(f"{start}static.{given}: {start}static.{other} is missing; set both or none")
    elif static:
        fields.append(_inserted(static, value))
    if not (topic or fields):
        reader.problems.append(f"{start}static.field: no field to insert is named")
    for field in fields:
        if field.text is None and not field.optional:
            reader.problems.append(
                f"transforms.{name}: the field {field.name} is required (!), but records have no such value before"
                " they are sent. Remove the !, or the field"
            )
    return InsertFields(name, side, tuple(fields), _inserted(topic, "") if topic else None)


def _inserted(name: str, text: str | None, type_: str = "string", logical: str | None = None) -> Inserted:
    """Return a field. `!` at the end of its name means required, `?` optional."""
    return Inserted(name.rstrip("!?"), text, type_, logical, optional=not name.endswith("!"))


def _replace_field(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    include = split_list(reader.text(start + "include") or reader.text(start + "whitelist"))
    exclude = split_list(reader.text(start + "exclude") or reader.text(start + "blacklist"))
    renames = [part.split(":") for part in split_list(reader.text(start + "renames"))]
    if wrong := [":".join(pair) for pair in renames if len(pair) != 2 or not all(pair)]:
        reader.problem(start + "renames", f"a list of old:new ({wrong[0]})")
        return None
    pairs = tuple((old, new) for old, new in renames)
    return EditFields(name, side, KeepFields(include, exclude, pairs))


def _mask_field(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    fields = split_list(reader.required(start + "fields", "the names of the fields"))
    replacement = reader.text(start + "replacement")
    if start + "replacement" in reader.names() and not replacement:
        reader.problem(start + "replacement", "a text that is not empty; without the setting a text becomes empty")
    return EditFields(name, side, MaskFields(fields, replacement))


def _cast(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    types: list[tuple[str, str]] = []
    for part in split_list(reader.required(start + "spec", "a list of field:type")):
        field, _, type_ = (each.strip() for each in part.rpartition(":"))
        if type_.lower() not in CAST_TYPES:
            reader.problem(start + "spec", f"a list of field:type with types {', '.join(CAST_TYPES)} ({part})")
            return None
        types.append((field, type_.lower()))
    if len(types) > 1 and "" in dict(types):
        reader.problem(start + "spec", "a list of field:type, or one type for a value that is no struct")
        return None
    return EditFields(name, side, CastFields(tuple(types)))


def _timestamp_converter(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    target = reader.required(start + "target.type", f"one of {', '.join(TARGETS)}")
    if target not in TARGETS:
        reader.problem(start + "target.type", f"one of: {', '.join(TARGETS)}")
        return None
    precision = reader.read(start + "unix.precision", one_of(*PRECISIONS), "milliseconds")
    pattern = reader.text(start + "format")
    if target == "string" and not pattern:
        reader.problems.append(f"{start}format: needed for target.type=string, as yyyy-MM-dd HH:mm:ss.SSS")
        return None
    try:
        parts_of(pattern)
    except ValueError as error:
        reader.problem(start + "format", f"a format of the letters y M d H m s S and of texts: {error}")
        return None
    return EditFields(name, side, ConvertTimestamp(reader.text(start + "field"), target, pattern, precision))


def _extract_field(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    field = reader.required(start + "field", "the name of the field")
    return EditFields(name, side, ExtractField(field))


def _hoist_field(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    return EditFields(name, side, HoistField(reader.required(f"transforms.{name}.field", "the name of the field")))


def _flatten(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    return EditFields(name, side, FlattenFields(reader.text(f"transforms.{name}.delimiter", ".")))


def _schema_metadata(side: Side, reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    version = reader.text(start + "schema.version")
    if version and not re.fullmatch(r"\d{1,9}", version):
        reader.problem(start + "schema.version", "a whole number")
        return None
    schema_name = reader.text(start + "schema.name")
    if not (schema_name or version):
        reader.problems.append(f"{start}schema.name: neither schema.name nor schema.version is set; set one of them")
    return SetSchemaMetadata(side, schema_name, int(version) if version else None)


def _value_to_key(reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    return ValueToKey(name, split_list(reader.required(start + "fields", "the names of the fields")))


def _insert_header(reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    header = reader.required(start + "header", "the name of the header")
    literal = reader.required(start + "value.literal", "the value of the header")
    try:
        return InsertHeader(Constant(header, header_text(literal)))
    except ValueError as error:
        reader.problem(start + "value.literal", f"a text that stays as it is: {error}")
        return None


def _drop_headers(reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    names = split_list(reader.required(start + "headers", "the names of the headers"))
    if own := [each for each in names if each in ("__debezium.oldkey", "__debezium.newkey")]:
        reader.problem(start + "headers", f"names of other headers: {', '.join(own)} of updates of keys always stay")
        return None
    return DropHeaders(names)


def _header_to_value(reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    headers = split_list(reader.required(start + "headers", "the names of the headers"))
    fields = split_list(reader.required(start + "fields", "the names of the fields"))
    if len(headers) != len(fields):
        reader.problem(start + "fields", f"as many names as {start}headers has")
        return None
    operation = reader.required(start + "operation", "copy or move")
    if operation not in ("copy", "move"):
        reader.problem(start + "operation", "copy or move")
        return None
    return HeaderToValue(name, headers, fields, operation == "move")


_SIDES = {
    "InsertField": _insert_field,
    "ReplaceField": _replace_field,
    "MaskField": _mask_field,
    "Cast": _cast,
    "TimestampConverter": _timestamp_converter,
    "ExtractField": _extract_field,
    "HoistField": _hoist_field,
    "Flatten": _flatten,
    "SetSchemaMetadata": _schema_metadata,
}
_KINDS: tuple[Side, ...] = ("Key", "Value")
#: Name of the class -> the function that reads its settings.
EDITS: dict[str, Callable[[SettingsReader, str], Transform | None]] = {
    **{f"{_CONNECT}{kind}${side}": partial(read, side) for kind, read in _SIDES.items() for side in _KINDS},
    f"{_CONNECT}ValueToKey": _value_to_key,
    f"{_CONNECT}InsertHeader": _insert_header,
    f"{_CONNECT}DropHeaders": _drop_headers,
    "io.debezium.transforms.HeaderToValue": _header_to_value,
}
