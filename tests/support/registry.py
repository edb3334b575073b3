"""Confluent's own client and reader of a schema registry, as every test uses them: no question waits for ever."""

from __future__ import annotations

from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

#: Seconds for one request. Without it the client waits for an answer for ever.
_REQUEST_SECONDS = 10


def registry_client(url: str) -> SchemaRegistryClient:
    """Close it, or use it as a context. An ``httpx`` error is raised when two requests were not answered in time."""
    return SchemaRegistryClient({"url": url, "timeout": _REQUEST_SECONDS, "max.retries": 1})


def read_avro(url: str, topic: str, data: bytes, *, key: bool = False) -> Any:
    """A key or value of ``topic`` in Confluent's wire format, read by the schema that the registry has.

    The subject is named after the topic, as Confluent's converters do. The reader's default asks the registry for
    associations first, which is a question that the registry of the tests may leave unanswered.
    """
    context = SerializationContext(topic, MessageField.KEY if key else MessageField.VALUE)
    with registry_client(url) as client:
        reader = AvroDeserializer(client, conf={"subject.name.strategy": topic_subject_name_strategy})
        return reader(data, context)
