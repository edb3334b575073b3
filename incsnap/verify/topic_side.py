"""The topic side: committed records of partitions up to stated ends, as columns."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from incsnap.columns.arrow import BytesArray, RecordBatch
from incsnap.columns.packets import PAD
from incsnap.columns.variable import variable
from incsnap.errors import IncsnapError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.verify.avro_reading import NO_JSON, with_ids
from incsnap.verify.record_reading import UNREADABLE, VALUES, Reading, RecordForm, read, read_keys
from incsnap.verify.sampling import Sample
from incsnap.verify.side_blocks import topic_columns

#: The columns of the topic side.
TOPIC_RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time", pa.int64()),
        *VALUES,
        # `source.snapshot`, and the table of `source` as db.table; null if the record has none
        ("snapshot", pa.string()),
        ("table", pa.string()),
    ]
)
#: Seconds without a record or an answer after which Kafka counts as lost.
_SILENCE_SECONDS = 60.0
#: Stands in the value of a row that a snapshot has read.
_READ = b'"op":"r"'
#: Messages that are made columns at once. Their bytes stay in the processor's cache.
_TOGETHER = 4_000
#: Messages that are taken at once. The client waits until it has so many, and its queue may have no room for more.
_AT_ONCE = 2_000
#: Offsets in which the last record of a partition is looked for first.
_TAIL_OFFSETS = 1_000
#: Offsets that one task reads.
_PART_OFFSETS = 400_000


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """Offsets of a partition: from `begin` on, without `end`."""

    topic: str  #: topic of the partition
    partition: int  #: number of the partition
    begin: int  #: first offset
    end: int  #: offset behind the last one


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

    Without `places` the places of events are null, which takes less time. Raise ServerUnreachable if Kafka does not
    answer.
    """
    for part, messages in messages_of(client, parts):
        yield _columns(part, messages, forms[part.topic], places=places)


class RecordsRemoved(IncsnapError):
    """An error: Kafka has removed the oldest records of a topic after its offsets were asked for."""

    hint = "Retention or a request has removed records meanwhile. Begin again, and without --resume."


def messages_of(
    client: ClientSettings, parts: Iterable[PartitionPart]
) -> Iterator[tuple[PartitionPart, list[Message]]]:
    """Yield the committed messages of `parts`, some thousands at a time, in the order of each part.

    Raise ServerUnreachable if Kafka does not answer, and RecordsRemoved.
    """
    settings = {
        **client.for_consumer("incsnap-verify"),
        # Without it the consumer would go on at the topic's end, as if there were no records before.
        "auto.offset.reset": "error",
        "enable.partition.eof": "true",
        # What is fetched behind a part is dropped, so the queue is short.
        "queued.max.messages.kbytes": "16384",
        "fetch.message.max.bytes": str(4 << 20),
        # Of the client: a second without a fetch, each time that the queue is full.
        "fetch.queue.backoff.ms": "5",
        "fetch.wait.max.ms": "50",
    }
    with closing(Consumer(settings)) as consumer:
        for part in parts:
            consumer.assign([TopicPartition(part.topic, part.partition, part.begin)])
            for messages in _messages(consumer, part):
                if messages:
                    yield part, messages


def record_within(client: ClientSettings, part: PartitionPart) -> int:
    """Return the offset of a committed record of `part`, mostly of the last one; -1 if there is none.

    Markers of transactions have offsets and are no records. Raise ServerUnreachable if Kafka does not answer.
    """
    tail = replace(part, begin=max(part.begin, part.end - _TAIL_OFFSETS))
    for some in (tail, replace(part, end=tail.begin)):
        if some.begin < some.end:
            offsets = [message.offset() or 0 for _, messages in messages_of(client, [some]) for message in messages]
            if offsets:
                return offsets[-1]
    return -1


def _messages(consumer: Consumer, part: PartitionPart) -> Iterator[list[Message]]:
    held: list[Message] = []
    deadline = time.monotonic() + _SILENCE_SECONDS
    is_over = False
    while not is_over:
        read = consumer.consume(_AT_ONCE, timeout=0.2)
        if read:
            deadline = time.monotonic() + _SILENCE_SECONDS
        failed = [(message, error) for message in read if (error := message.error()) is not None]
        for message, error in failed:
            if error.code() == KafkaError._PARTITION_EOF:
                # Behind a new leader a partition may end before the stated end for a moment. Other records then follow.
                is_over = is_over or (message.offset() or 0) >= part.end
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise RecordsRemoved(
                    f"{part.topic}, partition {part.partition}: the record of offset {part.begin} is gone"
                )
            elif not error.retriable():
                raise ServerUnreachable(f"{part.topic} cannot be read: {error.str()}")
        records = [message for message in read if message.error() is None] if failed else read
        last = (records[-1].offset() or 0) if records else -1
        is_over = is_over or last >= part.end - 1
        held += records if last < part.end else [each for each in records if (each.offset() or 0) < part.end]
        if len(held) >= _TOGETHER:
            yield held
            held = []
            # The caller may have rested for longer than the silence.
            deadline = time.monotonic() + _SILENCE_SECONDS
        if time.monotonic() > deadline:
            raise ServerUnreachable(f"{part.topic}: the broker sends nothing up to offset {part.end}")
    yield held


