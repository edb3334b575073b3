"""The ends of a connector's topics of schema changes and of transactions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from incsnap.envelope.seam import ROW_STEP, RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import file_number
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.takeover.partition_parts import parts_since
from incsnap.takeover.written_records import is_in_binlog
from incsnap.verify.avro_reading import AvroSchemas, as_json, with_ids
from incsnap.verify.topic_side import messages_of


def sent_statements(values: Iterable[Mapping[str, Any]], upto: tuple[str, int]) -> RecordPlace | None:
    """Return the place behind the last statement of a topic of schema changes; None if it has none.

    `values`: values of its records. `upto`: the binlog's end. Statements of an earlier server do not count.
    """
    places = []
    for value in values:
        source = value.get("source") or {}
        if source.get("file") and str(source.get("snapshot") or "false") == "false":
            file, pos = str(source["file"]), int(source["pos"])
            places += [RecordPlace(file_number(file), pos)] if is_in_binlog((file, pos), upto) else []
    return None if not places else RecordPlace(max(places).file, max(places).pos, 0, ROW_STEP + 1)


def sent_transactions(values: Iterable[Mapping[str, Any]]) -> tuple[GtidSet, GtidSet]:
    """Return the transactions whose BEGIN, and those whose END, a transaction topic has.

    `values`: values of its records. Transactions from the time before gtid_mode=ON do not count: their ids are
    `file=...,pos=...`.
    """
    begun, ended = GtidSet(), GtidSet()
    for value in values:
        try:
            gtid = GtidSet.parse(str(value["id"]))
        except ValueError:
            continue
        if value.get("status") == "BEGIN":
            begun |= gtid
        else:
            ended |= gtid
    return begun, ended


def values_since(
    client: ClientSettings, topic: str, seconds: int, avro: AvroSchemas | None
) -> Iterable[dict[str, Any]]:
    """Yield the values of a topic's records since `seconds`, without their schemas.

    `avro`: where their schemas are; None for JSON. Raise ConfigError for a value in another form. Raise
    ServerUnreachable if Kafka or the registry does not answer.
    """
    parts = parts_since(client, partition_counts(admin_client(client), [topic]), seconds)
    for _, messages in messages_of(client, parts):
        present = [message for message in messages if message.value() is not None]
        values = [message.value() or b"" for message in present]
        if avro is not None:
            values = as_json(with_ids(present, pa.array(values, pa.binary()), "value", avro), avro).to_pylist()
        for value in values:
            content = _parsed(value)
            if content is None:
                raise ConfigError(
                    f"a record of the topic {topic} is not in the form of the file's value.converter",
                    "Give the converter with which the connector has written, in FILE or by --worker.",
                )
            yield content["payload"] if set(content) == {"schema", "payload"} else content


def _parsed(value: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(value)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
