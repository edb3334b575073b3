"""JSON text of whole columns: the `Encoded` column, and the escaping of strings as Jackson (and so Debezium) does it.

Three kinds of characters are escaped: `"` and `\\`; control characters below 0x20, as \\b \\t \\n \\f \\r or \\u00XX
with capitals; and characters beyond U+FFFF, as the two halves of their surrogate pair (\\uD83D\\uDE00). All else stays
UTF-8. Most columns have none of them: such a column passes through unchanged, at 0.3 ns a byte for the check.
https://www.rfc-editor.org/rfc/rfc8259#section-7
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bytes, dense, split, valid, variable

_LETTERS = {8: b"b", 9: b"t", 10: b"n", 12: b"f", 13: b"r", ord('"'): b'"', ord("\\"): b"\\"}


def _escapes() -> tuple[Bytes, Bytes]:
    """Return two tables by byte: how many bytes the escape adds (0, 1 or 5), and the escape itself in 6 columns."""
    added, text = np.zeros(256, np.uint8), np.zeros((256, 6), np.uint8)
    for code in [*range(32), ord('"'), ord("\\")]:
        escape = b"\\" + _LETTERS[code] if code in _LETTERS else b"\\u%04X" % code
        added[code] = len(escape) - 1
        text[code, : len(escape)] = np.frombuffer(escape, np.uint8)
    return added, text


_ADDED, _ESCAPE = _escapes()
#: The first byte of a four-byte character is at least this. Its escape has twelve bytes.
_FOUR_BYTES = 0xF0
_ADDED[_FOUR_BYTES:] = 8
_ADDED_TABLE = _ADDED.tobytes()
#: Bytes that are escaped at once. Must be at least four, the longest character.
_STRETCH = 1 << 18
_HEXADECIMAL = np.frombuffer(b"0123456789ABCDEF", np.uint8)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A column of JSON text."""

    text: Any  #: `pa.string()`, null for null
    #: True: the texts are strings without their quotes. A row's literals can then carry the quotes at no cost
    #: (`,"name":"` … `"`), if no value is null.
    quoted: bool = False

    def complete(self) -> Any:
        """Return the text with its quotes, null for null."""
        if not self.quoted:
            return self.text
        return pc.binary_join_element_wise('"', self.text, '"', "", null_handling="emit_null")

    def member_texts(self) -> tuple[Any, ...]:
        """Return the complete JSON of the column as pieces to be joined row by row.

        Each piece is one text that all rows share, or an array with one text per row. If values need quotes and none is
        null, the pieces are a quote, the values and a quote. The caller's join then adds the quotes, which saves one
        copy of the column. Otherwise there is one piece, the complete JSON.
        """
        bare = self.quoted and not self.text.null_count
        return ('"', self.text, '"') if bare else (self.complete(),)


def escape(texts: Any) -> Any:
    """Return the texts as they stand between the quotes of JSON strings.

    The texts are escaped in stretches, because an escape needs some 50 bytes of index vectors. Without stretches, a
    text of 16 MB with an escape for every character took 1.7 GB.
    """
    offsets, data = split(texts)
    data = data[int(offsets[0]) : int(offsets[-1])]
    if not _needs_escape(data):
        return texts
    mask = valid(texts)
    offsets, data = dense(texts)
    stretches = list(pairwise(_borders(data)))
    added = [int(_added(data[begin:end]).sum(dtype=np.int64)) for begin, end in stretches]
    out = np.empty(len(data) + sum(added), np.uint8)
    moved = offsets.astype(np.int64)
    so_far = 0
    for (begin, end), more in zip(stretches, added, strict=True):
        own = slice(*np.searchsorted(offsets, (begin, end)))
        moved[own] += so_far
        if more:
            places, before = _escaped(data[begin:end], out[begin + so_far : end + so_far + more])
            # An offset moves by the bytes that were added before it.
            moved[own] += before[np.searchsorted(places, offsets[own] - begin)]
        else:
            out[begin + so_far : end + so_far] = data[begin:end]
        so_far += more
    moved[np.searchsorted(offsets, len(data)) :] += so_far
    return variable(moved, out, pa.string(), mask)


def _borders(data: Bytes) -> list[int]:
    """Return where stretches begin and end. No border is inside a character."""
    borders = [0]
    while (border := borders[-1] + _STRETCH) < len(data):
        # A character has at most three continuation bytes; the border moves to the character's first byte.
        borders.append(border - next(k for k in range(4) if data[border - k] & 0xC0 != 0x80 or k == 3))
    return [*borders, len(data)]


def _added(data: Bytes) -> Bytes:
    """Return how many bytes escaping adds to each byte. A table is four times as fast as NumPy's index vectors."""
    return np.frombuffer(data.tobytes().translate(_ADDED_TABLE), np.uint8)


def _escaped(data: Bytes, out: Bytes) -> tuple[Any, Any]:
    """Write `data`, escaped, to `out`.

    Return the positions of the escaped bytes, and how many bytes were added before each of them and in all.
    """
    more = _added(data)
    places = np.flatnonzero(more != 0)
    codes = data[places]
    added = more[places].astype(np.int64)
    before = np.cumsum(added) - added
    new_places = places + before
    wide = codes >= _FOUR_BYTES
    keep = np.ones(len(out), np.bool_)
    for k in range(1, 9):
        keep[new_places[added >= k] + k] = False
    out[keep] = data
    for k in range(6):
        which = (added >= k) & ~wide
        out[new_places[which] + k] = _ESCAPE[codes[which], k]
    _surrogates(out, new_places[wide], data, places[wide])
    return places, np.append(before, len(out) - len(data))


def _surrogates(out: Bytes, new_places: Any, data: Bytes, places: Any) -> None:
    """Write the two escapes of each four-byte character at `places` of `data`."""
    point = (data[places] & 7).astype(np.uint32)
    for k in range(1, 4):
        point = point << 6 | data[places + k] & 0x3F
    point -= 0x10000
    for half, unit in enumerate((0xD800 | point >> 10, 0xDC00 | point & 0x3FF)):
        start = new_places + 6 * half
        out[start], out[start + 1] = ord("\\"), ord("u")
        for digit in range(4):
            out[start + 2 + digit] = _HEXADECIMAL[unit >> 4 * (3 - digit) & 15]


def _needs_escape(data: Bytes) -> bool:
    if len(data) == 0:
        return False
    if data.min() < 32 or data.max() >= _FOUR_BYTES:
        return True
    return bool((data == ord('"')).any()) or bool((data == ord("\\")).any())


def strings(texts: Any) -> Encoded:
    """Return texts as JSON strings, escaped."""
    return Encoded(escape(texts), quoted=True)


@lru_cache(maxsize=4096)
def literal(text: str) -> str:
    """Return one text as JSON with its quotes.

    The result is kept: names come again with each block, and each takes 80 µs.
    """
    return f'"{escape(pa.array([text], pa.string()))[0].as_py()}"'
