"""Character sets as statements name them: for a table, a column or a literal."""

from __future__ import annotations

from incsnap.ddl.clauses import Clauses
from incsnap.ddl.words import NotUnderstood
from incsnap.tables import printed_charset
from incsnap.types.charsets import CHARSETS

BINARY = "binary"
#: Most bytes of a character, for sets with more than one byte a character.
_WIDTHS = {
    "big5": 2, "cp932": 2, "eucjpms": 3, "euckr": 2, "gb18030": 4, "gb2312": 2, "gbk": 2, "sjis": 2, "ucs2": 2,
    "ujis": 3, "utf16": 4, "utf16le": 4, "utf32": 4, "utf8mb3": 3, "utf8mb4": 4,
}  # fmt: skip


def width_of(charset: str) -> int:
    """Return how many bytes a character has at most."""
    return _WIDTHS.get(charset, 1)


def skip_charset_word(words: Clauses) -> bool:
    """Skip CHARACTER SET, CHAR SET or CHARSET. Return True if it was there."""
    if words.skip("CHARSET"):
        return True
    if words.skip_any("CHARACTER", "CHAR"):
        words.expect("SET")
        return True
    return False


def read_charset_option(words: Clauses) -> str | None:
    """Read the option `CHARACTER SET [=] name` or `COLLATE [=] name` of a table or database, and return the character
    set.

    Return None if neither option comes next in the statement. Raise NotUnderstood for an unknown character set.
    """
    if skip_charset_word(words):
        words.skip("=")
        return read_charset(words)
    return read_collation(words) if words.skip("COLLATE") else None


def read_charset(words: Clauses) -> str:
    """Read the name of a character set, and return it as the server prints it."""
    return known_charset(words.name_or_string())


def read_collation(words: Clauses) -> str:
    """Read what follows the word COLLATE, `[=] name`, and return the character set of that collation.

    Raise NotUnderstood for an unknown character set.
    """
    words.skip("=")
    name = words.name_or_string().lower()
    return known_charset(name if name == BINARY else name.partition("_")[0])


def known_charset(name: str) -> str:
    """Return the name as the server prints it. Raise NotUnderstood for an unknown character set."""
    charset = printed_charset(name.lower())
    if charset not in CHARSETS and charset != BINARY:
        raise NotUnderstood(f"the character set {name!r} is not known")
    return charset
