"""The topic side: committed records of partitions up to stated ends, as columns."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from incsnap.columns.arrow import RecordBatch
from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.verify.avro_reading import NO_JSON, with_ids
from incsnap.verify.record_reading import UNREADABLE, VALUES, RecordForm, read_keys, read_rows, read_values

#: The columns of the topic side.
TOPIC_RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time", pa.int64()),
        *VALUES,
    ]
)
_REQUEST_SECONDS = 30.0
#: Seconds without a record or an answer after which Kafka counts as lost.
_SILENCE_SECONDS = 60.0
#: Messages that are made columns at once.
_TOGETHER = 20_000
#: Offsets that one task reads.
_PART_OFFSETS = 500_000


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """Offsets of a partition: from `begin` on, without `end`."""

    topic: str  #: topic of the partition
    partition: int  #: number of the partition
    begin: int  #: first offset
    end: int  #: offset behind the last one


def topic_ends(client: ClientSettings, topics: Mapping[str, int], *, first: bool = False) -> dict[tuple[str, int], int]:
    """Return the end of each partition of `topics`: the offset behind its last committed record.

    `topics`: how many partitions each topic has. `first`: return the offsets of the first records instead. Raise
    ServerUnreachable if Kafka does not answer.
    """
    spec: Any = (OffsetSpec.earliest if first else OffsetSpec.latest)()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, number): spec for topic, count in topics.items() for number in range(count)}
    admin = AdminClient(client.for_admin())
    try:
        answers = admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_REQUEST_SECONDS
        )
        return {(each.topic, each.partition): answer.result().offset for each, answer in answers.items()}
    except KafkaException as error:
        raise ServerUnreachable(
            f"Kafka at {client.bootstrap_servers} does not name the ends of topics: {error}"
        ) from None


def parts_between(begins: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]) -> list[PartitionPart]:
    """Return the offsets between `begins` and `ends` in parts for tasks."""
    return [
        PartitionPart(topic, partition, begin, min(begin + _PART_OFFSETS, end))
        for (topic, partition), end in ends.items()
        for begin in range(begins[topic, partition], end, _PART_OFFSETS)
    ]


def read_parts(
    client: ClientSettings,
    parts: Sequence[PartitionPart],
    forms: Mapping[str, RecordForm],
    *,
    places: bool = True,
) -> Iterator[RecordBatch]:
    """Yield the committed records of `parts`, with the columns of TOPIC_RECORDS, in the order of each part.

    Without `places` the places of events are null, which takes a third of the time. Raise ServerUnreachable if Kafka
    does not answer.
    """
    for part, messages in messages_of(client, parts):
        yield _columns(part, messages, forms[part.topic], places=places)


def messages_of(
    client: ClientSettings, parts: Iterable[PartitionPart]
) -> Iterator[tuple[PartitionPart, list[Message]]]:
    """Yield the committed messages of `parts`, some thousands at a time, in the order of each part.

    Raise ServerUnreachable if Kafka does not answer.
    """
    settings = {
        **client.for_consumer("incsnap-verify"),
        "enable.partition.eof": "true",
        "queued.max.messages.kbytes": "65536",
        "fetch.wait.max.ms": "50",
    }
    with closing(Consumer(settings)) as consumer:
        for part in parts:
            consumer.assign([TopicPartition(part.topic, part.partition, part.begin)])
            for messages in _messages(consumer, part):
                if messages:
                    yield part, messages


def _messages(consumer: Consumer, part: PartitionPart) -> Iterator[list[Message]]:
    held: list[Message] = []
    deadline = time.monotonic() + _SILENCE_SECONDS
    is_over = False
    while not is_over:
        read = consumer.consume(_TOGETHER, timeout=0.2)
        if read:
            deadline = time.monotonic() + _SILENCE_SECONDS
        for error in [error for message in read if (error := message.error()) is not None]:
            if error.code() == KafkaError._PARTITION_EOF:
                is_over = True
            elif not error.retriable():
                raise ServerUnreachable(f"{part.topic} cannot be read: {error.str()}")
        records = [message for message in read if message.error() is None]
        last = (records[-1].offset() or 0) if records else -1
        is_over = is_over or last >= part.end - 1
        held += records if last < part.end else [each for each in records if (each.offset() or 0) < part.end]
        if len(held) >= _TOGETHER:
            yield held
            held = []
        if time.monotonic() > deadline:
            raise ServerUnreachable(f"{part.topic}: the broker sends nothing up to offset {part.end}")
    yield held


def _columns(part: PartitionPart, messages: Sequence[Any], form: RecordForm, *, places: bool) -> RecordBatch:
    n = len(messages)
    values = pa.array([message.value() for message in messages], pa.binary())
    values = with_ids(messages, values, "value", form.value_avro)
    keys = pa.array([message.key() for message in messages], pa.binary())
    keys = read_keys(with_ids(messages, keys, "key", form.key_avro), form)
    if places:
        read = list(read_values(values, form).columns)
    else:
        unknown = [pa.nulls(n, field.type) for field in list(VALUES)[2:]]
        read = [*read_rows(values, form), *unknown]
    is_odd = pc.equal(keys, NO_JSON).fill_null(False)
    read[0] = pc.if_else(is_odd, pa.scalar(UNREADABLE, pa.int8()), read[0])
    arrays = [
        pa.repeat(pa.scalar(part.topic), n),
        keys,
        pa.repeat(pa.scalar(part.partition, pa.int32()), n),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([message.timestamp()[1] for message in messages], pa.int64()),
        *read,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=TOPIC_RECORDS)
