"""Tests of every character of every character set: our decoding gives what the server's own conversion gives."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import pytest

from incsnap.tables import printed_charset
from incsnap.types.charset_tables import MULTI_BYTE, SINGLE_BYTE, UNICODE
from incsnap.types.charsets import CHARSETS, UTF8
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


def test_every_character_set_of_the_server_is_known(mysql_address: MySqlAddress) -> None:
    connection = session(mysql_address)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
        names = {printed_charset(str(name)) for (name,) in cursor.fetchall()}
    connection.close()
    assert names - {"binary"} <= CHARSETS
