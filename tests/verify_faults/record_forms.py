"""The forms of records that the ledger seeds faults into: how to read a record, and how to change single bytes of it.

Nothing of incsnap is used here. JSON is changed as text, and Avro is decoded by fastavro with the registry's schema.
"""

from __future__ import annotations

import base64
import io
import json
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, Protocol

import fastavro

#: Most bytes before a character in which an escape of JSON may begin.
_ESCAPE = 6


@dataclass(frozen=True, slots=True)
class Shown:
    """The content of a record, as a consumer sees it."""

    key: str  #: the key as JSON without its schema
    row: Mapping[str, Any] | None  #: the row; None for a deletion or a tombstone
    op: str  #: c, u, d, r; "": a tombstone, or a form without operations


class RecordForm(Protocol):
    """A form of records."""

    def shown(self, key: bytes, value: bytes | None) -> Shown:
        """Return what the record shows."""

    def other_key(self, key: bytes, random: Random) -> bytes:
        """Return a key of the same form that differs in one byte."""

    def altered(self, value: bytes, columns: set[str], random: Random) -> tuple[bytes, str] | None:
        """Return the value with another byte in one of `columns` of its row, and the column; None: none can differ."""

    def with_row(self, value: bytes, other: bytes) -> bytes:
        """Return the value with the row of `other`."""


@dataclass(frozen=True, slots=True)
class JsonForm:
    """JSON, with or without schemas, with or without envelopes."""

    key_schemas: bool = False  #: keys contain their schema
    schemas: bool = False  #: values contain their schema
    envelope: bool = True  #: False: unwrapped rows

    def shown(self, key: bytes, value: bytes | None) -> Shown:
        begin, end = span(key.decode(), *(["payload"] if self.key_schemas else []))
        plain = canonical(json.loads(key.decode()[begin:end]))
        if value is None:
            return Shown(plain, None, "")
        content = json.loads(value)
        content = content["payload"] if self.schemas else content
        return Shown(plain, content["after"], content["op"]) if self.envelope else Shown(plain, content, "")

    def other_key(self, key: bytes, random: Random) -> bytes:
        text = key.decode()
        root = ["payload"] if self.key_schemas else []
        places = [(begin, end) for _, begin, end in members(text, *span(text, *root))]
        changed = one_byte(text, *random.choice(places), random)
        return key if changed is None else changed.encode()

    def altered(self, value: bytes, columns: set[str], random: Random) -> tuple[bytes, str] | None:
        text = value.decode()
        places = [each for each in members(text, *self._row(text)) if each[0] in columns]
        random.shuffle(places)
        for name, begin, end in places:
            changed = one_byte(text, begin, end, random)
            if changed is None:
                continue
            if is_other(json.loads(text[begin:end]), json.loads(changed[begin:end]), name):
                return changed.encode(), name
        return None

    def with_row(self, value: bytes, other: bytes) -> bytes:
        text, donor = value.decode(), other.decode()
        (begin, end), (first, last) = self._row(text), self._row(donor)
        return (text[:begin] + donor[first:last] + text[end:]).encode()

    def _row(self, text: str) -> tuple[int, int]:
        return span(text, *(["payload"] if self.schemas else []), *(["after"] if self.envelope else []))


