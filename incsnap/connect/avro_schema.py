"""Avro schemas of Connect schemas, with the names, the order and the properties that Confluent's converter gives them.

The text must be equal to Confluent's: a consumer that moves here from Debezium then finds the schema under the id that
it already knows.
https://docs.confluent.io/platform/current/schema-registry/connect.html#avro-data
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from incsnap.connect.schema import Schema
from incsnap.errors import ConfigError

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
#: The precision that Confluent assumes for a Decimal without one.
_PRECISION = 64
_LOGICAL = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
}
_PRIMITIVES = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
#: The name of the record for a struct without a name.
_NAMELESS = "io.confluent.connect.avro.ConnectDefault"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_schema(schema: Schema) -> Any:
    """Return the Avro schema as plain JSON values. A record that occurs again is only named.

    Raise ConfigError for a name that Avro does not allow.
    """
    return _written(schema, "", set())


def avro_json(schema: Schema) -> str:
    """Return the Avro schema as text without blanks. Equal schemas give equal texts."""
    return json.dumps(avro_schema(schema), separators=(",", ":"), ensure_ascii=False)


def _written(schema: Schema, space: str, known: set[str]) -> Any:
    """Return the Avro schema; a union with null if `schema` is optional.

    `space`: the namespace of the record around it. `known`: full names of the records that were already written.
    """
    base = _base(schema, space, known)
    if not schema.optional:
        return base
    # Avro's default of a union is a value of its first member.
    return ["null", base] if schema.default is None else [base, "null"]


def _base(schema: Schema, space: str, known: set[str]) -> Any:
    if schema.type == "struct":
        return _record(schema, space, known)
    avro: dict[str, Any]
    if schema.type in ("array", "map"):
        assert schema.items is not None
        inside = "items" if schema.type == "array" else "values"
        avro = {"type": schema.type, inside: _written(schema.items, space, known)}
    else:
        avro = {"type": _PRIMITIVES[schema.type]}
    if schema.name == _DECIMAL:
        avro |= _digits(schema)
    avro |= _properties(schema)
    if schema.name == _DECIMAL:
        avro["logicalType"] = "decimal"
    elif schema.name in _LOGICAL:
        avro["logicalType"] = _LOGICAL[schema.name]
    return avro["type"] if len(avro) == 1 else avro


def _record(schema: Schema, space: str, known: set[str]) -> Any:
    full = schema.name or _NAMELESS
    namespace, _, name = full.rpartition(".")
    if full in known:
        return name if namespace == space else full
    known.add(full)
    # Java's library checks the name alone, so Debezium writes any namespace: topic prefixes often have hyphens.
    _check(full, name, "schema.name.adjustment.mode")
    avro: dict[str, Any] = {"type": "record", "name": name}
    if namespace != space:
        avro["namespace"] = namespace
    avro["fields"] = [_field(name, inner, namespace, known) for name, inner in schema.fields]
    return avro | _properties(schema)


def _field(name: str, schema: Schema, space: str, known: set[str]) -> dict[str, Any]:
    _check(name, name, "field.name.adjustment.mode")
    avro = {"name": name, "type": _written(schema, space, known)}
    if schema.default is not None:
        avro["default"] = _default(schema, schema.default)
    elif schema.optional:
        avro["default"] = None
    return avro


def _properties(schema: Schema) -> dict[str, Any]:
    """Return the properties from which Connect reads its own schema back: what Avro itself cannot express."""
    properties: dict[str, Any] = {}
    if schema.doc is not None:
        properties["connect.doc"] = schema.doc
    if schema.version is not None:
        properties["connect.version"] = schema.version
    if schema.parameters:
        properties["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        properties["connect.default"] = _default(schema, schema.default)
    if schema.name is not None:
        properties["connect.name"] = schema.name
    if schema.type in ("int8", "int16"):
        properties["connect.type"] = schema.type
    return properties


def _digits(schema: Schema) -> dict[str, int]:
    parameters = dict(schema.parameters)
    precision = int(parameters.get("connect.decimal.precision", _PRECISION))
    return {"scale": int(parameters["scale"]), "precision": precision}


def _default(schema: Schema, value: Any) -> Any:
    """Return a default for Avro. Bytes are base64 in Connect's JSON; in Avro's they have one character per byte."""
    if schema.type == "bytes":
        return base64.b64decode(value).decode("latin-1")
    if schema.type == "struct":
        return {name: None if value[name] is None else _default(inner, value[name]) for name, inner in schema.fields}
    if schema.type == "array" and schema.items is not None:
        return [_default(schema.items, item) for item in value]
    if schema.type == "map" and schema.items is not None:
        return {name: _default(schema.items, item) for name, item in value.items()}
    return value


def _check(full: str, name: str, setting: str) -> None:
    """Raise ConfigError if Avro does not allow `name`, the last part of `full`."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{full!r} is no name that Avro allows: letters, digits and _, not beginning with a digit",
            f"Set {setting}=avro (every other character becomes _), or avro_unicode.",
        )
