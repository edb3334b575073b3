"""JSON text of whole columns: what an encoded column is, and the escaping of strings as Jackson (so Debezium) does it.

Escaped are only ``"``, ``\\`` and the control characters below 0x20, those as \\b \\t \\n \\f \\r or \\u00XX in
capitals, and characters beyond U+FFFF, as the two halves of their surrogate pair (\\uD83D\\uDE00); all else stays
UTF-8. A column without any of them (the usual case) is tested at 0.3 ns a byte and passes through untouched.
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
    """For each byte: how many bytes its escape adds (0, 1 or 5), and the escape itself in 6 columns."""
    added, text = np.zeros(256, np.uint8), np.zeros((256, 6), np.uint8)
    for code in [*range(32), ord('"'), ord("\\")]:
        escape = b"\\" + _LETTERS[code] if code in _LETTERS else b"\\u%04X" % code
        added[code] = len(escape) - 1
        text[code, : len(escape)] = np.frombuffer(escape, np.uint8)
    return added, text


_ADDED, _ESCAPE = _escapes()
#: A character of four bytes begins with one of these, and becomes twelve.
_FOUR_BYTES = 0xF0
_ADDED[_FOUR_BYTES:] = 8
_ADDED_TABLE = _ADDED.tobytes()
#: Bytes that are escaped at once; at least four, the longest character.
_STRETCH = 1 << 18
_HEXADECIMAL = np.frombuffer(b"0123456789ABCDEF", np.uint8)


@dataclass(frozen=True, slots=True)
class Encoded:
    """JSON text of each value, null for null; ``quoted`` text still lacks the quotes around it.

    Quotes are left out because a row's literals can carry them (``,"name":"`` … ``"``) for nothing where no value is
    null.
    """

    text: Any
    quoted: bool = False

    def complete(self) -> Any:
        """The text with its quotes, null for null."""
        if not self.quoted:
            return self.text
        return pc.binary_join_element_wise('"', self.text, '"', "", null_handling="emit_null")


def escape(texts: Any) -> Any:
    """``texts`` (string) as they stand between the quotes of JSON strings.

    Stretch by stretch: an escape costs some 50 bytes of index vectors, so a text of 16 MB in which every character is
    one took 1.7 GB at once.
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
            # An offset moves by what was added before the place it points at.
            moved[own] += before[np.searchsorted(places, offsets[own] - begin)]
        else:
            out[begin + so_far : end + so_far] = data[begin:end]
        so_far += more
    moved[np.searchsorted(offsets, len(data)) :] += so_far
    return variable(moved, out, pa.string(), mask)


def _borders(data: Bytes) -> list[int]:
    """Where stretches begin and end, none of them inside a character."""
    borders = [0]
    while (border := borders[-1] + _STRETCH) < len(data):
        # The last of at most three bytes that go on with a character of four.
        borders.append(border - next(k for k in range(4) if data[border - k] & 0xC0 != 0x80 or k == 3))
    return [*borders, len(data)]


def _added(data: Bytes) -> Bytes:
    """How many bytes escaping adds to each byte; by a table, which is four times as fast as NumPy's index vectors."""
    return np.frombuffer(data.tobytes().translate(_ADDED_TABLE), np.uint8)


def _escaped(data: Bytes, out: Bytes) -> tuple[Any, Any]:
    """Writes ``data``, escaped, to ``out``. Returns the places of what was escaped, and what was added before each of
    them and in all."""
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
    """Write the two escapes of each character of four bytes at ``places`` in ``data``."""
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
    return Encoded(escape(texts), quoted=True)


@lru_cache(maxsize=4096)
def literal(text: str) -> str:
    """One string as JSON writes it, quotes included. Kept: names come again with each block, and take 80 µs."""
    return f'"{escape(pa.array([text], pa.string()))[0].as_py()}"'
