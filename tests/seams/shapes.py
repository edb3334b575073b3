"""The shapes of records in the ledger of seams: what a connector's file says, and how a record is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from incsnap.verify.avro_reading import AvroSchemas, as_json
from lab.debezium import avro_converters

_JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
_PHYSICAL = "__dbz__physicalTableIdentifier"


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a table's topic."""

    table: str  #: without its database
    key: tuple[Any, ...]
    op: str  #: c, u, d, r; "" for a tombstone
    before: dict[str, Any] | None  #: None also where the shape does not show the row
    after: dict[str, Any] | None
    source: Mapping[str, Any]  #: `version`, `file`, `pos`, `row`, `gtid`; empty for a tombstone
    shows_before: bool = True  #: whether updates show the row before

    @property
    def is_ours(self) -> bool:
        """Whether incsnap has written the record."""
        return not str(self.source.get("version", "")).endswith("Final")

    @property
    def place(self) -> tuple[str, int, int]:
        """The place of the record's row in the binlog."""
        return str(self.source["file"]), int(self.source["pos"]), int(self.source["row"])


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of records."""

    name: str
    settings: Mapping[str, str]  #: of the connector
    read: Callable[[str, bytes, bytes | None], Record]  #: reads a record from its topic, key and value


def shapes(registry_url: str) -> dict[str, Shape]:
    """Return all shapes by their names. `registry_url`: the schema registry; "" leaves Avro out."""
    known = [
        Shape("json", _JSON, _envelope),
        Shape("unwrap", {**_JSON, **_UNWRAP}, _row),
        Shape("routed", {**_JSON, **_ROUTERS}, _envelope),
    ]
    if registry_url:
        known.append(Shape("avro", {**avro_converters(registry_url), **_AVRO_NAMES}, _avro(registry_url)))
    return {each.name: each for each in known}


_AVRO_NAMES = {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}
_UNWRAP = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
    "transforms.unwrap.add.fields": "op,source.version,source.gtid,source.file,source.pos,source.row",
}
#: Orders and their lines share a topic, and the topic of big rows has another name.
_ROUTERS = {
    "transforms": "one,name",
    "transforms.one.type": "io.debezium.transforms.ByLogicalTableRouter",
    "transforms.one.topic.regex": r"(.*)\.order(s|_lines)",
    "transforms.one.topic.replacement": "$1.all_orders",
    "transforms.name.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.name.regex": r"(.*)\.big",
    "transforms.name.replacement": "$1.routed.big",
}


def _envelope(topic: str, key: bytes, value: bytes | None) -> Record:
    identity = json.loads(key)
    physical = identity.pop(_PHYSICAL, topic)
    table, values = str(physical).rpartition(".")[2], tuple(identity.values())
    if value is None:
        return Record(table, values, "", None, None, {})
    content = json.loads(value)
    return Record(table, values, content["op"], content["before"], content["after"], content["source"])


def _row(topic: str, key: bytes, value: bytes | None) -> Record:
    table, values = topic.rpartition(".")[2], tuple(json.loads(key).values())
    if value is None:
        return Record(table, values, "", None, None, {})
    content = json.loads(value)
    source = {name.removeprefix("__source_"): content.pop(name) for name in list(content) if name[:9] == "__source_"}
    op, is_deleted = content.pop("__op"), content.pop("__deleted") == "true"
    before, after = (content, None) if is_deleted else (None, content)
    return Record(table, values, op, before, after, source, shows_before=is_deleted)


def _avro(registry_url: str) -> Callable[[str, bytes, bytes | None], Record]:
    registry = AvroSchemas(registry_url)

    def read(topic: str, key: bytes, value: bytes | None) -> Record:
        plain, content = as_json(pa.array([key, value], pa.binary()), registry).to_pylist()
        return _envelope(topic, plain, content)

    return read
