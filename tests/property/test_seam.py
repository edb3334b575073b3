"""Tests of the seam against a modelled connector: what the topics have is left out, and nothing else.

The connector writes the records of a log in order. It dies at any moment, when each partition has come to another
record, perhaps between a deletion and its tombstone. It may start again at an earlier place, write records again, and
die before it has written all of them again. All records of a row have the offset behind the row, so its last offset may
have been written when the topics had the row's first record only.
Each mutant replaces a rule by a wrong one, and must break.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from incsnap.envelope.record_images import DELETE, INSERT, TOMBSTONE, UPDATE
from incsnap.envelope.seam import Keyless, PartitionEnd, Places, RecordPlace, Seam
from incsnap.takeover.partition_reading import PartitionReading, sent_before
from incsnap.verify.record_reading import DELETION, ROW
from incsnap.verify.record_reading import TOMBSTONE as TOMBSTONE_STATE
from incsnap.verify.topic_side import TOPIC_RECORDS, PartitionPart
from tests.property.hypothesis_random import RANDOMS

_PARTITIONS = 3
#: The records of an insertion, an update, a deletion, and an update that changes the key.
_CHANGES = ((INSERT,), (UPDATE,), (DELETE, TOMBSTONE), (DELETE, TOMBSTONE, INSERT))
#: The topics of a table with a key, of one without a key, and of two tables of which one has a key.
_TOPICS = ("keyed", "keyless", "mixed")
_STATES = {INSERT: ROW, UPDATE: ROW, DELETE: DELETION, TOMBSTONE: TOMBSTONE_STATE}


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the log."""

    file: int
    pos: int
    row: int
    op: int
    key: bytes | None
    topic: int  #: index in _TOPICS
    partition: int  #: the partition of the record's key; any for a record without a key


def log_of(rng: random.Random) -> list[Record]:
    """Return the records of a random log, in order."""
    records = []
    pos, file = 4, 9
    for _ in range(rng.randint(1, 12)):
        if rng.random() < 0.1:
            file, pos = file + 1, 4
        topic = rng.choice((0, 0, 0, 1, 2, 2))
        has_key = topic == 0 or (topic == 2 and rng.random() < 0.5)
        for row in range(rng.randint(1, 3)):
            old, new = (bytes([rng.randrange(6)]) for _ in range(2))
            change = rng.choice(_CHANGES if has_key else ((INSERT,), (UPDATE,), (DELETE,)))
            for op in change:
                key = None if not has_key else new if op == INSERT else old
                # Kafka's producer puts a record without a key into any partition.
                number = (key or rng.randbytes(1))[0] % _PARTITIONS
                records.append(Record(file, pos, row, op, key, topic, number))
        pos += rng.randint(1, 50)
    return records


def run(rng: random.Random) -> None:
    """Let a connector die in a random log, and check which records the seam leaves out."""
    log = log_of(rng)
    # The offset is at the beginning of a row.
    begins = [at for at, each in enumerate(log) if at == 0 or row_of(each) != row_of(log[at - 1])] + [len(log)]
    partitions = [(topic, number) for topic in range(len(_TOPICS)) for number in range(_PARTITIONS)]
    written: dict[tuple[int, int], list[Record]] = {partition: [] for partition in partitions}
    offset = 0
    lives = rng.randint(1, 4)
    for life in range(lives):
        # All that is before an offset is in the topics when the offset is written. A restart goes on behind the row.
        offsets = range(len(log) + 1) if life == lives - 1 else begins
        begin, offset = offset, rng.choice([each for each in offsets if each >= offset])
        for partition in written:
            end = rng.randint(offset, len(log))
            written[partition] += [each for each in log[begin:end] if (each.topic, each.partition) == partition]
    file, pos, row = row_of(log[offset - 1]) if offset else (0, 0, 0)
    least = RecordPlace(file, pos, row + 1)
    seam = seam_of(rng, written, least)

    places = Places.of(
        pa.array([f"binlog.{each.file:06}" for each in log], pa.string()),
        np.array([each.pos for each in log]),
        np.array([each.row for each in log]),
        np.array([each.op for each in log], np.uint8),
    )
    # The job names the topic of each table: two tables have the last one.
    topics = np.array([each.topic + (each.topic == 2 and each.key is None) for each in log])
    numbers = np.array([-1 if each.key is None else each.partition for each in log], np.int32)
    left_out = seam.has([*_TOPICS, _TOPICS[2]], topics, numbers, places)
    assert left_out.tolist() == [is_there(each, written[each.topic, each.partition], log) for each in log]
    for partition, records in written.items():
        sent = [each for each, out in zip(log, left_out, strict=True) if not out]
        records += [each for each in sent if (each.topic, each.partition) == partition]
    assert last_of_keys(written) == last_of_keys({(0, 0): log})
    assert all(RecordPlace(*row_of(each)) < seam.last for each, out in zip(log, left_out, strict=True) if out)


