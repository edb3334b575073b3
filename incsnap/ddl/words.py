"""What a statement is made of, and a reader of it that goes on only as far as it must."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from incsnap.tables import TableId

#: Bits of the SQL mode, which decide what a quotation is.
ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20

#: Repetitions are possessive: a statement may be as long as max_allowed_packet, and a repetition that can be taken back
#: costs 200 bytes of memory for each character.
_TOKEN = r"""
      (?P<blank> [ \t-\r]++ | \#[^\n]*+ | --(?=[\x00-\x20\x7f]|\Z)[^\n]*+ | /\*(?!!).*?(?:\*/|\Z) | /\*!\d*+ | \*/ )
    | `(?P<name> (?:[^`]++|``)*+ )`
    | "(?P<quoted> QUOTED )"
    | (?P<string> 'STRING' DOUBLE )
    | (?P<broken> [`"'] .*+ )
    | (?P<word> [0-9A-Za-z_$\x80-\U0010ffff]++ )
    | (?P<other> . )
    """

#: (kind, text): ``word`` as written, ``name`` without its quotes, ``other`` a single character.
Token = tuple[str, str]


def tokens(sql: str, sql_mode: int | None = None) -> Iterator[Token]:
    """The statement without blanks and comments; the text of ``/*!40101 ... */`` is part of the statement.

    ``sql_mode``: of the session that wrote it. Where it is not known (None), double quotes are those of names.
    """
    ansi = None if sql_mode is None else bool(sql_mode & ANSI_QUOTES)
    pattern = _pattern(ansi, not (sql_mode or 0) & NO_BACKSLASH_ESCAPES)
    for match in pattern.finditer(sql):  # lazily: a statement may have a gigabyte of values behind its first words
        kind = match.lastgroup
        if kind == "name":
            yield "name", match["name"].replace("``", "`")
        elif kind == "quoted":
            yield "name", match["quoted"].replace('""', '"')
        elif kind is not None and kind != "blank":
            yield kind, match[0]
        elif match[0] == "*/" and sql.startswith("*", match.end()):
            yield "broken", match[0]  # the end of /*! ... */ and a star, or a star and the start of a comment


@cache
def _pattern(ansi: bool | None, backslashes: bool) -> re.Pattern[str]:
    """Return the pattern of a token. A backslash escapes in strings, if the mode lets it, and never in names."""

    def content(quote: str, escapes: bool) -> str:
        other = rf"[^{quote}\\]++|\\." if escapes else f"[^{quote}]++"
        return f"(?:{other}|{quote}{quote})*+"

    quoted = content('"', escapes=ansi is None) if ansi is not False else "(?!)"
    double = '| "' + content('"', backslashes) + '"' if ansi is False else ""
    text = _TOKEN.replace("QUOTED", quoted).replace("STRING", content("'", backslashes)).replace("DOUBLE", double)
    return re.compile(text, re.VERBOSE | re.DOTALL)


class Words:
    """A statement, word by word. ``NotUnderstood`` where it does not go on as it must.

    ``database``: of names that are written without one; ``sql_mode``: of the session that wrote it.
    """

    def __init__(self, sql: str, database: str, sql_mode: int | None) -> None:
        self._sql = sql
        self._tokens = tokens(sql, sql_mode)
        self._database = database
        self._next = next(self._tokens, None)

    @property
    def at_end(self) -> bool:
        return self._next is None

    @property
    def is_broken(self) -> bool:
        """Whether a quotation that is never closed is next, or what may be a comment's end or another one's start."""
        return self._next is not None and self._next[0] == "broken"

    def mentions(self, *words: str) -> bool:
        """Whether the statement has one of these words in capitals, literals and comments included. It is much faster
        than to take all of its words."""
        capitals = self._sql.upper()
        return any(word in capitals for word in words)

    def peek(self) -> str:
        """Return the next word in capitals or the next character; "" for a quoted name, a string and the end."""
        if self._next is None or self._next[0] in ("name", "string", "broken"):
            return ""
        return self._next[1].upper()

    def take(self) -> str:
        """As ``peek``, and goes on."""
        word = self.peek()
        self._take()
        return word

    def skip(self, word: str) -> bool:
        """Goes on if ``word`` is the next, and says whether it was."""
        is_next = self.peek() == word
        if is_next:
            self._take()
        return is_next

    def skip_condition(self) -> bool:
        """As ``skip``, for IF EXISTS and IF NOT EXISTS."""
        present = self.skip("IF")
        if present:
            self.skip("NOT")
            self.skip("EXISTS")
        return present

    def skip_past(self, word: str) -> None:
        while self.take() != word:
            pass

    def name(self) -> str:
        kind, text = self._take()
        if kind not in ("name", "word"):
            raise NotUnderstood
        return text

    def table(self) -> TableId:
        name = self.name()
        return TableId(name, self.name()) if self.skip(".") else TableId(self._database, name)

    def _take(self) -> Token:
        token = self._next
        if token is None or token[0] == "broken":
            raise NotUnderstood
        self._next = next(self._tokens, None)
        return token


class NotUnderstood(Exception):
    """The statement is not of a form known here."""
