"""MySQL's length-encoded integer: one byte below 251, else a marker and the number in 2, 3 or 8 bytes, little-endian.

The text protocol uses the first byte that is no number, 251, for NULL. ``cursors`` reads such integers for whole
columns; here they are read one at a time.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_dt_integers.html
"""

from __future__ import annotations

#: Bytes from here on are no number themselves; this one is NULL in the text protocol and damage elsewhere.
NULL = 0xFB
#: Marker -> bytes of the number behind it.
WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def length_encoded(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number that begins at ``at``, and the position behind it.

    Raises ``ValueError`` where ``data`` ends before the number does, and where no number begins with that byte.
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
