"""Character sets without a server: what is special about each family. Every character is compared in integration."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product

import pyarrow as pa
import pytest

from incsnap.types.charset_tables import MULTI_BYTE, SINGLE_BYTE
from incsnap.types.charsets import CHARSETS, UTF8, decode_column, decode_text, is_shared
from tests.support.random_values import CHARACTERS


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("latin1", b"\x80\x81\x9d\xff", "€\x81\x9dÿ"),
        ("swe7", b"[\\]@}~\x7f", "ÄÖÅÉåü?"),
        ("cp1251", b"\xcf\x98", "П?"),
        ("sjis", b"\x83\\\x81_\\~\xb1", "ソ\\\\~ｱ"),
        ("cp932", b"\x87@\x81`", "①～"),
        ("ujis", b"\x8f\xb0\xa1\xa1\xc0\xf5\xa1\x8f\xf5\xa1", "丂\\\ue000\ue3ac"),
        ("eucjpms", b"~\x8f\xa2\xb7\xad\xa1", "~～①"),
        ("big5", b"\xa4\xa4\xa2\x40\xa1\xfe\xf9\xd6", "中\ufffd\ufffd碁"),
        ("gbk", b"\xd6\xd0\xa1\x40", "中?"),
        ("gb18030", b"\x810\x810\xa8\xbc\x815\xf47\x84\x31\xa5\x30", "\x80ḿ\ue7c7?"),
        ("euckr", b"\x81A", "갂"),
        ("utf16", b"\xd8\x3d\xde\x00\x00A", "😀A"),
        ("utf32", b"\x00\x01\xf6\x00", "😀"),
        ("ucs2", b"\x4e\x2d", "中"),
        ("utf8mb3", "é中".encode(), "é中"),
    ],
)
def test_edge_code_points_decode_as_on_the_server(charset: str, raw: bytes, text: str) -> None:
    assert decode_text(raw, charset) == text


@pytest.mark.parametrize(
    ("charset", "raw"),
    [("utf16", b"\xd8\x00"), ("gbk", b"\x81"), ("ujis", b"\x80"),
     ("sjis", b"\x81\x20"), ("utf8mb4", b"\xed\xa0\x80"), ("utf32", b"\x00\x11\x00\x00"), ("utf16", b"A")],
)  # fmt: skip
def test_invalid_bytes_of_a_character_set_are_refused(charset: str, raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode_text(raw, charset)


@pytest.mark.parametrize("charset", sorted(CHARSETS - UTF8))
@pytest.mark.parametrize("repeats", [False, True])
def test_a_column_is_its_values(charset: str, repeats: bool) -> None:
    source = random.Random(charset)
    texts = ["".join(source.choices(CHARACTERS.get(charset, "é") + "ab", k=source.randint(0, 9))) for _ in range(1500)]
    encoded = {text: _encoded(text, charset) for text in texts}
    chosen = source.choices(texts[:40], k=1500) if repeats else texts
    values = [None if number % 9 == 4 else encoded[text] for number, text in enumerate(chosen)]
    column = decode_column(pa.array(values, pa.binary()).slice(5), charset)
    column.validate(full=True)
    assert column.to_pylist() == [None if value is None else decode_text(value, charset) for value in values[5:]]
    ascii_only = pa.array([b"abc", None, b""], pa.binary())
    if charset in SINGLE_BYTE.keys() | MULTI_BYTE.keys():
        assert decode_column(ascii_only, charset).to_pylist() == ["abc", None, ""]


def _encoded(text: str, charset: str) -> bytes:
    """Bytes of the set, found by trying: Python's codecs are not MySQL's."""
    if charset in SINGLE_BYTE:
        known = {decode_text(bytes([byte]), charset): byte for byte in reversed(range(256))}
        return bytes(known.get(character, 0x30) for character in text)
    codec = {"utf16": "utf-16-be", "ucs2": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
    return text.encode(codec[charset] if charset in codec else MULTI_BYTE[charset][0], "replace")


def _every_code(charset: str) -> Iterator[bytes]:
    high, digits = range(0x80, 0x100), range(0x30, 0x3A)
    yield from map(bytes, product(range(0x100 if charset in SINGLE_BYTE else 0x80)))
    if charset in MULTI_BYTE:
        code = re.compile(MULTI_BYTE[charset][1].encode("latin-1"), re.S)
        possible = [*product(high), *product(high, range(0x100)), *product([0x8F], high, high)]
        if charset == "gb18030":
            # A tenth of its codes of four bytes, in all rows of all planes.
            possible += product(high, digits, high, digits[5:6])
        yield from filter(code.fullmatch, map(bytes, possible))


@pytest.mark.parametrize("charset", sorted(SINGLE_BYTE.keys() | MULTI_BYTE.keys()))
def test_a_text_is_shared_if_several_codes_are_decoded_to_one_of_its_characters(charset: str) -> None:
    counts = Counter(decode_text(code, charset) for code in _every_code(charset))
    shared = {character for character, count in counts.items() if count > 1}
    assert {character for character in counts if is_shared(f"x{character}", charset)} - {"x"} == shared


def test_no_text_is_shared_where_each_text_has_bytes_of_its_own() -> None:
    text = "".join(map(chr, [*range(0x20, 0xD800), 0xFFFD, 0x1F600]))
    one_to_one = {charset for charset in CHARSETS if not is_shared(text, charset)}
    assert {"utf8mb4", "utf8mb3", "ascii", "latin1", "latin2", "cp850", "koi8r"} <= one_to_one
    assert {"ucs2", "cp932", "cp1251", "gbk"}.isdisjoint(one_to_one)
