"""Confluent's client and reader of a schema registry, with a time limit for each request."""

from __future__ import annotations

from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

#: Seconds for one request. By default the client waits forever.
_REQUEST_SECONDS = 60


def registry_client(url: str) -> SchemaRegistryClient:
    """Return a client.

    Close it, or use it as a context. It raises an `httpx` error after two requests without an answer.
    """
    return SchemaRegistryClient({"url": url, "timeout": _REQUEST_SECONDS, "max.retries": 1})


def read_avro(url: str, topic: str, data: bytes, *, key: bool = False) -> Any:
    """Return a key or value of `topic`, in Confluent's wire format, read by the registry's schema.

    The subject is named after the topic, as Confluent's converters do. The reader's default first asks the registry for
    associations, and the tests' registry may leave that request unanswered.
    """
    context = SerializationContext(topic, MessageField.KEY if key else MessageField.VALUE)
    with registry_client(url) as client:
        reader = AvroDeserializer(client, conf={"subject.name.strategy": topic_subject_name_strategy})
        return reader(data, context)
