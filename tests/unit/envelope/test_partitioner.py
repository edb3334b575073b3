"""Kafka's murmur2 over whole columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.envelope.partitioner import bucket_of, murmur2, partition

#: The vectors of Kafka's own tests.
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def slow_murmur2(key: bytes) -> int:
    """Word by word, as the Java method does it, on one key."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for place in range(0, whole, 4):
        k = int.from_bytes(key[place : place + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    if len(key) > whole:
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def test_the_known_vectors_are_met_alone_and_together() -> None:
    together = murmur2(pa.array(list(KNOWN), pa.binary())).view(np.int32).tolist()
    assert together == list(KNOWN.values())
    for key, value in KNOWN.items():
        assert murmur2(pa.array([key], pa.binary())).view(np.int32).tolist() == [value]


@given(st.lists(st.binary(max_size=30) | st.binary(min_size=100, max_size=200)), st.integers(0, 2))
def test_any_column_hashes_as_key_by_key(keys: list[bytes], skipped: int) -> None:
    column = pa.array([b"skipped"] * skipped + keys, pa.binary()).slice(skipped)
    assert murmur2(column).tolist() == [slow_murmur2(key) for key in keys]


@given(st.lists(st.none() | st.binary(max_size=20)), st.integers(1, 50))
def test_a_partition_is_what_a_java_producer_chooses_and_0_without_key(keys: list[bytes | None], count: int) -> None:
    expected = [0 if key is None else (slow_murmur2(key) & 0x7FFFFFFF) % count for key in keys]
    assert partition(pa.array(keys, pa.binary()), count).tolist() == expected


@pytest.mark.parametrize("buckets", [1, 2, 3, 7])
def test_partitions_of_a_topic_go_round_the_buckets(buckets: int) -> None:
    owners = bucket_of("shop.orders", np.arange(2 * buckets, dtype=np.int32), buckets)
    assert sorted(owners.tolist()) == sorted(list(range(buckets)) * 2)
    assert owners.dtype == np.int32
