"""The tokens of a statement, and `Words`, which reads a statement word by word and may stop before its end.

`Words` is enough for a question such as which tables a statement names. `clauses.Clauses` reads a whole statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, TypeVar

from incsnap.tables import TableId

T = TypeVar("T")

#: Bits of the SQL mode that decide what quotes mean.
ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20

#: Repetitions are possessive (`++`): a statement may be as long as max_allowed_packet, and a repetition with
#: backtracking costs 200 bytes of memory for each character.
_TOKEN = r"""
      (?P<blank> [ \t-\r]++ | \#[^\n]*+ | --(?=[\x00-\x20\x7f]|\Z)[^\n]*+ | /\*(?!!).*?(?:\*/|\Z) | /\*!\d*+ | \*/ )
    | `(?P<name> (?:[^`]++|``)*+ )`
    | "(?P<quoted> QUOTED )"
    | (?P<string> 'STRING' DOUBLE )
    | (?P<broken> [`"'] .*+ )
    | (?P<word> [0-9A-Za-z_$\x80-\U0010ffff]++ )
    | (?P<other> . )
    """

#: (kind, text). Kinds: `word` as written, `name` without its quotes, `string` with them, `other` a single character,
#: `broken` for what cannot be read.
Token = tuple[str, str]


def tokens(sql: str, sql_mode: int | None = None) -> Iterator[Token]:
    """Yield the tokens of the statement without blanks and comments. The text of `/*!40101 ... */` is part of the
    statement.

    `sql_mode`: of the session that wrote the statement. If it is None, text in double quotes is a name.
    """
    for kind, match in _matches(sql, sql_mode):
        if kind == "name":
            yield "name", match["name"].replace("``", "`")
        elif kind == "quoted":
            yield "name", match["quoted"].replace('""', '"')
        elif kind is not None and kind != "blank":
            yield kind, match[0]
        elif match[0] == "*/" and sql.startswith("*", match.end()):
            yield "broken", match[0]  # the end of /*! ... */ and a star, or a star and the start of a comment


def _matches(sql: str, sql_mode: int | None) -> Iterator[tuple[str | None, re.Match[str]]]:
    """Yield the matches of all tokens, blanks and comments of the statement, each with the name of its group."""
    ansi = None if sql_mode is None else bool(sql_mode & ANSI_QUOTES)
    pattern = _pattern(ansi, not (sql_mode or 0) & NO_BACKSLASH_ESCAPES)
    for match in pattern.finditer(sql):  # lazy: a statement may have a gigabyte of values
        yield match.lastgroup, match


def trimmed(sql: str, sql_mode: int | None = None) -> str:
    """Return the statement without the blanks and comments before its first token and behind its last one.

    `/*!40101 ... */` is no comment here. `sql_mode`: as in `tokens`.
    """
    first, end = 0, 0
    for kind, match in _matches(sql, sql_mode):
        if kind == "blank" and not match[0].startswith(("/*!", "*/")):
            continue
        first = first if end else match.start()
        end = match.end()
    return sql[first:end]


@cache
def _pattern(ansi: bool | None, backslashes: bool) -> re.Pattern[str]:
    """Return the pattern of a token. A backslash escapes in strings, if the mode allows, and never in names."""

    def content(quote: str, escapes: bool) -> str:
        other = rf"[^{quote}\\]++|\\." if escapes else f"[^{quote}]++"
        return f"(?:{other}|{quote}{quote})*+"

    quoted = content('"', escapes=ansi is None) if ansi is not False else "(?!)"
    double = '| "' + content('"', backslashes) + '"' if ansi is False else ""
    text = _TOKEN.replace("QUOTED", quoted).replace("STRING", content("'", backslashes)).replace("DOUBLE", double)
    return re.compile(text, re.VERBOSE | re.DOTALL)


class Words:
    """A statement that is read word by word.

    Its methods raise NotUnderstood if the statement does not go on as they expect. The caller need not read to the end.
    `database`: for names without a database. `sql_mode`: of the session that wrote the statement, None if unknown.
    """

    def __init__(self, sql: str, database: str, sql_mode: int | None) -> None:
        self._sql = sql
        self._tokens = tokens(sql, sql_mode)
        self._database = database
        self._next = next(self._tokens, None)

    @property
    def at_end(self) -> bool:
        """Return True if all words were taken."""
        return self._next is None

    @property
    def is_broken(self) -> bool:
        """Return True if text follows that cannot be read: a quote that is never closed, or an ambiguous comment."""
        return self._next is not None and self._next[0] == "broken"

    def mentions(self, *words: str) -> bool:
        """Return True if the statement contains one of these words (given in capitals), also inside literals and
        comments.

        This is much faster than taking all words.
        """
        capitals = self._sql.upper()
        return any(word in capitals for word in words)

    def peek(self) -> str:
        """Return the next word in capitals, or the next character.

        Return "" for a quoted name, a string, unreadable text and the end.
        """
        if self._next is None or self._next[0] in ("name", "string", "broken"):
            return ""
        return self._next[1].upper()

    def take(self) -> str:
        """Return what `peek` returns, and go on to the next word."""
        word = self.peek()
        self._take()
        return word

    def skip(self, word: str) -> bool:
        """Go on to the next word if `word` is next. Return True if it was."""
        is_next = self.peek() == word
        if is_next:
            self._take()
        return is_next

    def skip_condition(self) -> bool:
        """Skip IF EXISTS or IF NOT EXISTS. Return True if it was there."""
        present = self.skip("IF")
        if present:
            self.skip("NOT")
            self.skip("EXISTS")
        return present

    def skip_past(self, word: str) -> None:
        """Go on to the word behind the next `word`."""
        while self.take() != word:
            pass

    def name(self) -> str:
        """Read a name, in quotes or not. Raise NotUnderstood if no name is next."""
        kind, text = self._take()
        if kind not in ("name", "word"):
            raise NotUnderstood
        return text

    def table(self) -> TableId:
        """Read a table's name, with or without a database before it."""
        name = self.name()
        return TableId(name, self.name()) if self.skip(".") else TableId(self._database, name)

    def listed(self, read: Callable[[], T]) -> list[T]:
        """Read a list of values with commas between them, and return the values. `read` reads one value."""
        values = [read()]
        while self.skip(","):
            values.append(read())
        return values

    def _take(self) -> Token:
        token = self._next
        if token is None or token[0] == "broken":
            raise NotUnderstood
        self._next = next(self._tokens, None)
        return token


class NotUnderstood(Exception):
    """An error: the statement has a form that this package does not know."""
