"""Text in each of MySQL's character sets, to exactly the characters that the server gives for it in a utf8mb4 SELECT.

A SELECT converts; the binlog holds the column's own bytes. What the server does with codes that have no character (it
gives ``?``) is done here too, so that both ways agree. Checked against a server for every code of every set.
https://dev.mysql.com/doc/refman/en/charset-charsets.html
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.variable import Bytes, dense, valid, variable
from incsnap.errors import UnsupportedType
from incsnap.tables import Column
from incsnap.types.charset_tables import MULTI_BYTE, SINGLE_BYTE, UNICODE, Runs

#: Character sets whose bytes are UTF-8 already.
UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
CHARSETS = UTF8 | SINGLE_BYTE.keys() | MULTI_BYTE.keys() | UNICODE.keys()

_UNKNOWN = "?"
#: So many values tell whether a column repeats itself.
_SAMPLE = 1000


def unknown_charset(column: Column) -> UnsupportedType:
    """The error for a column whose character set is none that is read; it names the column."""
    return UnsupportedType(
        f"column {column.name} has the character set {column.charset or 'unknown'}, which incsnap cannot read",
        "Convert the column to utf8mb4, or leave the table out with table.exclude.list.",
    )


def decode_text(raw: bytes, charset: str) -> str:
    """Return one value of a character set of ``CHARSETS``. Raise ``ValueError`` where the bytes are no text of it.

    ucs2 may hold halves of surrogate pairs: MySQL checks none, and Java writes U+FFFD for each that has no other half.
    """
    if charset in SINGLE_BYTE:
        return raw.decode("latin-1").translate(_characters(charset))
    if charset in MULTI_BYTE:
        return _multi_byte(raw, charset)
    return raw.decode(UNICODE.get(charset, "utf-8"), "replace" if charset == "ucs2" else "strict")


def literal_text(raw: bytes, charset: str) -> str:
    """Return a literal of an ENUM or SET as information_schema shows it: empty where its bytes are no text."""
    if charset == "ucs2" and any(0xD8 <= high <= 0xDF for high in raw[::2]):
        return ""
    try:
        return decode_text(raw, charset)
    except ValueError:
        return ""


def statement_text(raw: bytes, charset: str) -> str:
    """Return a statement that a client with this character set sent.

    The server takes a statement whose names are text of the client's character set. Literals and comments may hold
    other bytes: these become U+FFFD. A client with the character set `binary` sends names in UTF-8.
    """
    try:
        return decode_text(raw, charset)
    except ValueError:
        codec = MULTI_BYTE[charset][0] if charset in MULTI_BYTE else "utf-8"
        return raw.decode(codec, "replace")


def can_hold(text: str, charset: str) -> bool:
    """Whether the character set, or `binary`, has each of these characters."""
    if text.isascii() and charset != "swe7":
        return True
    if charset in SINGLE_BYTE:
        return "\ufffd" not in text and all(each in _characters(charset) for each in text)
    if charset in ("ascii", "binary") or "\ufffd" in text:
        return False
    codec = MULTI_BYTE[charset][0] if charset in MULTI_BYTE else UNICODE.get(charset, "utf-8")
    try:
        kept = decode_text(text.encode(codec), charset) == text
    except ValueError:
        return False
    return kept and (charset != "utf8mb3" or max(text) <= "\uffff")


def decode_column(raw: Any, charset: str) -> Any:
    """As ``pa.string()``, a whole column of ``pa.binary()`` whose character set is not one of ``UTF8``."""
    if charset not in UNICODE and charset != "swe7" and not (dense(raw)[1] >= 0x80).any():
        return raw.cast(pa.string())
    single = charset in SINGLE_BYTE
    if single and not _repeats(raw):
        return _single_byte(raw, charset)
    # Such columns (codes, names) often repeat themselves: each distinct value is decoded once, and the column takes
    # them by number. Sets of several bytes a character are decoded value by value: no kernel knows them.
    encoded = raw.dictionary_encode()
    distinct = encoded.dictionary
    if single:
        decoded = _single_byte(distinct, charset)
    else:
        decoded = pa.array([decode_text(value, charset) for value in distinct.to_pylist()], pa.string())
    return pc.take(decoded, encoded.indices)


def _repeats(raw: Any) -> bool:
    sample = raw.slice(0, _SAMPLE)
    return len(sample) == _SAMPLE and len(sample.unique()) < _SAMPLE // 4


def _single_byte(raw: Any, charset: str) -> Any:
    """Each byte looked up: its character's UTF-8 of one to three bytes."""
    mask = valid(raw)
    offsets, data = dense(raw)
    lengths, (first, second, third) = _utf8(charset)
    wide = lengths > 1
    places = np.flatnonzero(wide[data])
    codes = data[places]
    added = lengths[codes].astype(np.int64) - 1
    before = np.cumsum(added) - added
    out = np.zeros(len(data) + int(added.sum()), np.uint8)
    new_places = places + before
    longer = added == 2
    keep = np.ones(len(out), np.bool_)
    keep[new_places + 1] = False
    keep[new_places[longer] + 2] = False
    out[keep] = first[data]
    out[new_places + 1] = second[codes]
    out[new_places[longer] + 2] = third[codes[longer]]
    # An offset moves by what was added before the place it points at.
    total = np.append(before, int(added.sum()))
    return variable(offsets + total[np.searchsorted(places, offsets)], out, pa.string(), mask)


