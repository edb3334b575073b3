"""Tests of the calls to librdkafka: one for all records of a partition, and one for each record that has headers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from incsnap.kafka.outgoing_messages import OutgoingMessages, SingleRecord
from incsnap.kafka.record_headers import OLD_KEY


def records(partitions: Sequence[int], old_keys: Sequence[bytes | None] = ()) -> pa.RecordBatch:
    n = len(partitions)
    return pa.RecordBatch.from_pydict(
        {
            "partition": pa.array(partitions, pa.int32()),
            "key": pa.array([b"key%d" % number for number in range(n)], pa.binary()),
            "value": pa.array([b"value%d" % number for number in range(n)], pa.binary()),
            "old_key": pa.array(old_keys or [None] * n, pa.binary()),
            "new_key": pa.nulls(n, pa.binary()),
        }
    )


def test_a_call_takes_all_of_one_topic_and_partition() -> None:
    messages = OutgoingMessages([("a", 3), ("b", 2)], records([1, 0, 1, 1, 1]))

    assert messages.calls() == [("a", 0, 1), ("a", 1, 3), ("b", 3, 5)]
    assert messages.array["partition"].tolist() == [0, 1, 1, 1, 1]


def test_a_message_with_headers_goes_alone_and_in_its_place() -> None:
    messages = OutgoingMessages([("a", 4)], records([0, 1, 0, 0], [None, None, b"old", None]))

    assert messages.calls() == [("a", 0, 1), ("a", 1, 2), ("a", 2, 3), ("a", 3, 4)]
    assert messages.alone == {1}
    assert messages.single(1) == SingleRecord(0, b"key2", b"value2", [(OLD_KEY, b"old")])
