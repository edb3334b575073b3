"""A reader of small events, field by field: integers of fixed and of encoded length, and texts.

It checks every bound.
"""

from __future__ import annotations

from incsnap.columns.length_encoded import length_encoded
from incsnap.errors import BinlogError


class ByteReader:
    """A reader that moves forward through bytes. `what` names the event in errors.

    Each method that reads raises BinlogError if the bytes end too early.
    """

    __slots__ = ("at", "data", "what")

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.at = 0
        self.what = what

    @property
    def left(self) -> int:
        """Return how many bytes are left."""
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes. Raise BinlogError if fewer are left."""
        if size > self.left:
            raise BinlogError(f"{self.what} is damaged: it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, size: int) -> None:
        """Skip the next `size` bytes."""
        self.take(size)

    def integer(self, size: int) -> int:
        """Read a little-endian, unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def length_encoded(self) -> int:
        """Read a length-encoded integer, which MySQL's binlog library calls packed.

        Raise BinlogError if it is damaged.
        """
        try:
            number, self.at = length_encoded(self.data, self.at)
        except ValueError as problem:
            raise BinlogError(f"{self.what} is damaged: {problem}") from None
        return number

    def text(self, size: int) -> str:
        """Read a text of `size` bytes. Raise BinlogError if it is not UTF-8."""
        try:
            return self.take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise BinlogError(f"{self.what} is damaged: a name is not UTF-8") from None
