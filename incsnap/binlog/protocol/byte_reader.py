"""Small events read field by field: integers of fixed and of encoded length, texts, with every bound checked."""

from __future__ import annotations

from incsnap.columns.length_encoded import length_encoded
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

    def length_encoded(self) -> int:
        """A length-encoded integer, which MySQL's binlog library calls packed."""
        try:
            number, self.at = length_encoded(self.data, self.at)
        except ValueError as problem:
            raise BinlogError(f"{self.what} is damaged: {problem}") from None
        return number

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise BinlogError(f"{self.what} is damaged: a name is not UTF-8") from None
