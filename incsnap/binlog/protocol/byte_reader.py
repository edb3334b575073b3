"""Small events read field by field: integers, packed integers, texts, with every bound checked."""

from __future__ import annotations

from incsnap.columns.length_encoded import NULL, WIDTHS
from incsnap.errors import BinlogError


class ByteReader:
    """``what`` names the thing being read, for the error. All methods raise BinlogError at the end of the bytes."""

    __slots__ = ("at", "data", "what")

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.at = 0
        self.what = what

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise BinlogError(f"{self.what} is damaged: it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, size: int) -> None:
        self.take(size)

    def integer(self, size: int) -> int:
        """Little-endian, unsigned."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """MySQL's packed integer, which elsewhere is called length-encoded."""
        first = self.integer(1)
        if first < NULL:
            return first
        if first not in WIDTHS:
            raise BinlogError(f"{self.what} is damaged: {first:#x} begins no packed integer")
        return self.integer(WIDTHS[first])

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise BinlogError(f"{self.what} is damaged: a name is not UTF-8") from None