@cache
def _characters(charset: str) -> str:
    """The character of each byte."""
    codec, runs = SINGLE_BYTE[charset]
    other = _codes(runs)
    return "".join(other.get(bytes([byte])) or _known(bytes([byte]), codec) for byte in range(256))


@cache
def _utf8(charset: str) -> tuple[Bytes, Bytes]:
    """The character that each byte stands for, in UTF-8: its number of bytes, and the bytes (three rows)."""
    encoded = [character.encode() for character in _characters(charset)]
    lengths = np.array([len(text) for text in encoded], np.uint8)
    characters = np.zeros((3, 256), np.uint8)
    for byte, text in enumerate(encoded):
        characters[: len(text), byte] = np.frombuffer(text, np.uint8)
    return lengths, characters


def _multi_byte(raw: bytes, charset: str) -> str:
    """The codec where it gives what MySQL gives, 5 ns a character; else character by character."""
    codec, suspicious, split, other = _multi_byte_set(charset)
    try:
        text = raw.decode(codec)
    except UnicodeDecodeError:
        text = None
    if text is not None and (suspicious is None or not suspicious.search(text)):
        return text
    codes = split.findall(raw)
    if sum(map(len, codes)) != len(raw):
        raise ValueError(f"not a text in {charset}")
    return "".join(other.get(code) or _known(code, codec) for code in codes)


@cache
def _multi_byte_set(charset: str) -> tuple[str, re.Pattern[str] | None, re.Pattern[bytes], dict[bytes, str]]:
    """Codec; what it may have decoded otherwise than MySQL does; how to split codes; codes with other characters."""
    codec, wide, runs = MULTI_BYTE[charset]
    other = _codes(runs)
    wrong = {_known(code, codec) for code in other} - {_UNKNOWN}
    suspicious = re.compile(f"[{re.escape(''.join(sorted(wrong)))}]") if wrong else None
    return codec, suspicious, re.compile(rf"{wide}|[\x00-\x7f]".encode("latin-1"), re.S), other


def _codes(runs: Runs) -> dict[bytes, str]:
    """The character of each code that ``runs`` names."""
    characters_of: dict[bytes, str] = {}
    for first, characters in runs.items():
        width = (first.bit_length() + 7) // 8
        characters_of |= {
            (first + place).to_bytes(width, "big"): character for place, character in enumerate(characters)
        }
    return characters_of


def _known(code: bytes, codec: str) -> str:
    try:
        return code.decode(codec)
    except UnicodeDecodeError:
        return _UNKNOWN