def hashed_records(
    client: ClientSettings, part: PartitionPart, form: RecordForm, seed: int, sample: Sample
) -> Iterator[RecordBatch]:
    """Yield the committed records of `part`, with the columns of TOPIC_BLOCK, in their order.

    Of other keys than those of `sample`, some records are there without their keys: those that show how far the
    partition came. Raise ServerUnreachable if Kafka does not answer.
    """
    for _, messages in messages_of(client, [part]):
        keys = _keys(messages, form)
        is_chosen = sample.has(keys)
        shown = messages
        if not is_chosen.all():
            is_shown = is_chosen | _shows_place(messages, form)
            keys = pc.if_else(pa.array(is_chosen), keys, None).filter(pa.array(is_shown))
            shown = [message for message, kept in zip(messages, is_shown.tolist(), strict=True) if kept]
        reading = _refusing(read(_values(shown, form), form), keys)
        offsets, times = _offsets_and_times(shown)
        yield topic_columns(keys, offsets, times, reading, seed)


def _shows_place(messages: Sequence[Message], form: RecordForm) -> npt.NDArray[np.bool_]:
    """Return True for those of `messages` that show how far the partition came.

    These are the last record of an event, and the last row of a snapshot behind it.
    """
    if form.value_avro is not None:
        return np.ones(len(messages), np.bool_)
    shows = np.zeros(len(messages), np.bool_)
    has_read = False
    for at in range(len(messages) - 1, -1, -1) if form.envelope else ():
        value = messages[at].value()
        is_read = value is not None and _READ in value
        if value is not None and not (is_read and has_read):
            shows[at] = True
            has_read |= is_read
            if not is_read:
                break
    return shows


def read_chosen(
    client: ClientSettings, part: PartitionPart, offsets: npt.NDArray[np.int64], form: RecordForm
) -> Iterator[RecordBatch]:
    """Yield the records of `part` at these `offsets` that are still there, as `read_parts` does."""
    for _, messages in messages_of(client, [part]):
        is_chosen = np.isin(_offsets_and_times(messages)[0], offsets)
        chosen = [message for message, kept in zip(messages, is_chosen.tolist(), strict=True) if kept]
        if chosen:
            yield _columns(part, chosen, form, places=True)


def _keys(messages: Sequence[Message], form: RecordForm) -> BytesArray:
    keys = bytes_column([message.key() for message in messages])
    return read_keys(with_ids(messages, keys, "key", form.key_avro), form)


def _values(messages: Sequence[Message], form: RecordForm) -> BytesArray:
    return with_ids(messages, bytes_column([message.value() for message in messages]), "value", form.value_avro)


def bytes_column(values: Sequence[bytes | None]) -> BytesArray:
    """Return the values as `pa.binary()`. Enough bytes follow the last value for `spans_of`, which then copies nothing.

    Raise IncsnapError if they take 2 GiB.
    """
    is_there, present = None, values
    if None in values:
        is_there = np.fromiter((value is not None for value in values), np.bool_, len(values))
        present = [b"" if value is None else value for value in values]
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, present), np.int64, len(values)), out=offsets[1:])  # type: ignore[arg-type]
    return variable(offsets, b"".join([*present, bytes(PAD)]), pa.binary(), is_there)  # type: ignore[list-item]


def _columns(part: PartitionPart, messages: Sequence[Message], form: RecordForm, *, places: bool) -> RecordBatch:
    n = len(messages)
    keys = _keys(messages, form)
    reading = _refusing(read(_values(messages, form), form, places=places), keys)
    offsets, times = _offsets_and_times(messages)
    unknown = [pa.nulls(n, field.type) for field in list(TOPIC_RECORDS)[8:]]
    arrays = [
        pa.repeat(pa.scalar(part.topic), n),
        keys,
        pa.repeat(pa.scalar(part.partition, pa.int32()), n),
        pa.array(offsets),
        pa.array(times),
        pa.array(reading.state),
        reading.rows_or_null,
        pa.array(reading.is_snapshot),
        *((*reading.places, *reading.source_columns()) if reading.places is not None else unknown),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=TOPIC_RECORDS)


def _refusing(reading: Reading, keys: BytesArray) -> Reading:
    """Return the reading with records whose keys cannot be read as unreadable."""
    is_odd = pc.equal(keys, NO_JSON).fill_null(False).to_numpy(zero_copy_only=False)
    return replace(reading, state=np.where(is_odd, np.int8(UNREADABLE), reading.state)) if is_odd.any() else reading


def _offsets_and_times(messages: Sequence[Message]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    offsets = np.array([message.offset() for message in messages], np.int64)
    return offsets, np.array([message.timestamp()[1] for message in messages], np.int64)
