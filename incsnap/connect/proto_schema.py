"""Proto files of Connect schemas, as Confluent's ProtobufConverter registers them.

The package and the message are those of the schema's name. Messages of structs are nested where they are used first.
https://docs.confluent.io/platform/current/schema-registry/connect.html#protobuf
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from incsnap.connect.proto_names import check_name, scrubbed
from incsnap.connect.schema import Schema
from incsnap.errors import ConfigError

#: Logical type of Connect -> message that stands for it, and the file of the message.
LOGICAL = {
    "org.apache.kafka.connect.data.Decimal": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    "org.apache.kafka.connect.data.Date": ("google.type.Date", "google/type/date.proto"),
    "org.apache.kafka.connect.data.Time": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    "org.apache.kafka.connect.data.Timestamp": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_WRAPPERS = "google/protobuf/wrappers.proto"
#: Connect type -> type in a proto file, and the name of its wrapper.
_SCALARS = {
    "int8": ("int32", "Int32Value"),
    "int16": ("int32", "Int32Value"),
    "int32": ("int32", "Int32Value"),
    "int64": ("int64", "Int64Value"),
    "float32": ("float", "FloatValue"),
    "float64": ("double", "DoubleValue"),
    "boolean": ("bool", "BoolValue"),
    "string": ("string", "StringValue"),
    "bytes": ("bytes", "BytesValue"),
}
#: The messages of google/protobuf/wrappers.proto in their order, with the types of their values.
_WRAPPED = {
    "DoubleValue": "double",
    "FloatValue": "float",
    "Int64Value": "int64",
    "UInt64Value": "uint64",
    "Int32Value": "int32",
    "UInt32Value": "uint32",
    "BoolValue": "bool",
    "StringValue": "string",
    "BytesValue": "bytes",
}
#: The options of that file, in the order in which the converter writes them.
_WRAPPERS_HEAD = """syntax = "proto3";
package google.protobuf;

option java_package = "com.google.protobuf";
option java_outer_classname = "WrappersProto";
option java_multiple_files = true;
option go_package = "google.golang.org/protobuf/types/known/wrapperspb";
option cc_enable_arenas = true;
option objc_class_prefix = "GPB";
option csharp_namespace = "Google.Protobuf.WellKnownTypes";

