"""The partition of each key, by Kafka's murmur2, and the bucket of each partition.

A key gets the partition that a Java producer chooses for it (org.apache.kafka.common.utils.Utils.murmur2, the default
partitioner). A consumer that moves here from Debezium then finds every key where it was.

All keys of a column advance together over their 4-byte words. The keys are sorted by length, so those that still have a
word come first.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from incsnap.columns.arrow import BytesArray
from incsnap.columns.variable import dense

_SEED, _M, _R = np.uint32(0x9747B28C), np.uint32(0x5BD1E995), np.uint32(24)
_PAD = 8


def murmur2(keys: BytesArray) -> npt.NDArray[np.uint32]:
    """Return the hash of each key (`pa.binary()` or string). A null is hashed as an empty key."""
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
    # active[k]: how many keys have more than k words. These keys come first.
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


def partition(keys: BytesArray, count: int | npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """Return the partition of each key, 0 to `count` - 1.

    A null key goes to partition 0, so that a table without a key keeps its order. `count`: how many partitions the
    topic has, or of each key the partitions of its topic.
    """
    if keys.null_count == len(keys) or np.max(count) == 1:
        return np.zeros(len(keys), np.int32)
    chosen = ((murmur2(keys) & np.uint32(0x7FFFFFFF)) % np.asarray(count, np.uint32)).astype(np.int32)
    if keys.null_count:
        chosen[np.asarray(keys.is_null().to_numpy(zero_copy_only=False))] = 0
    return chosen


def bucket_of(topic: str, partitions: npt.NDArray[np.int32], buckets: int) -> npt.NDArray[np.int32]:
    """Return the bucket of each partition of `topic`, 0 to `buckets` - 1.

    Topics with one partition are spread over the buckets too: the topic's checksum shifts its partitions.
    """
    return owners(partitions, crc(topic), buckets)


def crc(topic: str) -> int:
    """Return the checksum that spreads the partitions of different topics over the buckets."""
    return zlib.crc32(topic.encode())


def owners(partitions: npt.NDArray[np.int32], crcs: int | npt.NDArray[np.int64], buckets: int) -> npt.NDArray[np.int32]:
    """Return the bucket of each partition, as `bucket_of`, also for partitions of several topics.

    `crcs`: `crc` of the one topic, or of the topic of each partition.
    """
    return ((partitions.astype(np.int64) + crcs % buckets) % buckets).astype(np.int32)
