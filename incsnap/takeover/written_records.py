"""The records that a connector has written behind its offset, from the topics themselves.

Connect writes its offset once a minute, so the topics hold more than the offset says. After a crash some partitions
hold more than others. A connector that was restarted may have written records again. So the greatest place in a
partition counts, not the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition

from incsnap.columns.arrow import RecordBatch
from incsnap.envelope.seam import DELETION_STEP, ROW_STEP, TOMBSTONE_STEP, Keyless, PartitionEnd, RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import file_number
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE, RecordForm
from incsnap.verify.topic_side import PartitionPart, messages_of, read_parts, topic_ends

#: Seconds before the offset's time from which records are read: clocks differ, and a transaction may have begun then.
_MARGIN_SECONDS = 600
_REQUEST_SECONDS = 30.0
#: Most records without a key behind an offset.
_MOST_KEYLESS = 1_000_000


@dataclass(slots=True)
class WrittenRecords:
    """The records that topics hold behind a place."""

    ends: list[PartitionEnd] = field(default_factory=list)  #: partitions with records behind the place
    keyless: list[Keyless] = field(default_factory=list)  #: records without a key
    #: last record of all: topic, partition and offset, for messages; None for none
    last: tuple[str, int, int] | None = None
    files: dict[int, str] = field(default_factory=dict)  #: number of a binlog file -> its name


def written_records(
    client: ClientSettings, forms: Mapping[str, RecordForm], seconds: int, least: RecordPlace
) -> WrittenRecords:
    """Return what the topics hold behind the place `least`.

    `forms`: form of the records, by topic. `seconds`: time of the event at that place, in seconds since 1970; 0 reads
    the topics from their beginning. Raise ConfigError if a topic has records of another form.
    """
    written, greatest = WrittenRecords(), least
    counts = partition_counts(admin_client(client), forms)
    for part in _parts(client, counts, seconds):
        reading = PartitionReading(part)
        for batch in read_parts(client, [part], forms):
            reading.add(batch)
        written.files |= reading.files
        if reading.last is not None and reading.last[0] >= greatest:
            greatest, written.last = reading.last[0], (part.topic, part.partition, reading.last[1])
        if reading.end is not None and reading.end > least:
            written.ends.append(PartitionEnd(part.topic, part.partition, reading.end))
        if behind := {each for each in reading.keyless if RecordPlace(*each) >= least}:
            written.keyless.append(Keyless(part.topic, tuple(sorted(behind))))
    if sum(len(each.places) for each in written.keyless) > _MOST_KEYLESS:
        raise ConfigError(
            f"the topics have more than {_MOST_KEYLESS:,} records without a key behind the connector's offset",
            "Start the connector once more, and stop it cleanly: its offset is then that of its last record.",
        )
    return written


class PartitionReading:
    """The reading of one partition: what its records say about its end."""

    def __init__(self, part: PartitionPart) -> None:
        self._part = part
        self._deleted: tuple[bytes | None, RecordPlace] | None = None
        self.end: RecordPlace | None = None  #: place of the first record that the partition may lack; None: unknown
        self.last: tuple[RecordPlace, int] | None = None  #: greatest place, and the offset of its record
        self.keyless: set[tuple[int, int, int]] = set()  #: places of records without a key
        self.files: dict[int, str] = {}  #: number of a binlog file -> its name

    def add(self, batch: RecordBatch) -> None:
        """Add records (columns of TOPIC_RECORDS) in their order. Raise ConfigError for a record of another form."""
        self._refuse_unreadable(batch)
        events = batch.filter(pc.and_(batch.column("file").is_valid(), pc.invert(batch.column("is_snapshot"))))
        if len(events):
            self._add_events(events)
        if self.end is not None and self.end.step == DELETION_STEP + 1:
            self._add_tombstones(batch)

    def _refuse_unreadable(self, batch: RecordBatch) -> None:
        unreadable = pc.equal(batch.column("state"), UNREADABLE).to_numpy(zero_copy_only=False)
        if unreadable.any():
            offset = batch.column("offset")[int(np.argmax(unreadable))]
            raise ConfigError(
                f"{self._part.topic}: the record at offset {offset} of partition {self._part.partition} has another"
                " form than the file describes",
                "Check converters and transforms in the connector's file, and give the worker's file with --worker.",
            )

    def _add_events(self, events: RecordBatch) -> None:
        names = events.column("file").dictionary_encode()
        numbers = np.array([file_number(name) for name in names.dictionary.to_pylist()], np.int64)
        self.files.update(zip(numbers.tolist(), names.dictionary.to_pylist(), strict=True))
        deletes = events.column("state").to_numpy() == DELETION
        places = np.stack(
            [
                numbers[names.indices.to_numpy()],
                events.column("pos").to_numpy(),
                events.column("row_number").to_numpy(),
                np.where(deletes, DELETION_STEP, ROW_STEP),
            ]
        )
        at = int(np.lexsort(places[::-1])[-1])
        greatest = RecordPlace(*places[:, at].tolist())
        if self.last is None or greatest > self.last[0]:
            self.last = (greatest, events.column("offset")[at].as_py())
        without_key = events.column("key").is_null().to_numpy(zero_copy_only=False)
        if without_key.any():
            # Kafka's producer puts such a record into any partition.
            self.keyless.update(map(tuple, places[:3, without_key].T.tolist()))
        else:
            self.end = max(self.end or greatest.next, greatest.next)

    def _add_tombstones(self, batch: RecordBatch) -> None:
        """Move the end behind the tombstone of the deletion that it stands at, if the tombstone is there."""
        columns = (batch.column(name).to_pylist() for name in ("state", "key", "file", "pos", "row_number"))
        for state, key, file, pos, row in zip(*columns, strict=True):
            if state == DELETION and file is not None:
                self._deleted = (key, RecordPlace(file_number(file), pos, row, DELETION_STEP))
            elif state == TOMBSTONE and self._deleted is not None and self._deleted[0] == key:
                if self._deleted[1].next == self.end:
                    self.end = replace(self._deleted[1], step=TOMBSTONE_STEP + 1)
                self._deleted = None
            elif state == ROW:
                self._deleted = None


def _parts(client: ClientSettings, counts: Mapping[str, int], seconds: int) -> Iterable[PartitionPart]:
    """Return each partition's records since `seconds`, some minutes earlier; from the first one on if it is 0."""
    ends = topic_ends(client, counts)
    begins = topic_ends(client, counts, first=True)
    if seconds:
        begins |= {
            place: begin
            for place, begin in offsets_at(client, begins, (seconds - _MARGIN_SECONDS) * 1000).items()
            if begin > begins[place]
        }
    return [
        PartitionPart(topic, partition, begins[topic, partition], end)
        for (topic, partition), end in sorted(ends.items())
        if begins[topic, partition] < end
    ]