"""
#: The index of the first message of a file.
_FIRST_MESSAGE = b"\x00"
#: The name of a struct or map without a name is this and a number.
_NAMELESS = "ConnectDefault"


@dataclass(frozen=True, slots=True)
class ProtoStyle:
    """The options of ProtobufConverter that shape schemas and records."""

    optional: bool = False  #: optional.for.nullables: fields that take NULL have the label `optional`
    wrapped: bool = False  #: wrapper.for.nullables: scalars that take NULL are wrapper messages
    scrubbed: bool = False  #: scrub.invalid.names: characters that Protobuf does not allow are replaced


def proto_file(schema: Schema, style: ProtoStyle) -> tuple[str, bytes]:
    """Return the proto file of a key or value, and the index of its message in the file, as records have it.

    The message of a single value is that of its wrapper, in the file that Google has made. Raise ConfigError as
    `proto_text` does, and for a single value of a logical type, which the converter writes as another message than its
    file has.
    """
    if schema.type not in _SCALARS or schema.name in LOGICAL:
        return proto_text(schema, style), _FIRST_MESSAGE
    place = list(_WRAPPED).index(_SCALARS[schema.type][1])
    messages = (f"message {name} {{\n  {type_} value = 1;\n}}\n" for name, type_ in _WRAPPED.items())
    # The index is a list of one number. Numbers are written as zigzag.
    return _WRAPPERS_HEAD + "".join(messages), bytes([2, 2 * place]) if place else _FIRST_MESSAGE


@lru_cache(maxsize=4096)
def proto_text(schema: Schema, style: ProtoStyle) -> str:
    """Return the proto file of a struct.

    Raise ConfigError for a name that Protobuf does not allow, and for a type that the converter has no form for.
    """
    if schema.type != "struct":
        raise ConfigError(
            f"ProtobufConverter has no form for a key or value that is one {schema.name or schema.type}",
            "Remove ExtractField; or set decimal.handling.mode=string or time.precision.mode=adaptive, if it is a"
            " DECIMAL or a time.",
        )
    file = _File(style)
    *package, name = file.full_name(schema.name).split(".")
    for part in (*package, name):
        check_name(part, schema.name or "", "schema.name.adjustment.mode")
    message = file.message(name, schema)
    head = ['syntax = "proto3";', *([f"package {'.'.join(package)};"] if package else []), ""]
    imports = [f'import "{each}";' for each in file.imports]
    return "\n".join([*head, *imports, *([""] if imports else []), *message, ""])


@dataclass(slots=True)
class _File:
    """A proto file that is being written."""

    style: ProtoStyle  #: options of the converter
    imports: list[str] = field(default_factory=list)  #: proto files that it needs
    nameless: int = 0  #: how many structs and maps without a name there were

    def full_name(self, name: str | None) -> str:
        if not name:
            self.nameless += 1
            return f"{_NAMELESS}{self.nameless}"
        return ".".join(map(self.scrub, name.split("."))) if self.style.scrubbed else name

    def scrub(self, name: str) -> str:
        return scrubbed(name) if self.style.scrubbed else name

    def message(self, name: str, schema: Schema) -> list[str]:
        """Return the lines of the message of a struct."""
        fields: list[str] = []
        nested: dict[str, tuple[Schema, list[str]]] = {}
        names = [self.scrub(each) for each, _ in schema.fields]
        for number, (field_name, (given, inner)) in enumerate(zip(names, schema.fields, strict=True), 1):
            check_name(field_name, given, "field.name.adjustment.mode")
            fields += self._field(number, field_name, inner, nested)
        self._refuse_clashes(name, names, nested)
        if not fields:
            return [f"message {name} {{}}"]
        messages = [line for _, lines in nested.values() for line in lines]
        gap = [""] if messages else []
        return [f"message {name} {{", *map(_indented, fields), *gap, *map(_indented, messages), "}"]

    def _field(self, number: int, name: str, schema: Schema, nested: dict[str, tuple[Schema, list[str]]]) -> list[str]:
        """Return the lines of a field. Messages that it needs are added to `nested`."""
        label = "optional " if self.style.optional and schema.optional else ""
        item = schema
        if schema.type in ("array", "map"):
            label = "repeated "
        if schema.type == "array":
            assert schema.items is not None
            item = schema.items.as_optional(False)
        parameters: list[str] = []
        type_ = self._type(item, name, parameters, nested)
        options = f" [(confluent.field_meta) = {{\n{_parameters(parameters)}\n}}]" if parameters else ""
        return f"{label}{type_} {name} = {number}{options};".split("\n")

    def _type(
        self, schema: Schema, name: str, parameters: list[str], nested: dict[str, tuple[Schema, list[str]]]
    ) -> str:
        """Return the type of a field called `name`. What Protobuf itself cannot express is added to `parameters`."""
        if schema.name in LOGICAL:
            if schema.type == "bytes":
                given = dict(schema.parameters)
                of_decimal = (("precision", given.get("connect.decimal.precision")), ("scale", given.get("scale")))
                parameters += [_parameter(("value", text), ("key", each)) for each, text in of_decimal if text]
            message, file = LOGICAL[schema.name]
            return self._imported(message, file)
        if schema.type in _SCALARS:
            scalar, wrapper = _SCALARS[schema.type]
            if schema.type in ("int8", "int16"):
                parameters.append(_parameter(("key", "connect.type"), ("value", schema.type)))
            wraps = self.style.wrapped and schema.optional
            return self._imported(f"google.protobuf.{wrapper}", _WRAPPERS) if wraps else scalar
        if schema.type == "array":
            raise ConfigError(
                f"ProtobufConverter has no form for the field {name}: a list of lists",
                "Leave the field out (column.exclude.list, or exclude of ReplaceField).",
            )
        message = self.full_name(schema.name).rpartition(".")[2]
        if schema.type == "map":
            message += "Entry"
            assert schema.items is not None
            entry = Schema("struct", fields=(("key", Schema("string")), ("value", schema.items)))
        else:
            message += "Message" if message == name else ""
            entry = schema.as_optional(False)
        check_name(message, schema.name or "", "schema.name.adjustment.mode")
        known = nested.setdefault(message, (entry, []))
        if known[0] != entry:
            raise ConfigError(
                f"ProtobufConverter would give two different structs the name {message}: the field {name} has one"
                " of them",
                "Leave one of the fields out (column.exclude.list, or exclude of ReplaceField).",
            )
        if not known[1]:
            known[1].extend(self.message(message, entry))
        return message

    def _imported(self, message: str, file: str) -> str:
        if file not in self.imports:
            self.imports.append(file)
        return message

    def _refuse_clashes(self, name: str, names: list[str], nested: dict[str, tuple[Schema, list[str]]]) -> None:
        """Raise ConfigError if two things in the message `name` have one name."""
        symbols = [*names, *nested]
        twice = next((each for place, each in enumerate(symbols) if each in symbols[:place]), None)
        twice = twice or (name if name in nested else None)
        if twice is not None:
            raise ConfigError(
                f"The proto file of {name} would use the name {twice} twice",
                "Give the field another name (renames of ReplaceField), or leave it out (column.exclude.list).",
            )


def _parameter(*members: tuple[str, str]) -> str:
    return "{\n" + ",\n".join(f'  {name}: "{text}"' for name, text in members) + "\n}"


def _parameters(parameters: list[str]) -> str:
    """Return the member `params` of confluent.field_meta."""
    inner = ",\n".join(parameters).replace("\n", "\n    ")
    return f"  params: [\n    {inner}\n  ]"


def _indented(line: str) -> str:
    # The converter indents empty lines too.
    return f"  {line}"