@dataclass(frozen=True, slots=True)
class AvroForm:
    """Envelopes in Avro in Confluent's wire format. `keys`: the form of the keys; None: Avro too."""

    registry: str  #: URL of the registry
    keys: JsonForm | None = None  #: form of the keys; None: Avro

    def shown(self, key: bytes, value: bytes | None) -> Shown:
        plain = canonical(_plain(self._read(key))) if self.keys is None else self.keys.shown(key, None).key
        if value is None:
            return Shown(plain, None, "")
        content = self._read(value)
        return Shown(plain, _plain(content["after"]), content["op"])

    def other_key(self, key: bytes, random: Random) -> bytes:
        if self.keys is not None:
            return self.keys.other_key(key, random)
        content = self._read(key)
        name = random.choice(sorted(content))
        return self._written(key, {**content, name: _other_value(content[name], random)})

    def altered(self, value: bytes, columns: set[str], random: Random) -> tuple[bytes, str] | None:
        content = self._read(value)
        names = sorted(columns & set(content["after"]))
        random.shuffle(names)
        for name in names:
            old = content["after"][name]
            new = _other_value(old, random)
            if new != old and is_other(_plain(old), _plain(new), name):
                changed = self._written(value, {**content, "after": {**content["after"], name: new}})
                # A FLOAT has four bytes: the change may be lost.
                if self._read(changed)["after"][name] != old:
                    return changed, name
        return None

    def with_row(self, value: bytes, other: bytes) -> bytes:
        return self._written(value, {**self._read(value), "after": self._read(other)["after"]})

    def _read(self, record: bytes) -> Any:
        schema = _schema(self.registry, int.from_bytes(record[1:5], "big"))
        return fastavro.schemaless_reader(io.BytesIO(record[5:]), schema, None)

    def _written(self, record: bytes, content: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, _schema(self.registry, int.from_bytes(record[1:5], "big")), content)
        return record[:5] + out.getvalue()


def canonical(key: Any) -> str:
    """Return a key as JSON that can be compared."""
    return json.dumps(key, sort_keys=True)


def is_other(old: Any, new: Any, column: str) -> bool:
    """Return True if the values differ. JSON documents are compared by their content."""
    if column == "c_json" and isinstance(old, str) and isinstance(new, str):
        try:
            return bool(json.loads(old) != json.loads(new))
        except ValueError:
            return True
    return bool(old != new)


def span(text: str, *path: str) -> tuple[int, int]:
    """Return where the member at `path` begins and ends in the text of a JSON object."""
    begin, end = 0, len(text)
    for name in path:
        begin, end = next((first, last) for own, first, last in members(text, begin, end) if own == name)
    return begin, end


def members(text: str, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield (name, begin, end) of each member's value of the compact JSON object at `begin`."""
    decoder = json.JSONDecoder()
    at = begin + 1
    while at < end - 1:
        name, colon = decoder.raw_decode(text, at)
        _, after = decoder.raw_decode(text, colon + 1)
        yield name, colon + 1, after
        at = after + 1


def one_byte(text: str, begin: int, end: int, random: Random) -> str | None:
    """Return the text with another byte between `begin` and `end`, which is still JSON; None if no byte will do.

    Letters become letters, and digits become other digits but zero.
    """
    in_string = text[begin] == '"'
    places = [
        at
        for at in range(begin, end)
        if text[at].isascii() and (text[at].isdigit() or (in_string and text[at].isalpha()))
        if "\\" not in text[max(begin, at - _ESCAPE) : at]
    ]
    if not places:
        return None
    at = random.choice(places)
    return text[:at] + _other_character(text[at], random) + text[at + 1 :]


def _other_character(old: str, random: Random) -> str:
    if old.isdigit():
        return random.choice([each for each in "123456789" if each != old])
    return random.choice([each for each in "bcdghjkmpqvwxyz" if each != old.lower()])


def _other_value(value: Any, random: Random) -> Any:
    """Return an Avro value that differs in one byte, or the same value if none will do."""
    if isinstance(value, bytes) and value:
        at = random.randrange(len(value))
        return value[:at] + bytes([value[at] ^ (1 << random.randrange(8))]) + value[at + 1 :]
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        changed = one_byte(text, 0, len(text), random)
        return value if changed is None else json.loads(changed)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value ^ 1
    if isinstance(value, float):
        return value + 1.0
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


@lru_cache(maxsize=256)
def _schema(registry: str, number: int) -> Any:
    with urllib.request.urlopen(f"{registry}/schemas/ids/{number}", timeout=30) as answer:
        return fastavro.parse_schema(_bare(json.loads(json.load(answer)["schema"])))


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _bare(each) for name, each in schema.items() if name != "logicalType"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