def offsets_at(
    client: ClientSettings, partitions: Iterable[tuple[str, int]], milliseconds: int
) -> dict[tuple[str, int], int]:
    """Return of each partition the first offset at or after a time; the partition's end if there is none."""
    asked = [TopicPartition(topic, number, milliseconds) for topic, number in partitions]
    consumer = Consumer(client.for_consumer("incsnap-takeover"))
    try:
        answers = consumer.offsets_for_times(asked, timeout=_REQUEST_SECONDS) if asked else []
        begins = {(each.topic, each.partition): each.offset for each in answers}
        return {
            place: offset if offset >= 0 else consumer.get_watermark_offsets(TopicPartition(*place), timeout=30.0)[1]
            for place, offset in begins.items()
        }
    finally:
        consumer.close()


def sent_statements(client: ClientSettings, topic: str, seconds: int) -> RecordPlace | None:
    """Return the place behind the last statement in a topic of schema changes; None if it has none since `seconds`."""
    places = []
    for value in _json_values(client, topic, seconds):
        source = value.get("source") or {}
        if source.get("file") and str(source.get("snapshot") or "false") == "false":
            places.append(RecordPlace(file_number(source["file"]), int(source["pos"])))
    return None if not places else RecordPlace(max(places).file, max(places).pos, 0, ROW_STEP + 1)


def sent_transactions(client: ClientSettings, topic: str, seconds: int) -> tuple[GtidSet, GtidSet]:
    """Return the transactions whose BEGIN, and those whose END, a transaction topic has since `seconds`."""
    begun, ended = GtidSet(), GtidSet()
    for value in _json_values(client, topic, seconds):
        gtid = GtidSet.parse(str(value["id"]))
        if value.get("status") == "BEGIN":
            begun |= gtid
        else:
            ended |= gtid
    return begun, ended


def _json_values(client: ClientSettings, topic: str, seconds: int) -> Iterable[dict[str, Any]]:
    """Yield the values of a topic's JSON records since `seconds`, without their schemas."""
    parts = _parts(client, partition_counts(admin_client(client), [topic]), seconds)
    for _, messages in messages_of(client, parts):
        for value in filter(None, (message.value() for message in messages)):
            content = json.loads(value)
            yield content["payload"] if set(content) == {"schema", "payload"} else content
