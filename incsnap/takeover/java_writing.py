"""A writer of serialised Java objects, for what a connector is to read: its offsets, and the keys of a snapshot.

https://docs.oracle.com/en/java/javase/17/docs/specs/serialization/protocol.html
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_MAGIC = bytes.fromhex("aced0005")
_NULL, _STRING, _LONG_STRING = b"\x70", b"\x74", b"\x7c"
#: Bytes of the longest text that is no long string.
_SHORT = 0xFFFF
#: `Object[]` and its description, up to the number of elements.
_OBJECTS = bytes.fromhex("757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870")
#: A Long and the descriptions of its classes, up to its value; and a Long that refers to them.
_FIRST_LONG = bytes.fromhex(
    "73"
    "72000e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c75657872"
    "00106a6176612e6c616e672e4e756d62657286ac951d0b94e08b0200007870"
)
_LONG = bytes.fromhex("7371007e")
#: `HashMap` and its description, with a load factor of 0.75 and no threshold, up to its block of sizes.
_MAP = bytes.fromhex(
    "737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900097468726573686f6c64"
    "78703f40000000000000"
)
_FIRST_BYTES = bytes.fromhex("757200025b42acf317f8060854e00200007870")
#: `byte[]` by its description, which is the third value of a map.
_BYTES = bytes.fromhex("7571007e0002")


def write_map(entries: Mapping[bytes, bytes | None]) -> bytes:
    """Return a serialised `HashMap<byte[], byte[]>`."""
    written = [_MAGIC, _MAP, b"\x77\x08", struct.pack(">ii", max(16, 2 * len(entries)), len(entries))]
    is_first = True
    for each in (part for entry in entries.items() for part in entry):
        if each is None:
            written.append(_NULL)
            continue
        written += [_FIRST_BYTES if is_first else _BYTES, struct.pack(">i", len(each)), each]
        is_first = False
    return b"".join((*written, b"\x78"))


def write_key(values: Sequence[int | str]) -> bytes:
    """Return a serialised `Object[]` of Long and String."""
    written = [_MAGIC, _OBJECTS, struct.pack(">i", len(values))]
    # The array and its class are the first two values. Each Long and each text is one, and a class too.
    handle, class_of_long = 2, None
    for value in values:
        if isinstance(value, str):
            text = _text(value)
            is_short = len(text) <= _SHORT
            written += [_STRING if is_short else _LONG_STRING, struct.pack(">H" if is_short else ">q", len(text)), text]
            handle += 1
        elif class_of_long is None:
            class_of_long = handle
            written += [_FIRST_LONG, struct.pack(">q", value)]
            handle += 3
        else:
            written += [_LONG, struct.pack(">H", class_of_long), struct.pack(">q", value)]
            handle += 1
    return b"".join(written)


def _text(text: str) -> bytes:
    """Return a text in Java's form of UTF-8: a character beyond U+FFFF is two surrogates of 3 bytes, NUL is 2 bytes."""
    utf_16 = text.encode("utf-16-be", "surrogatepass")
    units = (chr(unit) for (unit,) in struct.iter_unpack(">H", utf_16))
    return "".join(units).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
