"""The values of literals, as far as the text of a statement tells them."""

from __future__ import annotations

from incsnap.ddl.words import NotUnderstood
from incsnap.types.charsets import UTF8

#: Character sets in which ASCII characters have their ASCII bytes, and which literals name.
_WITH_ASCII = UTF8 | {"utf8", "latin1", "binary"}


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
