"""MySQL's length-encoded integers: one byte below 251, otherwise a marker and the number in 2, 3 or 8 bytes,
little-endian.

The text protocol uses 251, the first byte that is no number, for NULL. This module reads such integers one at a time;
`cursors` reads them for whole columns.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_dt_integers.html
"""

from __future__ import annotations

#: Bytes from this one on are no numbers. This one is NULL in the text protocol, and damage elsewhere.
NULL = 0xFB
#: Marker -> how many bytes the number behind it has.
WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def length_encoded(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins at `at`, and the position behind it.

    Raise ValueError if `data` ends before the number does, or if no number begins with the byte at `at`.
    """
    if at >= len(data):
        raise ValueError("a length-encoded integer ends too early")
    first = data[at]
    if first < NULL:
        return first, at + 1
    if first not in WIDTHS:
        raise ValueError(f"{first:#x} begins no length-encoded integer")
    end = at + 1 + WIDTHS[first]
    if end > len(data):
        raise ValueError("a length-encoded integer ends too early")
    return int.from_bytes(data[at + 1 : end], "little"), end
