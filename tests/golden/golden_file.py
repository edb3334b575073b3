"""Golden files: the records of one configuration, topic by topic, with one line for each record.

A file is `{"about": ..., "schemas": [...], "topics": {topic: [record, ...]}}`. A record has these fields:

- `key` and `value`: JSON. `null` stands for no bytes, and `{"json": null}` for the four bytes of the text `null`. A key
  or value with a schema is `{"schema": n, "payload": ...}`, where n is an index of `schemas`. Avro always has a schema
  (`avro_form`). Bytes that are not JSON are `{"bytes": ...}` in hexadecimal digits.
- `headers`, if there are any.
- `partition`, if it is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.written_json import dump, parse, shortened
from tests.support.kafka import Read


class Schemas:
    """The distinct schemas, in order of appearance."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, schema: Any) -> int:
        return self.texts.setdefault(dump(schema), len(self.texts))


#: A function from the bytes of a key or value to JSON, or to `{"schema": ..., "payload": ...}`.
Form = Callable[[bytes], Any]


def read_json(data: bytes) -> Any:
    """Parse JSON. Raise AssertionError if `dump` would not write the same bytes."""
    value = parse(data)
    if dump(value).encode() != data:
        raise AssertionError(f"not written back the same: {data[:3000]!r}")
    return value


def read_plain(data: bytes) -> Any:
    """Parse JSON, or return `{"bytes": ...}` for bytes that are not JSON."""
    try:
        return read_json(data)
    except (ValueError, AssertionError):
        return {"bytes": data.hex()}


def record_of(read: Read, schemas: Schemas, form: Form) -> dict[str, Any]:
    record = {"key": _part(read.key, schemas, form), "value": _part(read.value, schemas, form)}
    if read.partition:
        record["partition"] = read.partition
    if read.headers:
        record["headers"] = _headers(read.headers)
    return record


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, Any]:
    """Return the value of each header, or the list of its values if several headers have the same name."""
    texts: dict[str, list[Any]] = {}
    for name, value in headers:
        text = None if value is None else shortened(value.decode(errors="backslashreplace"))
        texts.setdefault(name, []).append(text)
    return {name: values[0] if len(values) == 1 else values for name, values in texts.items()}


def _part(data: bytes | None, schemas: Schemas, form: Form) -> Any:
    if data is None:
        return None
    value = form(data)
    if value is None:
        return {"json": None}
    if isinstance(value, dict) and list(value) == ["schema", "payload"]:
        return {"schema": schemas.number(value["schema"]), "payload": shortened(value["payload"])}
    return shortened(value)


def write_golden(path: Path, about: Mapping[str, Any], topics: Mapping[str, Sequence[Read]], form: Form) -> int:
    """Write a golden file and return its size in bytes."""
    schemas = Schemas()
    parts = {topic: [dump(record_of(read, schemas, form)) for read in reads] for topic, reads in topics.items()}
    lines = ["{", f'"about": {dump(dict(about))},', '"schemas": [', ",\n".join(schemas.texts), "],", '"topics": {']
    lines.append(",\n".join(f"{dump(topic)}: [\n" + ",\n".join(parts[topic]) + "\n]" for topic in parts))
    lines += ["}", "}", ""]
    data = "\n".join(lines).encode()
    path.write_bytes(data)
    return len(data)


@dataclass(frozen=True, slots=True)
class Golden:
    about: dict[str, Any]
    topics: dict[str, list[dict[str, Any]]]


def read_golden(path: Path) -> Golden:
    """Read a golden file. Replace each number of a schema by the schema."""
    file = parse(path.read_text(encoding="utf-8"))
    schemas = file["schemas"]
    topics = {name: [_whole(record, schemas) for record in records] for name, records in file["topics"].items()}
    return Golden(file["about"], topics)


def whole_record(read: Read, form: Form) -> dict[str, Any]:
    """Return a record in the form that it has in `Golden.topics`."""
    schemas = Schemas()
    record = record_of(read, schemas, form)
    return _whole(record, [parse(text) for text in schemas.texts])


def _whole(record: dict[str, Any], schemas: Sequence[Any]) -> dict[str, Any]:
    def part(value: Any) -> Any:
        if isinstance(value, dict) and list(value) == ["schema", "payload"] and isinstance(value["schema"], int):
            return {"schema": schemas[value["schema"]], "payload": value["payload"]}
        return value

    return {**record, "key": part(record["key"]), "value": part(record["value"])}
