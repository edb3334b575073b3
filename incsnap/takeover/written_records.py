"""The records that a connector has written behind its offset, from the topics themselves.

Connect writes its offset once a minute, so the topics hold more than the offset says. After a crash some partitions
hold more than others. A connector that was restarted writes records again. If it is killed again before it has repeated
all of them, the last record of a key is older than an earlier one. So the last place in a partition counts, not the
greatest one: what lies between comes again, and the last record of each key is right then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition

from incsnap.columns.arrow import Array, RecordBatch
from incsnap.envelope.partitioner import partition
from incsnap.envelope.seam import Keyless, PartitionEnd, RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import base_name, file_number
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.takeover.key_forms import KeyForm
from incsnap.takeover.partition_reading import OffsetEvent, PartitionReading
from incsnap.takeover.record_places import PlaceForm, record_places
from incsnap.verify.record_reading import DELETION, ROW
from incsnap.verify.topic_side import PartitionPart, messages_of

#: Seconds before the offset's time from which records are read: clocks differ, and a transaction may have begun then.
_MARGIN_SECONDS = 600
_REQUEST_SECONDS = 30.0
#: Most records without a key behind an offset.
_MOST_KEYLESS = 1_000_000
#: The repair if there are more.
TOO_MANY_KEYLESS = "Start the connector once more, and stop it cleanly: its offset is then that of its last record."


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The last record with a place of a partition, or of all."""

    place: RecordPlace  #: its place; only that of its event if the form of the records does not tell the row
    file: str  #: name of the place's binlog file
    topic: str  #: topic of the record
    partition: int  #: partition of the record
    offset: int  #: offset of the record


@dataclass(slots=True)
class WrittenRecords:
    """The records that topics hold behind a place."""

    ends: list[PartitionEnd] = field(default_factory=list)  #: partitions with records behind the place
    keyless: list[Keyless] = field(default_factory=list)  #: records without a key
    last: LastRecord | None = None  #: last record of all; None for none
    keyed: list[LastRecord] = field(default_factory=list)  #: of each of `ends` the last record with a key
    #: topic, partition and last offset of partitions in which a connector has begun to repeat records, and ended before
    #: it had repeated all of them
    cut: list[tuple[str, int, int]] = field(default_factory=list)
    #: number of records behind the ends whose places are unknown, by topic
    unplaced: dict[str, int] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)  #: number of a binlog file -> its name
    truncations: set[tuple[str, int]] = field(default_factory=set)  #: (file, pos) of the TRUNCATEs with a record
    #: topic, partition and offset of the first record whose key chooses another partition, in each such partition
    astray: list[tuple[str, int, int]] = field(default_factory=list)


def written_records(
    client: ClientSettings,
    forms: Mapping[str, PlaceForm],
    keys: Mapping[str, KeyForm],
    seconds: int,
    least: RecordPlace,
    delivered: GtidSet,
    offset: RecordPlace,
) -> WrittenRecords:
    """Return what the topics hold behind the place `least`.

    `forms` and `keys`: form of the records and of their keys, by topic. `seconds`: time of the event at that place, in
    seconds since 1970; 0 reads the topics from their beginning. `delivered`: transactions before that place. `offset`:
    file and position of the connector's offset; `least` is behind it if this file is purged, and before it within an XA
    transaction. Raise ConfigError if a topic has records of another form.
    """
    written, greatest = WrittenRecords(), least
    of_offset: dict[str, OffsetEvent] = {}
    counts = partition_counts(admin_client(client), forms)
    for part in parts_since(client, counts, seconds):
        form = forms[part.topic]
        reading = PartitionReading(part, least, is_exact=form.is_exact)
        for _, messages in messages_of(client, [part]):
            records = with_earlier(record_places(messages, form), delivered, min(offset, least))
            reading.add(records)
            astray = _first_astray(_keyed_behind(records, least), part, keys[part.topic], counts[part.topic])
            if astray is not None and (not written.astray or written.astray[-1][:2] != (part.topic, part.partition)):
                written.astray.append((part.topic, part.partition, astray))
        written.files |= reading.files
        written.truncations |= reading.truncations
        if reading.last is not None and reading.last[0] >= greatest:
            greatest, at = reading.last
            written.last = LastRecord(greatest, reading.files[greatest.file], part.topic, part.partition, at)
        # Records before the offset do not come again, whatever their order is.
        most = reading.greatest
        if reading.keyed is not None and most is not None and most >= least and most > reading.keyed[0]:
            written.cut.append((part.topic, part.partition, reading.keyed[1]))
        if reading.keyed is not None and reading.end is not None and reading.end > least:
            written.ends.append(PartitionEnd(part.topic, part.partition, reading.end))
            place, at = reading.keyed
            written.keyed.append(LastRecord(place, reading.files[place.file], part.topic, part.partition, at))
        written.unplaced[part.topic] = written.unplaced.get(part.topic, 0) + reading.unplaced
        of_offset[part.topic] = of_offset.get(part.topic, OffsetEvent()) + reading.of_offset
        if behind := {each for each in reading.keyless if RecordPlace(*each) >= least}:
            written.keyless.append(Keyless(part.topic, tuple(sorted(behind))))
    written.unplaced = again(written.unplaced, of_offset, least.row, {each for each in forms if forms[each].drops_rows})
    if sum(len(each.places) for each in written.keyless) > _MOST_KEYLESS:
        raise ConfigError(
            f"the topics have more than {_MOST_KEYLESS:,} records without a key behind the connector's offset",
            TOO_MANY_KEYLESS,
        )
    return written


