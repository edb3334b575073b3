"""The records that a connector has written behind its offset, from the topics themselves.

Connect writes its offset once a minute, so the topics hold more than the offset says. After a crash some partitions
hold more than others. A connector that was restarted writes records again. If it is killed again before it has repeated
all of them, the last record of a key is older than an earlier one. So the last place in a partition counts, not the
greatest one: what lies between comes again, and the last record of each key is right then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message

from incsnap.columns.arrow import Array, RecordBatch
from incsnap.envelope.partitioner import partition
from incsnap.envelope.seam import Keyless, PartitionEnd, RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import base_name, file_number
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.takeover.key_forms import KeyForm
from incsnap.takeover.partition_parts import may_have_removed, ranges_since, tails_of
from incsnap.takeover.partition_reading import OffsetEvent, PartitionReading, sent_before
from incsnap.takeover.record_places import PlaceForm, record_places
from incsnap.verify.record_reading import DELETION, ROW
from incsnap.verify.topic_side import PartitionPart, messages_of

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

    least: RecordPlace  #: the place, as `sent_before` returns it
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
    removed: list[str] = field(default_factory=list)  #: topics of which Kafka may have removed records behind the place
    #: records of the event at the place, or of the compressed transaction there
    of_offset: OffsetEvent = field(default_factory=OffsetEvent)
    lacks_tombstone: bool = False  #: whether a partition ends with a deletion whose tombstone is missing

    def add(self, part: PartitionPart, reading: PartitionReading) -> None:
        """Add what the reading of a partition says of the records behind the place."""
        greatest = self.last.place if self.last is not None else self.least
        if reading.last is not None and reading.last[0] >= greatest:
            place, at = reading.last
            self.last = LastRecord(place, reading.files[place.file], part.topic, part.partition, at)
        # Records before the offset do not come again, whatever their order is.
        most = reading.greatest
        if reading.keyed is not None and most is not None and most >= self.least and most > reading.keyed[0]:
            self.cut.append((part.topic, part.partition, reading.keyed[1]))
        if reading.keyed is not None and reading.end is not None and reading.end > self.least:
            self.ends.append(PartitionEnd(part.topic, part.partition, reading.end))
            place, at = reading.keyed
            self.keyed.append(LastRecord(place, reading.files[place.file], part.topic, part.partition, at))
        if behind := {each for each in reading.keyless if RecordPlace(*each) >= self.least}:
            self.keyless.append(Keyless(part.topic, tuple(sorted(behind))))


def written_records(
    client: ClientSettings,
    forms: Mapping[str, PlaceForm],
    keys: Mapping[str, KeyForm],
    seconds: int,
    least: RecordPlace,
    delivered: GtidSet,
    offset: RecordPlace,
) -> WrittenRecords:
    """Return what the topics hold behind the place `least` of the offset.

    `forms` and `keys`: form of the records and of their keys, by topic. `seconds`: time of the event at that place, in
    seconds since 1970; 0 reads the topics from their beginning. `delivered`: transactions before that place. `offset`:
    file and position of the connector's offset; `least` is behind it if this file is purged, and before it within an XA
    transaction. Raise ConfigError if a topic has records of another form.
    """
    written, readings = WrittenRecords(least), list[tuple[PartitionPart, PartitionReading]]()
    of_offset: dict[str, OffsetEvent] = {}
    counts = partition_counts(admin_client(client), forms)
    ranges = ranges_since(client, counts, seconds)
    tails = tails_of(client, [each for each in ranges if each.is_quiet])
    for range_ in ranges:
        part, form, key_form = range_.part, forms[range_.part.topic], keys[range_.part.topic]
        if range_.is_emptied and may_have_removed(client, part.topic, seconds):
            written.removed.append(part.topic)
        tail = tails.get((part.topic, part.partition), [])
        if part.begin == part.end and not len(_behind(_placed(tail, form, delivered, min(offset, least)), least)):
            continue
        part = range_.tail if part.begin == part.end else part
        while True:
            astray = list[int]()
            since = None if form.has_others else range_.part.begin
            reading = PartitionReading(part, least, is_exact=form.is_exact, since=since)
            for _, messages in messages_of(client, [part]):
                records = _placed(messages, form, delivered, min(offset, least))
                reading.add(records)
                astray += _astray(_behind(records, least), part, key_form, counts[part.topic])
            # The part must begin before the offset, and the clocks may differ by more than the margin.
            if reading.first is None or reading.first < least or part.begin == range_.first:
                break
            part = range_.longer(part)
        if reading.keyless and part.begin == range_.first > 0:
            written.removed.append(part.topic)
        written.astray += [(part.topic, part.partition, each) for each in astray[:1]]
        written.files |= reading.files
        written.truncations |= reading.truncations
        written.unplaced[part.topic] = written.unplaced.get(part.topic, 0) + reading.unplaced
        of_offset[part.topic] = of_offset.get(part.topic, OffsetEvent()) + reading.of_offset
        readings.append((part, reading))
        is_behind = reading.keyed is not None and reading.keyed[0] >= least
        written.lacks_tombstone |= is_behind and reading.lacks_tombstone and form.has_tombstones
    written.least = sent_before(least, [reading for _, reading in readings])
    for part, reading in readings:
        written.add(part, reading)
    written.of_offset = sum(of_offset.values(), OffsetEvent())
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


def _placed(messages: Sequence[Message], form: PlaceForm, delivered: GtidSet, offset: RecordPlace) -> RecordBatch:
    """Return the records of `messages` with their places, as `with_earlier` gives them."""
    return with_earlier(record_places(messages, form), delivered, offset)


def _behind(records: RecordBatch, least: RecordPlace) -> RecordBatch:
    """Return the changes whose event is not before `least`."""
    is_change = pc.is_in(records.column("state"), pa.array([ROW, DELETION], pa.int8()))
    is_event = pc.and_not(is_change, records.column("is_snapshot"))
    return records.filter(
        pc.and_(pc.and_(is_event, records.column("file").is_valid()), pc.invert(_before(records, least)))
    )


def _astray(changes: RecordBatch, part: PartitionPart, form: KeyForm, partitions: int) -> list[int]:
    """Return the offsets of the records whose keys choose another partition than their own.

    Raise ConfigError for a key of another form.
    """
    keyed = changes.filter(changes.column("key").is_valid())
    keys, offsets = keyed.column("key"), keyed.column("offset").to_numpy()
    strange = offsets[form.strange(keys, partitions)]
    if len(strange):
        raise ConfigError(
            f"{part.topic}: the record at offset {strange[0]} of partition {part.partition} has a key of another form"
            " than the file describes",
            "Check key.converter, transforms and incsnap.debezium.version in the connector's file, and give the"
            " worker's file with --worker.",
        )
    return [int(each) for each in offsets[partition(keys, partitions) != part.partition]]


def with_earlier(records: RecordBatch, delivered: GtidSet, offset: RecordPlace) -> RecordBatch:
    """Return records with a place before all others for those that are before the connector's offset.

    These are records of `delivered` transactions. Those from before a failover have places of another server, which
    have no order with the places of this one. An unwrapped row has no GTID. It is earlier if its place is before
    `offset`, of which the file and the position count.
    """
    gtids = records.column("gtid").dictionary_encode()
    among = pa.array([is_among(gtid, delivered) for gtid in gtids.dictionary.to_pylist()], pa.bool_())
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


def is_among(gtid: str, delivered: GtidSet) -> bool:
    """Whether `delivered` has the transaction with this GTID; False for a text that is no GTID."""
    source, _, number = gtid.rpartition(":")
    server, _, tag = source.lower().partition(":")
    return number.isdecimal() and ((server, tag), int(number)) in delivered


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
