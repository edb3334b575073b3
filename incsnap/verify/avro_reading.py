"""Avro as JSON, spelled like other JSON that `respelled` has spelled anew.

This is done row by row. The schemas come from the registry by their ids, and none is registered.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from incsnap.columns.arrow import BytesArray
from incsnap.config.apicurio_settings import URL
from incsnap.config.registry_settings import client_settings
from incsnap.config.secrets import without_password
from incsnap.config.servers import RegistrySettings
from incsnap.errors import ServerUnreachable
from incsnap.kafka.apicurio import ApicurioRegistry
from signals import exact_json

#: Bytes of an id before a record, by the frame of the format. An id in a header is put before the record when it is
#: read.
_ID_BYTES = {"": 4, "wide": 8, "globalId": 8, "contentId": 8}
_IN_HEADERS = ("globalId", "contentId")
#: Bytes that are no JSON, for keys and values that cannot be read.
NO_JSON = b"?"


@dataclass(frozen=True, slots=True)
class AvroSchemas:
    """The registry with the schemas of Avro records, and where a record has the id of its schema."""

    url: str  #: address of a registry with Confluent's protocol; "" for Apicurio's own
    client: tuple[tuple[str, str], ...] = ()  #: options of the registry's client
    frame: str = ""  #: place of the id, as in `FormatChoice.frame`

    @classmethod
    def of(cls, registry: RegistrySettings, frame: str) -> AvroSchemas:
        """Return the schemas of a registry."""
        return cls(registry.url, tuple(sorted(registry.client.items())), frame)


def with_ids(messages: Sequence[Any], records: BytesArray, side: str, schemas: AvroSchemas | None) -> BytesArray:
    """Return the keys or values of `messages` with the ids of their schemas before them, if headers have the ids.

    `side`: key or value.
    """
    if schemas is None or schemas.frame not in _IN_HEADERS:
        return records
    name = f"apicurio.{side}.{schemas.frame}"
    framed = [
        None if record is None else _behind_id(dict(message.headers() or ()).get(name), record)
        for message, record in zip(messages, records.to_pylist(), strict=True)
    ]
    return pa.array(framed, pa.binary())


def _behind_id(number: bytes | None, record: bytes) -> bytes:
    return NO_JSON if number is None else b"\0" + number + record


def as_json(records: BytesArray, schemas: AvroSchemas) -> BytesArray:
    """Return Avro records as JSON (`pa.binary()`), with bytes in base64 as JsonConverter writes them.

    A null stays null. Raise ServerUnreachable if the registry does not answer.
    """
    return pa.array([None if each is None else _decoded(each, schemas) for each in records.to_pylist()], pa.binary())


def respelled(objects: BytesArray, doubles: Collection[str] = ()) -> BytesArray:
    """Return JSON objects in the spelling of `as_json`. `doubles`: names of the fields that show DOUBLEs."""
    parsed = (None if each is None else exact_json.parsed(each) for each in objects.to_pylist())
    return pa.array([None if each is None else spelled(with_doubles(each, doubles)) for each in parsed], pa.binary())


def with_doubles(value: Any, doubles: Collection[str]) -> Any:
    """Return a row with floats in its fields `doubles` and in its structs, whose numbers are coordinates.

    Java before 19 prints some DOUBLEs with more digits than they need.
    """
    if not isinstance(value, dict):
        return value
    structs = {name: with_doubles(each, each.keys()) for name, each in value.items() if isinstance(each, dict)}
    floats = {name: float(value[name]) for name in doubles if isinstance(value.get(name), Decimal)}
    return {**value, **structs, **floats} if structs or floats else value


def _decoded(record: bytes, schemas: AvroSchemas) -> bytes:
    head = 1 + _ID_BYTES[schemas.frame]
    if len(record) < head or record[0]:
        return NO_JSON
    schema = _schema(schemas, int.from_bytes(record[1:head], "big"))
    try:
        return spelled(_plain(fastavro.schemaless_reader(io.BytesIO(record[head:]), schema, None)))
    except (ValueError, TypeError, IndexError, EOFError):
        return NO_JSON


def spelled(value: Any) -> bytes:
    """Return a value as JSON, in the spelling of `as_json`."""
    return exact_json.written(value, exact_json.COMPACT).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def _schema(schemas: AvroSchemas, number: int) -> Any:
    """Return the schema with this id, without logical types: what is decoded is what was written."""
    options = dict(schemas.client)
    if URL in options:
        return fastavro.parse_schema(_bare(ApicurioRegistry(options, "avro").schema(number)))
    # Imported here, because the import takes 0.25 s.
    from confluent_kafka import schema_registry

    settings = client_settings(schemas.url, options)
    try:
        with schema_registry.SchemaRegistryClient(dict(settings.client)) as opened:
            text = opened.get_schema(number).schema_str
    except (OSError, schema_registry.SchemaRegistryError) as error:
        shown = without_password(schemas.url)
        raise ServerUnreachable(f"The schema registry {shown} has no schema {number}: {error}") from None
    return fastavro.parse_schema(_bare(json.loads(text or "null")))


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _bare(value) for name, value in schema.items() if name != "logicalType"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
