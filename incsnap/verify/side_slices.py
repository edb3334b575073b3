"""Slices of kept sides: the rows or records of all keys whose hashes lie in a range."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import RecordBatch
from incsnap.columns.hashing import Hashes
from incsnap.verify.kept_sides import KeptSides
from incsnap.verify.topic_side import PartitionPart

Offsets = npt.NDArray[np.int64]

_ALL = 1 << 64


class SideSlices:
    """The slices of the parts `numbers` of a side. `bounds`: the least and the greatest hash of a key."""

    def __init__(self, sides: KeptSides, side: str, numbers: Sequence[int], bounds: tuple[int, int]) -> None:
        self._sides, self._side, self._numbers = sides, side, numbers
        self._begins: list[int] = []
        self._columns: dict[str, list[npt.NDArray[Any]]] = {}
        counts = []
        for number in numbers:
            with sides.block(side, number) as (batch, _):
                hashes = batch.column("key_hash").to_numpy()
                begin = int(np.searchsorted(hashes, np.uint64(bounds[0]), "left"))
                end = int(np.searchsorted(hashes, np.uint64(bounds[1]), "right"))
                own = batch.slice(begin, end - begin)
                for name in own.schema.names[1:]:
                    # A copy, because the memory map ends here.
                    values = own.column(name).to_numpy(zero_copy_only=False).copy()
                    self._columns.setdefault(name, []).append(values)
            self._begins.append(begin)
            counts.append(end - begin)
        self.counts = np.array(counts, np.int64)  #: rows or records of each part

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column of all parts, one after the other."""
        parts = self._columns.pop(name, [])
        return np.concatenate(parts) if parts else np.zeros(0, np.uint64 if name.endswith("hash") else np.int64)

    def keys(self, indexes: npt.NDArray[Any]) -> list[bytes]:
        """Return the keys at these indexes of the columns."""
        keys = [b""] * len(indexes)
        ends = np.cumsum(self.counts)
        owners = np.searchsorted(ends, indexes, "right")
        for owner in np.unique(owners).tolist():
            places = np.flatnonzero(owners == owner)
            at = indexes[places] - (ends[owner] - self.counts[owner]) + self._begins[owner]
            with self._sides.block(self._side, self._numbers[owner]) as (batch, _):
                taken = batch.column("key").take(pa.array(at)).to_pylist()
            for place, key in zip(places.tolist(), taken, strict=True):
                keys[place] = key
        return keys


def hash_ranges(count: int) -> list[tuple[int, int]]:
    """Return `count` ranges of hashes of the same size, each as its least and its greatest hash."""
    edges = [_ALL * number // count for number in range(count + 1)]
    return [(least, above - 1) for least, above in pairwise(edges)]


def offsets_of(batch: RecordBatch, hashes: Hashes) -> Offsets:
    """Return the offsets of the records of a block whose keys have one of `hashes`, sorted. `hashes` are sorted too."""
    own = batch.column("key_hash").to_numpy()
    begin, end = (np.searchsorted(own, hashes, side) for side in ("left", "right"))
    counts = end - begin
    behind = np.cumsum(counts)
    places = np.arange(int(behind[-1]) if len(behind) else 0) + np.repeat(begin - (behind - counts), counts)
    return np.sort(batch.column("offset").to_numpy()[places])


def spread(part: PartitionPart, offsets: Offsets, gap: int) -> list[tuple[PartitionPart, Offsets]]:
    """Return the parts of `part` that have sorted `offsets`, with these. Between two parts lie at least `gap` offsets.

    >>> [each.begin for each, _ in spread(PartitionPart("orders", 0, 0, 100), np.array([3, 5, 90]), 20)]
    [3, 90]
    """
    groups = np.split(offsets, np.flatnonzero(np.diff(offsets) > gap) + 1) if len(offsets) else []
    return [(PartitionPart(part.topic, part.partition, int(group[0]), int(group[-1]) + 1), group) for group in groups]
