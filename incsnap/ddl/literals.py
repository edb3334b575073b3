"""The values of literals behind DEFAULT, as far as the text of a statement tells them."""

from __future__ import annotations

import re

from incsnap.ddl.words import NotUnderstood
from incsnap.types.charsets import UTF8

#: Character sets in which ASCII characters have their ASCII bytes, and which literals name.
_WITH_ASCII = UTF8 | {"utf8", "latin1", "binary"}
#: The end of a time with a time zone.
_WITH_ZONE = re.compile(r"[+-]\d{1,2}:\d\d\s*$")
_NUMBERS = frozenset(
    ("tinyint", "smallint", "mediumint", "int", "bigint", "serial", "decimal", "float", "double", "year")
)


def bytes_of(prefix: str, digits: str) -> bytes:
    r"""Return the bytes of a literal of bits (`prefix` is B) or of hexadecimal digits (X).

    Raise NotUnderstood if these are no such digits.

    >>> bytes_of("X", "61f"), bytes_of("B", "101")
    (b'\x06\x1f', b'\x05')
    """
    base, bits = (2, 1) if prefix == "B" else (16, 4)
    try:
        return int(digits or "0", base).to_bytes((len(digits) * bits + 7) // 8, "big")
    except ValueError:
        raise NotUnderstood(f"{digits[:40]!r} are no digits of base {base}") from None


def in_charset(text: str, charset: str, connection: str) -> str | None:
    """Return the text of a literal whose character set `charset` is named: N'text', _latin1'text'.

    Its bytes are those of the session, whose character set is `connection`. Return None if they may be another text in
    `charset`.
    """
    if text.isascii():
        return text if charset in _WITH_ASCII else None
    return text if charset.startswith("utf8") and connection.startswith("utf8") else None


def default_text(value: str | int | bytes | None, kind: str, length: int | None, charset: str) -> str | None:
    r"""Return the DEFAULT of a column as a text. `kind`, `length` and `charset` are those of its type.

    The text of a byte string, and of a BIT with more than one bit, has a character for each byte. Return None if
    `value` is None, if its characters depend on the table's character set, or if a time depends on a time zone.

    >>> default_text(b"\x05", "int", None, ""), default_text(b"\x05", "bit", 8, ""), default_text(b"a", "char", 1, "")
    ('5', '\x05', 'a')
    """
    if value is None:
        return None
    if kind == "bit":
        return _bits(value, length or 1)
    if isinstance(value, int):
        value = str(value)
    if kind in ("datetime", "timestamp") and isinstance(value, str) and _WITH_ZONE.search(value):
        return None
    if kind in _NUMBERS:
        return str(int.from_bytes(value, "big")) if isinstance(value, bytes) else value
    if charset == "binary" and kind in ("char", "varchar"):
        octets = value.encode("utf-8", "replace") if isinstance(value, str) else value
        padded = octets.ljust(length or 1, b"\0") if kind == "char" else octets
        return padded.decode("latin-1")
    if isinstance(value, str):
        return value
    text = value.decode("latin-1")
    return text if text.isascii() and (text.isprintable() or not text) else None


def _bits(value: str | int | bytes, length: int) -> str | None:
    """Return the DEFAULT of a BIT: digits of one bit, otherwise a character for each byte.

    MySQL takes the bytes of a string: '5' is x'35' and not 5.
    """
    octets = value.encode() if isinstance(value, str) else value
    number = octets if isinstance(octets, int) else int.from_bytes(octets, "big")
    if length == 1 or not 0 <= number < 1 << length:
        return str(number) if number in (0, 1) else None
    return number.to_bytes((length + 7) // 8, "big").decode("latin-1")
