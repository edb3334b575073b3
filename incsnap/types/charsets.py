"""Text in each of MySQL's character sets, decoded to exactly the characters that a utf8mb4 SELECT returns for it.

A SELECT converts text; the binlog holds the column's own bytes. The server converts a code without a character to `?`,
and so does this module, so that both ways agree. This was checked against a server for every code of every set.
https://dev.mysql.com/doc/refman/en/charset-charsets.html
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import BytesArray, TextArray
from incsnap.columns.variable import Bytes, dense, valid, variable
from incsnap.errors import UnsupportedType
from incsnap.tables import Column
from incsnap.types.charset_tables import MULTI_BYTE, SINGLE_BYTE, UNICODE, Runs

#: Character sets whose bytes are UTF-8 already.
UTF8 = frozenset({"utf8mb4", "utf8mb3", "ascii"})
CHARSETS = UTF8 | SINGLE_BYTE.keys() | MULTI_BYTE.keys() | UNICODE.keys()

_UNKNOWN = "?"
#: How many values are looked at to see whether a column repeats its values.
_SAMPLE = 1000


def unknown_charset(column: Column) -> UnsupportedType:
    """Return the error for a column whose character set incsnap cannot read. The error names the column."""
    return UnsupportedType(
        f"column {column.name} has the character set {column.charset or 'unknown'}, which incsnap cannot read",
        "Convert the column to utf8mb4, or leave the table out with table.exclude.list.",
    )


def decode_text(raw: bytes, charset: str) -> str:
    """Return the text of one value. `charset` is one of `CHARSETS`. Raise ValueError if the bytes are no text of this
    set.

    ucs2 may hold halves of surrogate pairs, because MySQL checks none. Java writes U+FFFD for a half without its other
    half, and so does this function.
    """
    if charset in SINGLE_BYTE:
        return raw.decode("latin-1").translate(_characters(charset))
    if charset in MULTI_BYTE:
        return _multi_byte(raw, charset)
    return raw.decode(UNICODE.get(charset, "utf-8"), "replace" if charset == "ucs2" else "strict")


def literal_text(raw: bytes, charset: str) -> str:
    """Return a literal of an ENUM or SET as information_schema shows it: empty if its bytes are no text."""
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
    """Return True if the character set, which may be `binary`, has each character of `text`.

    `incsnap.ddl` asks this about literals, because MySQL writes `?` for a character that the set does not have.
    """
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


def is_shared(text: str, charset: str) -> bool:
    """Return True if several byte strings of the character set, one of `CHARSETS`, may be decoded to `text`."""
    if charset == "ucs2":
        # A half of a surrogate pair is U+FFFD, and MySQL does not convert a pair's character back.
        return max(text, default="") > "\uffff" or "\ufffd" in text
    return not _shared_characters(charset).isdisjoint(text)


def decode_column(raw: BytesArray, charset: str) -> TextArray:
    """Return a column of `pa.binary()` as `pa.string()`. `charset` is one of `CHARSETS`, but none of `UTF8`."""
    if charset not in UNICODE and charset != "swe7" and not (dense(raw)[1] >= 0x80).any():
        return raw.cast(pa.string())
    single = charset in SINGLE_BYTE
    if single and not _repeats(raw):
        return _single_byte(raw, charset)
    # Text columns (codes, names) often repeat their values. So each distinct value is decoded once, and the column
    # takes the results by index. Sets with several bytes a character are decoded value by value: no Arrow kernel knows
    # them.
    encoded = raw.dictionary_encode()
    distinct = encoded.dictionary
    if single:
        decoded = _single_byte(distinct, charset)
    else:
        decoded = pa.array([decode_text(value, charset) for value in distinct.to_pylist()], pa.string())
    return pc.take(decoded, encoded.indices)


def _repeats(raw: BytesArray) -> bool:
    sample = raw.slice(0, _SAMPLE)
    return len(sample) == _SAMPLE and len(sample.unique()) < _SAMPLE // 4


def _single_byte(raw: BytesArray, charset: str) -> TextArray:
    """Return the text of a set with one byte a character: each byte is looked up as UTF-8 of one to three bytes."""
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
    # An offset moves by the bytes that were added before it.
    total = np.append(before, int(added.sum()))
    return variable(offsets + total[np.searchsorted(places, offsets)], out, pa.string(), mask)


@cache
def _characters(charset: str) -> str:
    """Return the character of each byte, 256 in all."""
    codec, runs = SINGLE_BYTE[charset]
    other = _codes(runs)
    return "".join(other.get(bytes([byte])) or _known(bytes([byte]), codec) for byte in range(256))


@cache
def _shared_characters(charset: str) -> frozenset[str]:
    """Return the characters that several codes of the set are decoded to.

    Of gb18030 the codes of four bytes are left out: each has a character of its own or is `?`.
    """
    if charset in SINGLE_BYTE:
        counts = Counter(_characters(charset))
    elif charset in MULTI_BYTE:
        codec, _, code, other = _multi_byte_set(charset)
        high, low = range(0x80, 0x100), range(0x100)
        codes = [*product(low), *product(high, low), *product([0x8F], high, high)]
        possible = (each for each in map(bytes, codes) if code.fullmatch(each))
        counts = Counter(other.get(each) or _known(each, codec) for each in possible)
        counts[_UNKNOWN] += 1  # codes of four bytes
    else:
        return frozenset()
    return frozenset(character for character, count in counts.items() if count > 1)


@cache
def _utf8(charset: str) -> tuple[Bytes, Bytes]:
    """Return the UTF-8 of each byte's character: the number of its bytes, and the bytes in three rows."""
    encoded = [character.encode() for character in _characters(charset)]
    lengths = np.array([len(text) for text in encoded], np.uint8)
    characters = np.zeros((3, 256), np.uint8)
    for byte, text in enumerate(encoded):
        characters[: len(text), byte] = np.frombuffer(text, np.uint8)
    return lengths, characters


def _multi_byte(raw: bytes, charset: str) -> str:
    """Return the text of a set with several bytes a character. Raise ValueError if the bytes are no text of it.

    The codec is used if it gives what MySQL gives (5 ns a character), otherwise each character is looked up.
    """
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
    """Return what is needed to decode a set with several bytes a character.

    The result has four elements: the codec; a pattern of characters that it decodes otherwise than MySQL, or None; a
    pattern of one code. The fourth element is the characters of the codes for which MySQL differs.
    """
    codec, wide, runs = MULTI_BYTE[charset]
    other = _codes(runs)
    wrong = {_known(code, codec) for code in other} - {_UNKNOWN}
    suspicious = re.compile(f"[{re.escape(''.join(sorted(wrong)))}]") if wrong else None
    return codec, suspicious, re.compile(rf"{wide}|[\x00-\x7f]".encode("latin-1"), re.S), other


def _codes(runs: Runs) -> dict[bytes, str]:
    """Return a dictionary: each code that `runs` names -> its character."""
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
