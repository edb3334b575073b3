"""Hashes of whole columns of byte strings: 64 bits to compare values, and CRC32, which MySQL computes too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from incsnap.columns.arrow import BytesArray
from incsnap.columns.packets import KEEP, PAD, Packets, Spans
from incsnap.columns.variable import split

Hashes = npt.NDArray[np.uint64]

#: Odd numbers, so that a multiplication loses nothing. The two factors are those of MurmurHash3's last step.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(33)
_MASK = (1 << 64) - 1
#: Words that are mixed at once, 256 KiB, which the processor's cache holds.
_TOGETHER = 32_768
#: The greatest number of 16 bits.
_NARROW = (1 << 16) - 1


def spans_of(column: BytesArray) -> Spans:
    """Return where the values of a binary or string array lie. A null has length 0.

    The bytes are copied, unless at least PAD bytes follow the last value.
    """
    offsets, data = split(column)
    is_padded = len(data) >= int(offsets[-1]) + PAD
    begin = offsets[:-1].astype(np.int64)
    length = np.diff(offsets).astype(np.int64)
    if column.null_count:
        length[np.asarray(column.is_null().to_numpy(zero_copy_only=False))] = 0
    return Spans(Packets.padded(data) if is_padded else Packets.of(data.data), begin, length)


def hash64(column: BytesArray | Spans, seed: int = 0) -> Hashes:
    """Return a hash of 64 bits for each value of a binary array, or of spans; a null has that of no bytes.

    Two unequal values have equal hashes once in 2**64 pairs. This holds for chance, not against somebody who looks for
    such a pair: give a `seed` that nobody knows. Values that differ in eight aligned bytes only never have equal
    hashes.

    Each word is mixed with its place in the value, and the mixed words are added. So a group of values with equally
    many words is one matrix.
    """
    spans = column if isinstance(column, Spans) else spans_of(column)
    length = spans.lengths
    hashes = length.astype(np.uint64)
    hashes *= _GOLDEN
    hashes ^= np.uint64(seed & _MASK)
    counts = (length + 7) >> 3
    for count, rows in _groups(counts):
        places = _places(count, seed)
        step = max(1, _TOGETHER // count)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            hashes[some] += _mixed(_words(spans, count, some), places)
    _finish(hashes)
    return hashes


def _groups(counts: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield each count but 0, and the indexes of its values."""
    # NumPy sorts 16 bits in a fifth of the time of 64.
    narrow = counts.astype(np.uint16) if len(counts) and int(counts.max()) <= _NARROW else counts
    order = np.argsort(narrow, kind="stable")
    values, begin = np.unique(narrow[order], return_index=True)
    for count, rows in zip(values.tolist(), np.split(order, begin[1:]), strict=True) if len(values) else ():
        if count:
            yield count, rows


def _words(spans: Spans, count: int, rows: npt.NDArray[np.int64]) -> Hashes:
    """Return the values at the indexes `rows` as lines of `count` words. Zero bytes fill the last word of each."""
    packets = spans.packets
    # One element of NumPy for each value: it copies the whole value at once.
    values = np.ndarray((len(packets.data) - 8 * count + 1,), f"V{8 * count}", packets.data.data, strides=(1,))
    words = values[spans.start[rows]].view("<u8").reshape(len(rows), count)
    words[:, -1] &= KEEP[spans.lengths[rows] - 8 * (count - 1)]
    return words


def _places(count: int, seed: int) -> Hashes:
    """Return a number for each of `count` places in a value."""
    places = np.arange(1, count + 1, dtype=np.uint64)
    places += np.uint64(seed & _MASK)
    _finish(places)
    return places


def _mixed(words: Hashes, places: Hashes) -> Hashes:
    """Return the sum of the mixed words of each row of `words`."""
    mixed = words ^ places
    _finish(mixed)
    summed: Hashes = mixed.sum(axis=1, dtype=np.uint64)
    return summed


def _finish(hashes: Hashes) -> None:
    """Spread each bit of a hash over all of its bits. This loses nothing.

    With one multiplication less, changes of the highest bits of two words cancel each other.
    """
    for factor in _FACTORS:
        hashes ^= hashes >> _SHIFT
        hashes *= factor
    hashes ^= hashes >> _SHIFT


def sorting(hashes: Hashes) -> npt.NDArray[np.int64]:
    """Return the order that sorts `hashes`. Equal ones stay in their order.

    It takes a third of the time of NumPy's stable sort, for most hashes occur once.
    """
    order = np.argsort(hashes)
    ordered = hashes[order]
    is_same = ordered[1:] == ordered[:-1]
    if is_same.any():
        tied = np.flatnonzero(np.append(is_same, False) | np.append(False, is_same))
        order[tied] = order[tied][np.lexsort((order[tied], ordered[tied]))]
    return order


def crc32(column: BytesArray) -> npt.NDArray[np.uint32]:
    """Return the CRC32 of each value, as `zlib.crc32` and MySQL's CRC32() compute it. A null has that of no bytes.

    It takes a step for each byte, so it is for keys.
    """
    spans = spans_of(column)
    length = spans.lengths
    order = np.argsort(-length, kind="stable")
    at, length = spans.start[order], length[order]
    most = int(length[0]) if len(length) else 0
    active = np.searchsorted(-length, -np.arange(most), side="left").tolist()
    crcs = np.full(len(length), 0xFFFFFFFF, np.uint32)
    for count in active:
        head = crcs[:count]
        index = (head & np.uint32(0xFF)) ^ spans.packets.data[at[:count]]
        head >>= np.uint32(8)
        head ^= _CRC_TABLE[index]
        at[:count] += 1
    crcs ^= np.uint32(0xFFFFFFFF)
    result = np.empty_like(crcs)
    result[order] = crcs
    return result


def _crc_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> np.uint32(1)), table >> np.uint32(1))
    return table.astype(np.uint32)


_CRC_TABLE = _crc_table()
