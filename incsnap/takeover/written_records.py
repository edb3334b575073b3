"""The records that a connector has written behind its offset, from the topics themselves.

Connect writes its offset once a minute, so the topics hold more than the offset says. After a crash some partitions
hold more than others. A connector that was restarted writes records again. If it is killed again before it has repeated
all of them, the last record of a key is older than an earlier one. So the last place in a partition counts, not the
greatest one: what lies between comes again, and the last record of each key is right then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition

from incsnap.columns.arrow import Array, RecordBatch
from incsnap.config.servers import RegistrySettings
from incsnap.envelope.seam import DELETION_STEP, ROW_STEP, TOMBSTONE_STEP, Keyless, PartitionEnd, RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import base_name, file_number
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.takeover.record_places import TRUNCATED, PlaceForm, record_places
from incsnap.verify.avro_reading import AvroSchemas, as_json
from incsnap.verify.record_reading import DELETION, TOMBSTONE, UNREADABLE
from incsnap.verify.topic_side import PartitionPart, messages_of

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
    #: topic, partition and last offset of partitions in which a connector has begun to repeat records, and ended before
    #: it had repeated all of them
    cut: list[tuple[str, int, int]] = field(default_factory=list)
    unplaced: dict[str, int] = field(
        default_factory=dict
    )  #: records behind the ends whose places are unknown, by topic
    files: dict[int, str] = field(default_factory=dict)  #: number of a binlog file -> its name
    truncations: set[tuple[str, int]] = field(default_factory=set)  #: (file, pos) of the TRUNCATEs with a record


def written_records(
    client: ClientSettings, forms: Mapping[str, PlaceForm], seconds: int, least: RecordPlace, delivered: GtidSet
) -> WrittenRecords:
    """Return what the topics hold behind the place `least`.

    `forms`: form of the records, by topic. `seconds`: time of the event at that place, in seconds since 1970; 0 reads
    the topics from their beginning. `delivered`: transactions before that place. Raise ConfigError if a topic has
    records of another form.
    """
    written, greatest = WrittenRecords(), least
    counts = partition_counts(admin_client(client), forms)
    for part in _parts(client, counts, seconds):
        form = forms[part.topic]
        reading = PartitionReading(part, least, is_exact=form.is_exact)
        for _, messages in messages_of(client, [part]):
            reading.add(with_earlier(record_places(messages, form), delivered))
        written.files |= reading.files
        written.truncations |= reading.truncations
        if reading.last is not None and reading.last[0] >= greatest:
            greatest, written.last = reading.last[0], (part.topic, part.partition, reading.last[1])
        if reading.keyed is not None and reading.greatest is not None and reading.greatest > reading.keyed[0]:
            written.cut.append((part.topic, part.partition, reading.keyed[1]))
        if reading.end is not None and reading.end > least:
            written.ends.append(PartitionEnd(part.topic, part.partition, reading.end))
        if reading.unplaced:
            written.unplaced[part.topic] = written.unplaced.get(part.topic, 0) + reading.unplaced
        if behind := {each for each in reading.keyless if RecordPlace(*each) >= least}:
            written.keyless.append(Keyless(part.topic, tuple(sorted(behind))))
    if sum(len(each.places) for each in written.keyless) > _MOST_KEYLESS:
        raise ConfigError(
            f"the topics have more than {_MOST_KEYLESS:,} records without a key behind the connector's offset",
            "Start the connector once more, and stop it cleanly: its offset is then that of its last record.",
        )
    return written


def with_earlier(records: RecordBatch, delivered: GtidSet) -> RecordBatch:
    """Return records with a place before all others for those of `delivered` transactions.

    Records from before a failover have places of another server, which have no order with those of this one.
    """
    gtids = records.column("gtid").dictionary_encode()
    among = pa.array([_is_among(gtid, delivered) for gtid in gtids.dictionary.to_pylist()], pa.bool_())
    is_earlier = among.take(gtids.indices).fill_null(False)
    if not pc.any(is_earlier).as_py():
        return records
    for name, value in (("file", ""), ("pos", 0), ("row_number", 0)):
        at = records.schema.get_field_index(name)
        earlier = pc.if_else(is_earlier, value, records.column(name)).cast(records.schema.field(at).type)
        records = records.set_column(at, records.schema.field(at), earlier)
    return records


def _is_among(gtid: str, delivered: GtidSet) -> bool:
    source, _, number = gtid.rpartition(":")
    server, _, tag = source.lower().partition(":")
    return number.isdecimal() and ((server, tag), int(number)) in delivered


class PartitionReading:
    """The reading of one partition: what its records say about its end.

    Records without a key do not move the end, because Kafka's producer puts them into any partition. The tables of one
    topic may be with and without a key.
    `least`: place of the offset. `is_exact`: whether the places of records tell the row of an event. Otherwise the end
    is before the last event, and all records without a key behind `least` come again.
    """

    def __init__(self, part: PartitionPart, least: RecordPlace, *, is_exact: bool = True) -> None:
        self._part, self._begin = part, RecordPlace(least.file, least.pos)
        self._is_exact = is_exact
        self._behind_end = 0  #: records behind the end that come again
        self._keyless_again = 0  #: records without a key that come again
        self._deleted: bytes | None = None  #: key of the deletion at the end
        self.end: RecordPlace | None = None  #: place of the first record that is sent again; None: unknown
        self.last: tuple[RecordPlace, int] | None = None  #: place and offset of the last record with a place
        self.keyed: tuple[RecordPlace, int] | None = None  #: the same of the last record with a key
        #: greatest place of a record with a key; it exceeds the last one behind a cut repetition
        self.greatest: RecordPlace | None = None
        self.keyless: set[tuple[int, int, int]] = set()  #: places of records without a key
        self.files: dict[int, str] = {}  #: number of a binlog file -> its name
        self.truncations: set[tuple[str, int]] = set()  #: (file, pos) of the TRUNCATEs with a record

    @property
    def unplaced(self) -> int:
        """Return how many records come again, because their places are unknown."""
        return self._behind_end + self._keyless_again

    def add(self, batch: RecordBatch) -> None:
        """Add records (columns of RECORD_PLACES) in their order. Raise ConfigError for a record of another form."""
        self._refuse_unreadable(batch)
        state = batch.column("state")
        # A truncation's record has no key, so it may be in any partition.
        truncations = batch.filter(pc.equal(state, TRUNCATED))
        self.truncations.update(zip(*(truncations.column(name).to_pylist() for name in ("file", "pos")), strict=True))
        is_change = pc.invert(pc.is_in(state, pa.array([TOMBSTONE, TRUNCATED], pa.int8())))
        is_event = pc.and_(is_change, pc.invert(batch.column("is_snapshot")))
        has_place = pc.and_(is_event, batch.column("file").is_valid())
        events = batch.filter(has_place)
        if len(events):
            self._add_events(events)
        self._count_unplaced(batch, pc.and_(is_event, pc.invert(has_place)))
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
        if not self._is_exact:
            places[2:] = 0
        offsets = events.column("offset")
        self.last = RecordPlace(*places[:, -1].tolist()), offsets[-1].as_py()
        has_key = events.column("key").is_valid().to_numpy(zero_copy_only=False)
        if self._is_exact:
            self.keyless.update(map(tuple, places[:3, ~has_key].T.tolist()))
        else:
            begin = self._begin
            is_behind = (places[0] > begin.file) | ((places[0] == begin.file) & (places[1] >= begin.pos))
            self._keyless_again += int((is_behind & ~has_key).sum())
        if has_key.any():
            at = offsets[int(np.flatnonzero(has_key)[-1])].as_py()
            self._add_keyed(places[:, has_key], at)

    def _add_keyed(self, places: npt.NDArray[np.int64], offset: int) -> None:
        """Move the end behind records with keys. `offset`: that of the last one."""
        last, greatest = (RecordPlace(*places[:, at].tolist()) for at in (-1, np.lexsort(places[::-1])[-1]))
        goes_on = self.keyed is not None and self.keyed[0] == last and not self._is_exact
        self._behind_end = self._behind_end if goes_on else 0
        if not self._is_exact and last >= self._begin:
            # The event may have rows that are not there yet.
            self._behind_end += int(((places[0] == last.file) & (places[1] == last.pos)).sum())
        self.greatest = max(self.greatest or greatest, greatest)
        self.keyed = last, offset
        self.end = last.next if self._is_exact else last

    def _count_unplaced(self, batch: RecordBatch, unplaced: Array) -> None:
        """Count the records without a place behind the end."""
        if self.keyed is not None:
            unplaced = pc.and_(unplaced, pc.greater(batch.column("offset"), self.keyed[1]))
        self._behind_end += pc.sum(unplaced).as_py() or 0

    def _add_tombstones(self, batch: RecordBatch) -> None:
        """Move the end behind the tombstone of the deletion that it stands at, if the tombstone is there."""
        assert self.keyed is not None
        columns = (batch.column(name).to_pylist() for name in ("state", "key", "offset"))
        for state, key, offset in zip(*columns, strict=True):
            if offset == self.keyed[1]:
                self._deleted = key
            elif offset > self.keyed[1] and state == TOMBSTONE and key == self._deleted:
                self.end = replace(self.keyed[0], step=TOMBSTONE_STEP + 1)


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


def truncations_between(
    places: Iterable[tuple[str, int]], least: RecordPlace, upto: tuple[str, int]
) -> tuple[tuple[int, int], ...]:
    """Return (file number, pos) of those `places` that are neither before `least` nor behind the binlog's end `upto`.

    Records of an earlier server name other files, or places that this server does not have yet.
    """
    here = {(file_number(file), pos) for file, pos in places if _is_before((file, pos), upto)}
    return tuple(sorted(place for place in here if RecordPlace(*place) >= least))


def _is_before(place: tuple[str, int], upto: tuple[str, int]) -> bool:
    """Whether a place is in the files of the server whose binlog ends at `upto`."""
    (file, pos), (newest, end) = place, upto
    return base_name(file) == base_name(newest) and (file_number(file), pos) < (file_number(newest), end)


def sent_statements(values: Iterable[Mapping[str, Any]], upto: tuple[str, int]) -> RecordPlace | None:
    """Return the place behind the last statement of a topic of schema changes; None if it has none.

    `values`: values of its records. `upto`: the binlog's end. Statements of an earlier server do not count.
    """
    places = []
    for value in values:
        source = value.get("source") or {}
        if source.get("file") and str(source.get("snapshot") or "false") == "false":
            file, pos = str(source["file"]), int(source["pos"])
            places += [RecordPlace(file_number(file), pos)] if _is_before((file, pos), upto) else []
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
    client: ClientSettings, topic: str, seconds: int, avro: RegistrySettings | None
) -> Iterable[dict[str, Any]]:
    """Yield the values of a topic's records since `seconds`, without their schemas.

    `avro`: registry of their schemas; None for JSON. Raise ServerUnreachable if Kafka or the registry does not answer.
    """
    parts = _parts(client, partition_counts(admin_client(client), [topic]), seconds)
    for _, messages in messages_of(client, parts):
        values = [value for message in messages if (value := message.value()) is not None]
        if avro is not None:
            values = as_json(pa.array(values, pa.binary()), AvroSchemas.of(avro, "")).to_pylist()
        for value in values:
            content = json.loads(value)
            yield content["payload"] if set(content) == {"schema", "payload"} else content
