"""Avro in Confluent's wire format as JSON, spelled like other JSON that `respelled` has spelled anew.

This is done row by row. The schemas come from the registry by their ids, and none is registered.
"""

from __future__ import annotations

import base64
import io
import json
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from incsnap.columns.arrow import BytesArray
from incsnap.config.registry_settings import client_settings
from incsnap.config.servers import RegistrySettings
from incsnap.errors import ServerUnreachable

#: Bytes before a record: a zero byte and the id of its schema.
_HEAD = 5
#: Bytes that are no JSON, for keys and values that cannot be read.
NO_JSON = b"?"


def as_json(records: BytesArray, registry: RegistrySettings) -> BytesArray:
    """Return Avro records as JSON (`pa.binary()`), with bytes in base64 as JsonConverter writes them.

    A null stays null. Raise ServerUnreachable if the registry does not answer.
    """
    client = tuple(sorted(registry.client.items()))
    return pa.array([None if each is None else _decoded(each, registry.url, client) for each in records.to_pylist()],
        pa.binary())  # fmt: skip


def respelled(objects: BytesArray) -> BytesArray:
    """Return JSON objects in the spelling of `as_json`."""
    return pa.array([None if each is None else _spelled(json.loads(each)) for each in objects.to_pylist()], pa.binary())


def _decoded(record: bytes, url: str, client: tuple[tuple[str, str], ...]) -> bytes:
    if len(record) < _HEAD or record[0]:
        return NO_JSON
    schema = _schema(url, client, int.from_bytes(record[1:_HEAD], "big"))
    try:
        return _spelled(_plain(fastavro.schemaless_reader(io.BytesIO(record[_HEAD:]), schema, None)))
    except (ValueError, TypeError, IndexError, EOFError):
        return NO_JSON


def _spelled(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def _schema(url: str, client: tuple[tuple[str, str], ...], number: int) -> Any:
    """Return the schema with this id, without logical types: what is decoded is what was written."""
    # Imported here, because the import takes 0.25 s.
    from confluent_kafka import schema_registry

    settings = client_settings(url, dict(client))
    try:
        with schema_registry.SchemaRegistryClient(dict(settings.client)) as opened:
            text = opened.get_schema(number).schema_str
    except (OSError, schema_registry.SchemaRegistryError) as error:
        raise ServerUnreachable(f"The schema registry {url} has no schema {number}: {error}") from None
    return fastavro.parse_schema(_bare(json.loads(text or "null")))


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _bare(value) for name, value in schema.items() if name != "logicalType"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
