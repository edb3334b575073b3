"""Tests of the order in which the records of keys are read again, and of the tasks that read parts."""

from __future__ import annotations

import random

import pyarrow as pa

from incsnap.verify.histories import History, in_order_of_keys, note_records
from incsnap.verify.part_jobs import _grouped
from incsnap.verify.proof import TopicKey
from incsnap.verify.record_reading import ROW
from incsnap.verify.topic_side import TOPIC_RECORDS


def records(*given: tuple[bytes, int, int, int]) -> pa.Table:
    """Return rows with these keys, partitions, offsets and times."""
    listed = [
        {"topic": "t", "key": key, "partition": partition, "offset": offset, "time": time, "state": ROW,
         "row": b"%d/%d" % (partition, offset), "is_snapshot": False, "file": "log.000001", "pos": 1, "row_number": 0}
        for key, partition, offset, time in given
    ]  # fmt: skip
    return pa.Table.from_pylist(listed, TOPIC_RECORDS)


def last_rows(table: pa.Table) -> dict[bytes, bytes | None]:
    histories: dict[TopicKey, History] = {}
    for batch in in_order_of_keys(table).to_batches():
        note_records(batch, histories)
    return {key: history.record.row for (_, key), history in histories.items() if history.record is not None}


def test_the_partition_with_the_newest_last_record_has_the_last_record_of_a_key() -> None:
    table = records(
        (b"a", 0, 1, 90), (b"b", 0, 2, 10), (b"a", 0, 3, 50), (b"a", 1, 7, 40), (b"b", 1, 9, 20), (b"c", 1, 11, 1)
    )

    assert last_rows(table) == {b"a": b"0/3", b"b": b"1/9", b"c": b"1/11"}


def test_random_records_have_the_last_one_that_a_slow_search_finds() -> None:
    chance = random.Random(3)
    for _ in range(200):
        given = sorted(
            (chance.randrange(3), offset, chance.choice((b"a", b"b", b"c")), chance.randrange(5))
            for offset in range(12)
        )
        expected = {}
        for key in {each[2] for each in given}:
            ends = {each[0]: each for each in given if each[2] == key}
            partition, offset, _, _ = max(ends.values(), key=lambda each: (each[3], each[0]))
            expected[key] = b"%d/%d" % (partition, offset)

        assert last_rows(records(*((key, part, offset, time) for part, offset, key, time in given))) == expected


def test_small_parts_share_a_task_and_large_ones_have_their_own() -> None:
    parts = list(enumerate([3, 4, 50, 1, 9, 1]))

    assert _grouped(parts, lambda each: each, 10) == [parts[:2], parts[2:3], parts[3:5], parts[5:]]
    assert _grouped([], len, 10) == []
