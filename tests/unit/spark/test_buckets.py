"""The number of buckets, and so of sink tasks, of a new job."""

from __future__ import annotations

import pytest

from incsnap.spark.job import buckets_for


@pytest.mark.parametrize(
    ("partitions", "slots", "expected"),
    [(-1, 2, 1), (1, 2, 1), (2, 2, 2), (8, 2, 2), (1, 1, 1), (1, 8, 4), (3, 8, 4), (6, 8, 6), (100, 8, 8)],
)
def test_there_are_no_more_buckets_than_can_be_busy(partitions: int, slots: int, expected: int) -> None:
    assert buckets_for(partitions, slots) == expected
