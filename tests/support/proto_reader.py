"""A reader of Protobuf records that knows their proto file alone: protoc compiles the file, google.protobuf decodes."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

from incsnap.connect.proto_schema import LOGICAL, ProtoStyle
from incsnap.connect.schema import Schema
from tests.support.numbered_schemas import SchemasFrom300

#: The files that registries know, as far as records use them.
_FILES = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
        """,
    "google/type/date.proto": """
        syntax = "proto3";
        package google.type;
        message Date { int32 year = 1; int32 month = 2; int32 day = 3; }
        """,
    "google/type/timeofday.proto": """
        syntax = "proto3";
        package google.type;
        message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }
        """,
}
_BUILT_IN = str(Path(protoc.__file__).with_name("_proto"))
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_ZERO = {"string": "", "bytes": b"", "boolean": False, "float32": 0.0, "float64": 0.0}


@lru_cache(maxsize=4096)
def message_class(text: str, place: int = 0) -> Any:
    """Return the class of the message at `place` of a proto file. Raise ValueError if protoc refuses the file."""
    if "confluent.field_meta" in text:
        # Confluent's own parser knows the option without an import; protoc does not.
        text = text.replace("\n\n", '\n\nimport "confluent/meta.proto";\n', 1)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**_FILES, "record.proto": text}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        out = Path(folder, "out")
        arguments = [f"-I{folder}", f"-I{_BUILT_IN}", "--include_imports", f"--descriptor_set_out={out}"]
        if protoc.main(["protoc", *arguments, "record.proto"]):
            raise ValueError(f"protoc refuses\n{text}")
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    name = f"{files.file[-1].package}.{files.file[-1].message_type[place].name}".lstrip(".")
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


class ProtoRegistry(SchemasFrom300):
    """A registry in memory, with Protobuf's reader."""

    def read(self, data: bytes, subject: str) -> Any:
        """Return a record of `subject`, in Confluent's wire format."""
        return read_framed(data, self.schema_of(data, subject))


def read_framed(data: bytes, text: str) -> Any:
    """Return a record in Confluent's wire format. `text`: its proto file."""
    assert data[0] == 0
    if data[5] == 0:
        return read_message(data[6:], text)
    # A list of one number, written as zigzag.
    assert data[5] == 2
    return read_message(data[7:], text, data[6] // 2)


def read_by_confluent(data: bytes, class_: Any) -> Any:
    """Return the message that Confluent's reader finds behind the id and the index of a record."""
    # Without a registry: Apicurio's does not answer in the form that this reader asks for.
    return ProtobufDeserializer(class_, {"use.deprecated.format": False}, None)(data, None)


def read_message(data: bytes, text: str, place: int = 0) -> dict[str, Any]:
    """Return the fields of a message. The bytes must be those that google.protobuf writes for these fields.

    `place`: the index of the message in its file.
    """
    message = message_class(text, place).FromString(data)
    assert message.SerializeToString(deterministic=True) == data
    return _fields(message)


def _fields(message: Any) -> dict[str, Any]:
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return [_value(each) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(value)


def _value(value: Any) -> Any:
    if not hasattr(value, "DESCRIPTOR"):
        return value
    full = value.DESCRIPTOR.full_name
    if full == "confluent.type.Decimal":
        digits = len(str(abs(int.from_bytes(value.value, "big", signed=True))))
        assert value.precision == digits
        return value.value, value.scale
    if full == "google.type.Date":
        return datetime.date(value.year, value.month, value.day).toordinal() - _EPOCH
    if full == "google.type.TimeOfDay":
        return ((value.hours * 60 + value.minutes) * 60 + value.seconds) * 1000 + value.nanos // 1_000_000
    if full == "google.protobuf.Timestamp":
        return value.seconds * 1000 + value.nanos // 1_000_000
    return value.value if full.startswith("google.protobuf.") else _fields(value)


def seen(schema: Schema, value: Any, style: ProtoStyle) -> Any:
    """Return what a reader sees of a Connect value: the default in place of a NULL without presence."""
    if schema.items is not None:
        if schema.type == "map":
            entries = value.items() if isinstance(value, Mapping) else value or ()
            return [{"key": name, "value": seen(schema.items, item, style)} for name, item in entries]
        return [seen(schema.items, item, style) for item in value or ()]
    if value is None:
        shows_null = schema.type == "struct" or schema.name in LOGICAL or style.optional or style.wrapped
        return None if shows_null else _ZERO.get(schema.type, 0)
    if schema.type == "struct":
        return {name: seen(inner, value[name], style) for name, inner in schema.fields}
    if schema.name in LOGICAL and schema.type == "bytes":
        return value, int(dict(schema.parameters)["scale"])
    return value
