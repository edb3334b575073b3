"""Tests of every character of every character set: our decoding gives what the server's own conversion gives."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from incsnap.snapshot.chunk_query import any_of
from incsnap.snapshot.keys import SharedText
from incsnap.tables import Column, printed_charset
from incsnap.types.charset_tables import MULTI_BYTE, SINGLE_BYTE, UNICODE
from incsnap.types.charsets import CHARSETS, UTF8, decode_text, is_shared
from lab.addresses import MySqlAddress
from tests.integration.test_same_bytes import Both, session, unequal

pytestmark = pytest.mark.servers

_CODES_A_VALUE = 5000


def codes(charset: str) -> Iterator[bytes]:
    """Yield the bytes of each character that the server accepts in the set."""
    if charset in UTF8 | UNICODE.keys():
        last = {"ascii": 0x7F, "utf8mb4": 0x10FFFF, "utf16": 0x10FFFF, "utf16le": 0x10FFFF, "utf32": 0x10FFFF}
        # Beyond the basic plane the three encodings are plain arithmetic.
        planes = itertools.chain(range(0x10000), range(0x10000, 0x110000, 61), [0x10FFFF])
        points = (point for point in planes if point <= last.get(charset, 0xFFFF) and not 0xD800 <= point < 0xE000)
        yield from (chr(point).encode(UNICODE.get(charset, "utf-8")) for point in points)
        return
    if charset in SINGLE_BYTE:
        yield from (bytes([byte]) for byte in range(256))
        return
    yield from (bytes([byte]) for byte in range(128))
    code = re.compile(MULTI_BYTE[charset][1].encode("latin-1"), re.S)
    high, digits = range(0x80, 0x100), range(0x30, 0x3A)
    possible: list[list[Sequence[int]]] = [[high], [high, range(0x100)], [[0x8F], high, high]]
    if charset == "gb18030":
        # A tenth of its 1.6 million codes, in all rows of all planes.
        possible.append([high, digits, high, digits[5:6]])
    for ranges in possible:
        yield from (each for each in map(bytes, itertools.product(*ranges)) if code.fullmatch(each))


@pytest.mark.parametrize("charset", sorted(CHARSETS))
def test_every_character_decodes_as_in_a_select(mysql_address: MySqlAddress, database: str, charset: str) -> None:
    both = Both(mysql_address, database)
    both.run("SET SESSION sql_mode = 'STRICT_ALL_TABLES'")
    both.run(f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v MEDIUMTEXT CHARACTER SET {charset})")
    all_codes = list(codes(charset))
    both.run("BEGIN")
    for start in range(0, len(all_codes), _CODES_A_VALUE):
        both.run(f"INSERT INTO t (v) VALUES (x'{b''.join(all_codes[start : start + _CODES_A_VALUE]).hex()}')")
    # Now one by one, where only a few are: an ASCII neighbour must not change what is read.
    for code in all_codes[:: max(1, len(all_codes) // 300)]:
        both.run(f"INSERT INTO t (v) VALUES (x'{code.hex()}')")
    both.run("COMMIT")
    (_, (_, selected)), (_, (_, decoded)) = both.by_select("id"), both.by_binlog()
    both.connection.close()
    assert selected.equals(decoded), unequal(selected, decoded)


@pytest.mark.parametrize("charset", sorted(CHARSETS - UTF8))
def test_a_condition_finds_each_value_that_is_shown_as_the_text_of_a_key(
    mysql_address: MySqlAddress, database: str, charset: str
) -> None:
    column = Column("v", "varchar", nullable=False, charset=charset, length=9)
    halves = [bytes([0xD8, 0x00]), bytes([0xDC, 0x01]), bytes([0xD8, 0x3D, 0xDE, 0x00])] if charset == "ucs2" else []
    stored = [*codes(charset), *halves]
    connection = session(mysql_address)
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(f"USE `{database}`")
        cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET {charset}, KEY (v))")
        for start in range(0, len(stored), _CODES_A_VALUE):
            rows = [f"({row}, x'{stored[row].hex()}')" for row in range(len(stored))[start : start + _CODES_A_VALUE]]
            cursor.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
        texts = [decode_text(code, charset) for code in stored]
        shared = {text for text in texts if is_shared(text, charset)}

        # A text of one code only is converted back to this code.
        cursor.execute(f"SELECT id FROM t WHERE v <> BINARY CONVERT(CONVERT(v USING utf8mb4) USING {charset})")
        assert {texts[row] for (row,) in cursor.fetchall()} <= shared
        assert {text for text, count in Counter(texts).items() if count > 1} <= shared
        for some in (list(shared), list(shared)[:1]):
            if some:
                cursor.execute(f"SELECT id FROM t WHERE {any_of([column], [(SharedText(text),) for text in some])}")
                of_texts = {row for row, text in enumerate(texts) if text in some}
                assert of_texts <= {row for (row,) in cursor.fetchall()}


def test_every_character_set_of_the_server_is_known(mysql_address: MySqlAddress) -> None:
    connection = session(mysql_address)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
        names = {printed_charset(str(name)) for (name,) in cursor.fetchall()}
    connection.close()
    assert names - {"binary"} <= CHARSETS
