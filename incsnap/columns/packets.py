"""A block of packets as one byte array, from which NumPy can load numbers at any position.

Columns are gathered by loading one, two, four or eight bytes at thousands of positions with one NumPy call. A load is
eight bytes wide even if the value has one byte. So the block has 64 zero bytes behind its end, and no load from a
position inside the block can leave it. The widest packed decimal has 30 bytes; 64 is that rounded up, plus one load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

#: How many zero bytes stand behind the block.
PAD = 64
#: KEEP[n] has the low n bytes of a word set.
KEEP = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """A block of packets.

    `words[positions]` loads eight bytes at each position, for 3.5 ns an element. A position must be in `0..size`.
    `data.take(positions, mode="clip")` loads one byte each and clips any position into the array. `words` is a view of
    `data` with a stride of one byte.
    """

    data: Bytes  #: `data[:size]` is the block, `data[size:]` the padding
    size: int  #: bytes of the block
    words: NDArray[np.uint64]  #: `words[i]` is the little-endian uint64 at byte `i`

    @classmethod
    def of(cls, payload: bytes | bytearray | memoryview | Packets) -> Packets:
        """Return the payload as Packets. It is copied once (about 0.02 ms per MB) to put the padding behind it.

        A payload that is Packets already is returned as it is.
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
        """Return `data` as Packets, without a copy.

        `data` is a contiguous uint8 array that ends with at least PAD bytes which are not part of the block.
        """
        size = len(data) - PAD
        words = np.ndarray((size + PAD - 7,), dtype="<u8", buffer=data.data, strides=(1,))
        return cls(data, size, words)


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The places of one column's values: element `i` is `data[start[i] : start[i] + length[i]]`."""

    packets: Packets  #: block that holds the values; `data` is its array
    start: Positions  #: first byte of each value; inside the block also for NULL
    length: Positions | int  #: bytes of each value, 0 for NULL; one number for a column of fixed width
    valid: Mask | None = None  #: False for NULL; None: no value is NULL

    def __len__(self) -> int:
        return len(self.start)

    @property
    def lengths(self) -> Positions:
        """Return the bytes of each value as an array."""
        if isinstance(self.length, int):
            return np.full(len(self.start), self.length, np.int64)
        return self.length
