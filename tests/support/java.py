"""Java's behaviour, written from its documentation."""

from __future__ import annotations


def java_bytes(number: int) -> bytes:
    """Return the number as `BigInteger.toByteArray` does."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
