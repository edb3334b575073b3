"""The differences between two Avro schemas, field by field, for the message when a registry refuses the newer one."""

from __future__ import annotations

import json
from typing import Any


def differences(old: str, new: str) -> list[str]:
    """Return one text per difference between two Avro schemas in JSON.

    A text looks like `before.qty: added (int)` or `before.id: int became long`. A record that occurs twice is compared
    once.
    """
    was, now = _fields(json.loads(old)), _fields(json.loads(new))
    changes = [f"{name}: removed (it was {was[name]})" for name in was if name not in now]
    changes += [f"{name}: added ({now[name]})" for name in now if name not in was]
    changes += [f"{name}: {was[name]} became {now[name]}" for name in now if name in was and was[name] != now[name]]
    return changes


def _fields(schema: Any, path: str = "") -> dict[str, str]:
    """Return a dictionary: path of each field -> its type in a few words."""
    if isinstance(schema, list):
        return {name: text for member in schema for name, text in _fields(member, path).items()}
    if not isinstance(schema, dict):
        return {}
    if schema.get("type") != "record":
        return _fields(schema.get("items", schema.get("values")), path + "[]")
    types = {}
    for field in schema["fields"]:
        name = f"{path}.{field['name']}" if path else field["name"]
        types[name] = _words(field["type"]) + (", has a default" if "default" in field else "")
        types |= _fields(field["type"], name)
    return types


def _words(type_: Any) -> str:
    if isinstance(type_, list):
        return " or ".join(_words(member) for member in type_)
    if not isinstance(type_, dict):
        return str(type_)
    if type_["type"] == "record":
        return f"record {type_['name']}"
    inside = type_.get("items", type_.get("values"))
    text = f"{type_['type']} of {_words(inside)}" if inside is not None else str(type_["type"])
    # Connect's parameters differ for DECIMAL(10,2) and DECIMAL(12,2), and for an ENUM that gets more values.
    more = [type_.get("connect.name", "").rpartition(".")[2], *type_.get("connect.parameters", {}).values()]
    return " ".join([text, *(f"({part})" for part in more if part)])