def many_runs() -> None:
    """Run with many seeds."""
    for seed in range(3_000):
        run(random.Random(seed))


def is_there(record: Record, written: list[Record], log: list[Record]) -> bool:
    """Whether a partition has the record, and no repetition that was cut short has thrown its key back behind it.

    A repetition throws back the whole partition. Records without a key have no order to lose.
    """
    if record.key is None:
        return any(each is record for each in written)
    at = {id(each): number for number, each in enumerate(log)}
    keyed = [each for each in written if each.key is not None]
    return bool(keyed) and at[id(record)] <= at[id(keyed[-1])]


def last_of_keys(written: dict[tuple[int, int], list[Record]]) -> dict[tuple[int, bytes], Record]:
    """Return the last record of each topic's key, which a consumer holds."""
    return {(each.topic, each.key): each for records in written.values() for each in records if each.key is not None}


def row_of(record: Record) -> tuple[int, int, int]:
    """Return the place of the record's row."""
    return record.file, record.pos, record.row


def seam_of(rng: random.Random, written: dict[tuple[int, int], list[Record]], least: RecordPlace) -> Seam:
    """Return the seam that the partitions show. They are read in batches of random sizes."""
    ends, keyless, readings = [], [], []
    for (topic, number), records in written.items():
        name = _TOPICS[topic]
        reading = PartitionReading(PartitionPart(name, number, 0, len(records)), least)
        at = 0
        while at < len(records):
            size = rng.randint(1, 8)
            reading.add(batch_of(records[at : at + size], at))
            at += size
        readings.append(reading)
        if reading.end is not None:
            ends.append(PartitionEnd(name, number, reading.end))
        if reading.keyless:
            keyless.append(Keyless(name, tuple(sorted(reading.keyless))))
    return Seam("server", sent_before(least, readings), tuple(ends), tuple(keyless))


def batch_of(records: list[Record], at: int) -> pa.RecordBatch:
    """Return records as the topic side reads them. Tombstones have no place."""
    rows = [
        {
            "topic": "t",
            "key": each.key,
            "partition": each.partition,
            "offset": at + number,
            "time": 0,
            "state": _STATES[each.op],
            "row": b"{}" if _STATES[each.op] == ROW else None,
            "is_snapshot": False,
            "file": None if each.op == TOMBSTONE else f"binlog.{each.file:06}",
            "pos": None if each.op == TOMBSTONE else each.pos,
            "row_number": None if each.op == TOMBSTONE else each.row,
        }
        for number, each in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=TOPIC_RECORDS)


@given(rng=RANDOMS)
def test_the_seam_leaves_out_what_the_topics_have_and_nothing_else(rng: random.Random) -> None:
    run(rng)


def _ignore_tombstones(self: PartitionReading, batch: pa.RecordBatch) -> None:
    """A wrong rule: a tombstone says nothing."""


def _greatest_counts(self: PartitionReading, events: pa.RecordBatch) -> None:
    """A wrong rule: the greatest place of a partition counts, not the last one."""
    before = self.end
    _ADD_EVENTS(self, events)
    if self.end is not None and self.greatest is not None:
        self.end = max(self.greatest.next, before or self.end)


def _keyless_hides_the_end(self: PartitionReading, events: pa.RecordBatch) -> None:
    """A wrong rule: a batch in which a record has no key does not move the end."""
    before = self.end
    _ADD_EVENTS(self, events)
    if events.column("key").null_count:
        self.end = before


_ADD_EVENTS = PartitionReading._add_events


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_add_tombstones", _ignore_tombstones),
        ("_add_events", _greatest_counts),
        ("_add_events", _keyless_hides_the_end),
    ],
    ids=["tombstones", "greatest", "keyless"],
)
def test_a_wrong_rule_is_caught(name: str, wrong: Callable[..., None]) -> None:
    with patch.object(PartitionReading, name, wrong), pytest.raises(AssertionError):
        many_runs()
