"""JSON texts as Connect structs: the schema that the values have, and the struct as Connect's JsonConverter writes it.

The rules are those of Debezium's EventRouter. An object is a struct that is named by its path. All fields are optional.
All elements of an array have one type; objects in one array share a struct with all of their fields. A field is left
out if its value tells no type (null, an empty array).

Each value is handled alone in Python, because no two documents need be alike.
https://github.com/debezium/debezium (JsonSchemaData)
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa

from incsnap.connect.java_floats import java_text
from incsnap.connect.schema import Schema

_INT32, _INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
#: The characters that Jackson escapes; also halves of surrogate pairs, which may stand alone in JSON.
_ESCAPED = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_LETTERS = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r"}

_LEAVES = {type_: Schema(type_, optional=True) for type_ in ("string", "boolean", "int32", "int64", "float64")}


class NotExpandedError(ValueError):
    """An error: the text cannot be a struct."""


def expanded(text: str, name: str, *, keep_nulls: bool) -> tuple[Schema, str]:
    """Return the struct's schema, called `name`, and its JSON.

    `keep_nulls`: a null whose type is unknown becomes a field of bytes; otherwise it is left out. Raise
    NotExpandedError if the text cannot be a struct.
    """
    if not text.startswith("{"):
        raise NotExpandedError("it does not begin with {")
    try:
        # Like Jackson, this ignores text behind the object.
        document, _ = _DECODER.raw_decode(text)
        schema = _Schemas(keep_nulls).of(name, document)
        assert schema is not None
        written = _written(document, schema)
    except RecursionError as error:
        raise NotExpandedError("it is nested too deeply") from error
    except ValueError as error:
        raise error if isinstance(error, NotExpandedError) else NotExpandedError(f"it is not JSON: {error}") from error
    return schema, written


def _no_number(text: str) -> NoReturn:
    raise NotExpandedError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


class _Schemas:
    """A maker of the schemas of values."""

    def __init__(self, keep_nulls: bool) -> None:
        self._null = Schema("bytes", optional=True) if keep_nulls else None

    def of(self, name: str | None, value: Any) -> Schema | None:
        """Return the schema of `value`; None if the value tells no type."""
        if isinstance(value, dict):
            return self._struct(name, value)
        if isinstance(value, list):
            return Schema("array", optional=True, items=self._items(name, value)) if value else None
        return self._null if value is None else _LEAVES[_type(value)]

    def _struct(self, name: str | None, members: dict[str, Any]) -> Schema:
        if "" in members:
            raise NotExpandedError("a field has no name")
        for each in members:
            each.encode()  # half a surrogate pair is no name
        schemas = [(each, self.of(f"{name}.{each}" if name else each, value)) for each, value in members.items()]
        fields = tuple((each, schema) for each, schema in schemas if schema is not None)
        return Schema("struct", optional=True, name=name, fields=fields)

    def _items(self, name: str | None, values: Sequence[Any]) -> Schema:
        known = [value for value in values if value is not None]
        if len({_kind(value) for value in known}) > 1:
            raise NotExpandedError("an array has elements of several types")
        if known and isinstance(known[0], dict):
            # Debezium's merged struct is not optional, and Debezium fails on a null among the objects of the array.
            schemas = list(dict.fromkeys(self._struct(name, value) for value in known))
            return replace(_merged(schemas), optional=len(schemas) == 1 or len(known) < len(values))
        items = self.of(None, known[0] if known else None)
        if items is None:
            raise NotExpandedError("nothing tells the type of an array's elements")
        return items


def _kind(value: Any) -> str:
    return "struct" if isinstance(value, dict) else "array" if isinstance(value, list) else _type(value)


def _type(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if value not in _INT64:
            raise NotExpandedError("a number does not fit into 64 bits")
        return "int32" if value in _INT32 else "int64"
    if not math.isfinite(value):
        raise NotExpandedError("a number does not fit into 64 bits")
    return "float64"


def _merged(schemas: Iterable[Schema]) -> Schema:
    """Return a struct with the fields of all structs; structs inside them are merged too."""
    first, *others = schemas
    fields = dict(first.fields)
    for other in others:
        for name, schema in other.fields:
            fields[name] = _either(fields[name], schema) if name in fields else schema
    return replace(first, fields=tuple(fields.items()))


def _either(one: Schema, other: Schema) -> Schema:
    if one.type == other.type == "struct":
        return _merged((one, other))
    if one.items is not None and other.items is not None:
        return replace(one, items=_either(one.items, other.items))
    # The type bytes stands for a null, so the other schema knows more. A value that does not fit is refused later, by
    # `_written`.
    return other if one.type == "bytes" else one


def _written(value: Any, schema: Schema) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict) and schema.type == "struct":
        members = [f"{_quoted(name)}:{_written(value.get(name), inner)}" for name, inner in schema.fields]
        return f"{{{','.join(members)}}}"
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        return f"[{','.join(_written(each, items) for each in value)}]"
    if _kind(value) != schema.type:
        raise NotExpandedError(f"a field of objects in one array has several types, {schema.type} and {_kind(value)}")
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        # Python and Java write these alike, and Arrow takes 300 µs for one number.
        plain = 1e-3 <= abs(value) < 1e7
        return repr(value) if plain else str(java_text(pa.array([value], pa.float64()))[0].as_py())
    return json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    letter = match[0]
    if letter in _LETTERS:
        return _LETTERS[letter]
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04X}" for at in range(0, len(units), 2))
