"""A block of packets as one byte array that NumPy can load from at any position.

Columns are gathered by loading one, two, four or eight bytes at thousands of positions with one NumPy call. A load is
eight bytes wide even where the value is one byte long, so the block carries 64 zero bytes behind its end: no load of
a position inside the block can leave it (64 = the widest packed decimal, 30 bytes, rounded up, and one load).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

#: Zero bytes behind the block.
PAD = 64


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """``data[:size]`` is the block, ``data[size:]`` the padding; ``words[i]`` is the little-endian uint64 at byte
    ``i``.

    ``words`` is a view with a stride of one byte: ``words[positions]`` costs 3.5 ns an element and copies nothing else.
    Index it only with positions in ``0..size``; ``data.take(positions, mode="clip")`` takes any position.
    """

    data: Bytes
    size: int
    words: NDArray[np.uint64]

    @classmethod
    def of(cls, payload: bytes | bytearray | memoryview | Packets) -> Packets:
        """The payload, copied once (about 0.02 ms per MB) to put the padding behind it. A Packets is returned as it
        is.
        """
        if isinstance(payload, Packets):
            return payload
        size = len(payload) if not isinstance(payload, memoryview) else payload.nbytes
        data = np.empty(size + PAD, np.uint8)
        data[:size] = np.frombuffer(payload, np.uint8)
        data[size:] = 0
        return cls.padded(data)

    @classmethod
    def padded(cls, data: Bytes) -> Packets:
        """``data``: a contiguous uint8 array that ends with at least PAD bytes which are not part of the block; it is
        not copied."""
        size = len(data) - PAD
        words = np.ndarray((size + PAD - 7,), dtype="<u8", buffer=data.data, strides=(1,))
        return cls(data, size, words)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Where the values of one column lie: element ``i`` is ``data[start[i] : start[i] + length[i]]``.

    ``length`` is one number for a column of fixed width. ``valid`` is False where the value is NULL, and None where
    no value of the column is. A NULL has a start inside the block and, where lengths are an array, length 0.
    """

    packets: Packets
    start: Positions
    length: Positions | int
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.start)

    @property
    def lengths(self) -> Positions:
        if isinstance(self.length, int):
            return np.full(len(self.start), self.length, np.int64)
        return self.length
