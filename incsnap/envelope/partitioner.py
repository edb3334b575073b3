"""Which partition a key goes to: Kafka's murmur2, of a whole column of keys at once, and the bucket of a partition.

Equal to what a Java producer chooses (org.apache.kafka.common.utils.Utils.murmur2, the default partitioner), so that
a consumer that moves here from Debezium finds every key where it was. Keys advance in lock-step over their 4-byte
words; sorted by length, those that still have a word are the first ones.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from incsnap.columns.variable import dense

_SEED, _M, _R = np.uint32(0x9747B28C), np.uint32(0x5BD1E995), np.uint32(24)
_PAD = 8


def murmur2(keys: Any) -> npt.NDArray[np.uint32]:
    """The hash of each key (``pa.binary()`` or string); a null is hashed as an empty key."""
    offsets, data = dense(keys)
    start = offsets[:-1].astype(np.int64)
    length = np.diff(offsets).astype(np.int64)
    words = length >> 2
    data = np.concatenate([data, np.zeros(_PAD, np.uint8)])
    word_at = np.ndarray((len(data) - 3,), dtype="<u4", buffer=data.data, strides=(1,))
    hashes = _SEED ^ length.astype(np.uint32)
    order = None
    if len(words) and not bool((words == words[0]).all()):
        order = np.argsort(-words, kind="stable")
        start, length, words, hashes = start[order], length[order], words[order], hashes[order]
    # active[k]: how many keys have more than k words; the arrays are sorted so that they come first.
    most = int(words[0]) if len(words) else 0
    active = np.searchsorted(-words, -np.arange(most), side="left")
    for k in range(most):
        count = int(active[k])
        mixed = word_at[start[:count] + 4 * k]
        mixed *= _M
        mixed ^= mixed >> _R
        mixed *= _M
        head = hashes[:count]
        head *= _M
        head ^= mixed
    tail = length & 3
    rest = word_at[start + (words << 2)] & ((np.uint32(1) << (8 * tail).astype(np.uint32)) - np.uint32(1))
    hashes = np.where(tail > 0, (hashes ^ rest) * _M, hashes)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    if order is None:
        return hashes
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def partition(keys: Any, count: int | npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """The partition, 0 to ``count`` - 1, of each key; a null key goes to partition 0, so that a table without key
    keeps its order. ``count``: of the topic, or of each key's topic."""
    if keys.null_count == len(keys) or np.max(count) == 1:
        return np.zeros(len(keys), np.int32)
    chosen = ((murmur2(keys) & np.uint32(0x7FFFFFFF)) % np.asarray(count, np.uint32)).astype(np.int32)
    if keys.null_count:
        chosen[np.asarray(keys.is_null().to_numpy(zero_copy_only=False))] = 0
    return chosen


def bucket_of(topic: str, partitions: npt.NDArray[np.int32], buckets: int) -> npt.NDArray[np.int32]:
    """The bucket, 0 to ``buckets`` - 1, of each partition of ``topic``; topics of one partition spread over the
    buckets too."""
    return owners(partitions, crc(topic), buckets)


def crc(topic: str) -> int:
    """By which the partitions of topics are spread over the buckets."""
    return zlib.crc32(topic.encode())


def owners(partitions: npt.NDArray[np.int32], crcs: int | npt.NDArray[np.int64], buckets: int) -> npt.NDArray[np.int32]:
    """As ``bucket_of``, where each partition may have a topic of its own."""
    return ((partitions.astype(np.int64) + crcs % buckets) % buckets).astype(np.int32)