def again(
    unplaced: Mapping[str, int], of_offset: Mapping[str, OffsetEvent], row: int, dropping: Collection[str]
) -> dict[str, int]:
    """Return how many records of each topic come again.

    `unplaced`: number of records behind the ends, of which `of_offset` are those of the offset's event. The job leaves
    out the event's rows before number `row`. `dropping`: topics in which some rows have no record, so that a number of
    records tells nothing of a row.
    """
    # An event is of one table. Its deletions may have a topic of their own.
    whole = sum(of_offset.values(), OffsetEvent())
    counts = {
        topic: count if topic in dropping else count - replace(whole, again=of_offset[topic].again).covered(row)
        for topic, count in unplaced.items()
    }
    return {topic: count for topic, count in counts.items() if count}


def _keyed_behind(records: RecordBatch, least: RecordPlace) -> RecordBatch:
    """Return the changes with a key whose event is not before `least`."""
    is_change = pc.is_in(records.column("state"), pa.array([ROW, DELETION], pa.int8()))
    is_event = pc.and_not(is_change, records.column("is_snapshot"))
    is_behind = pc.and_(records.column("file").is_valid(), pc.invert(_before(records, least)))
    return records.filter(pc.and_(pc.and_(is_event, is_behind), records.column("key").is_valid()))


def _first_astray(keyed: RecordBatch, part: PartitionPart, form: KeyForm, partitions: int) -> int | None:
    """Return the offset of the first record whose key chooses another partition than its own; None for none.

    Raise ConfigError for a key of another form.
    """
    keys, offsets = keyed.column("key"), keyed.column("offset").to_numpy()
    strange = offsets[form.strange(keys, partitions)]
    if len(strange):
        raise ConfigError(
            f"{part.topic}: the record at offset {strange[0]} of partition {part.partition} has a key of another form"
            " than the file describes",
            "Check key.converter, transforms and incsnap.debezium.version in the connector's file, and give the"
            " worker's file with --worker.",
        )
    astray = offsets[partition(keys, partitions) != part.partition]
    return int(astray[0]) if len(astray) else None


def with_earlier(records: RecordBatch, delivered: GtidSet, offset: RecordPlace) -> RecordBatch:
    """Return records with a place before all others for those that are before the connector's offset.

    These are records of `delivered` transactions. Those from before a failover have places of another server, which
    have no order with the places of this one. An unwrapped row has no GTID. It is earlier if its place is before
    `offset`, of which the file and the position count.
    """
    gtids = records.column("gtid").dictionary_encode()
    among = pa.array([_is_among(gtid, delivered) for gtid in gtids.dictionary.to_pylist()], pa.bool_())
    is_unwrapped_before = pc.and_(_before(records, offset), records.column("gtid").is_null())
    is_earlier = pc.or_(among.take(gtids.indices).fill_null(False), is_unwrapped_before)
    if not pc.any(is_earlier).as_py():
        return records
    for name, value in (("file", ""), ("pos", 0), ("row_number", 0)):
        at = records.schema.get_field_index(name)
        earlier = pc.if_else(is_earlier, value, records.column(name)).cast(records.schema.field(at).type)
        records = records.set_column(at, records.schema.field(at), earlier)
    return records


def _before(records: RecordBatch, offset: RecordPlace) -> Array:
    """Return a mask of the records whose place is before `offset`, of which the file and the position count."""
    names = records.column("file").dictionary_encode()
    numbers = pa.array([file_number(name) for name in names.dictionary.to_pylist()], pa.int64()).take(names.indices)
    in_file = pc.and_(pc.equal(numbers, offset.file), pc.less(records.column("pos"), offset.pos))
    return pc.or_(pc.less(numbers, offset.file), in_file).fill_null(False)


def _is_among(gtid: str, delivered: GtidSet) -> bool:
    source, _, number = gtid.rpartition(":")
    server, _, tag = source.lower().partition(":")
    return number.isdecimal() and ((server, tag), int(number)) in delivered


def parts_since(client: ClientSettings, counts: Mapping[str, int], seconds: int) -> Iterable[PartitionPart]:
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
    here = {(file_number(file), pos) for file, pos in places if is_in_binlog((file, pos), upto)}
    return tuple(sorted(place for place in here if RecordPlace(*place) >= least))


def is_in_binlog(place: tuple[str, int], upto: tuple[str, int]) -> bool:
    """Whether a place is in the files of the server whose binlog ends at `upto`."""
    (file, pos), (newest, end) = place, upto
    return base_name(file) == base_name(newest) and (file_number(file), pos) < (file_number(newest), end)
