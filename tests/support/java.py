"""Java's ways, written from their descriptions."""

from __future__ import annotations


def java_bytes(number: int) -> bytes:
    """``BigInteger.toByteArray``."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
