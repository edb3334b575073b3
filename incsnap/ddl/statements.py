"""Which tables a statement changes, read from its text.

Conservative on purpose: what is not understood touches all tables, for it may name those of any database. That only
makes windows be read again; the other mistake would let a row of an old shape out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from incsnap.events import SchemaChange
from incsnap.tables import TableId

#: Statements that leave tables as they are (XA is looked at elsewhere).
_HARMLESS = frozenset(
    (
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
        "XA",
        "GRANT",
        "REVOKE",
        "SET",
        "FLUSH",
        "ANALYZE",
        "OPTIMIZE",
        "REPAIR",
        "CHECK",
        "CHECKSUM",
        "INSTALL",
        "UNINSTALL",
        "USE",
        "RESET",
        "KILL",
    )
)
#: What CREATE, ALTER and DROP may be about besides tables, indexes and databases.
_OTHER_OBJECTS = frozenset(
    (
        "VIEW",
        "PROCEDURE",
        "FUNCTION",
        "TRIGGER",
        "EVENT",
        "USER",
        "ROLE",
        "SERVER",
        "TABLESPACE",
        "INSTANCE",
        "RESOURCE",
        "REFERENCE",
        "LIBRARY",
        "LOGFILE",
        "MASKING",
    )
)
ROW_STATEMENTS = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH"))
"""Statements that change rows: in a row-based binlog they are never logged as text."""

ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20
"""Bits of the SQL mode, which decide what a quotation is."""

_TOKEN = r"""
      (?P<blank> [ \t-\r]+ | \#[^\n]* | --(?=[\x00-\x20\x7f]|\Z)[^\n]* | /\*(?!!).*?(?:\*/|\Z) | /\*!\d* | \*/ )
    | `(?P<name> (?:[^`]|``)* )`
    | "(?P<quoted> QUOTED )"
    | (?P<string> 'STRING' DOUBLE )
    | (?P<broken> [`"'] .* )
    | (?P<word> (?:[0-9A-Za-z_$]|[^\x00-\x7f])+ )
    | (?P<other> . )
    """

Token = tuple[str, str]
"""(kind, text): ``word`` as written, ``name`` without its quotes, ``other`` a single character."""


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


@cache
def _pattern(ansi: bool | None, backslashes: bool) -> re.Pattern[str]:
    """A backslash escapes in strings, where the mode lets it, and never in names."""

    def content(quote: str, escapes: bool) -> str:
        return rf"(?:[^{quote}\\]|{quote}{quote}|\\.)*" if escapes else f"(?:[^{quote}]|{quote}{quote})*"

    quoted = content('"', escapes=ansi is None) if ansi is not False else "(?!)"
    double = '| "' + content('"', backslashes) + '"' if ansi is False else ""
    text = _TOKEN.replace("QUOTED", quoted).replace("STRING", content("'", backslashes)).replace("DOUBLE", double)
    return re.compile(text, re.VERBOSE | re.DOTALL)


def first_word(sql: str) -> str:
    """The statement's verb in capitals."""
    for kind, text in tokens(sql):
        return text.upper() if kind == "word" else ""
    return ""


def schema_change(sql: str, database: str, *, exact: bool = True, sql_mode: int | None = None) -> SchemaChange | None:
    """What this statement changed; None for nothing. ``exact`` False: names in ``sql`` may be garbled."""
    change = _Statement(tokens(sql, sql_mode), database, sql).change()
    if change is not None and not exact:
        return SchemaChange(None, "", sql, change.truncates)
    return change


class _Statement:
    """Reads on only as far as it must. ``_Unclear`` where the statement is of a form not known here."""

    def __init__(self, sql_tokens: Iterator[Token], database: str, sql: str) -> None:
        self._tokens = sql_tokens
        self._database = database
        self._sql = sql
        self._next = next(sql_tokens, None)

    def change(self) -> SchemaChange | None:
        if self._next is None:
            return None
        verb = self._peek()
        if verb in _HARMLESS:
            return None
        try:
            self._take()
            if verb == "TRUNCATE":
                self._skip("TABLE")
                return self._tables([self._table()], truncates=True)
            if verb == "RENAME":
                return self._rename()
            if verb in ("CREATE", "ALTER", "DROP"):
                return self._definition(verb)
        except _Unclear:
            pass
        return SchemaChange(None, "", self._sql)

    def _rename(self) -> SchemaChange | None:
        if self._skip("USER"):
            return None
        if not (self._skip("TABLE") or self._skip("TABLES")):
            raise _Unclear
        tables = []
        while True:
            tables.append(self._table())
            if not self._skip("TO"):
                raise _Unclear
            tables.append(self._table())
            if not self._skip(","):
                return self._tables(tables)

    def _definition(self, verb: str) -> SchemaChange | None:
        # Between the verb and the object stand OR REPLACE, DEFINER = `u`@`h`, UNIQUE, ALGORITHM = ... and the like.
        for _ in range(24):
            word = self._word()
            if word == "TEMPORARY":
                return None  # of its session alone; never logged with rows
            if word in _OTHER_OBJECTS:
                return None
            if word in ("DATABASE", "SCHEMA"):
                self._skip_condition()
                return None if verb == "CREATE" else SchemaChange(None, self._name(), self._sql)
            if word in ("TABLE", "TABLES"):
                self._skip_condition()
                tables = [self._table()]
                while verb == "DROP" and self._skip(","):
                    tables.append(self._table())
                if verb == "ALTER":
                    tables += self._also_altered()
                return self._tables(tables)
            if word == "INDEX":
                return self._tables([self._after("ON")])
        raise _Unclear

    def _also_altered(self) -> Iterator[TableId]:
        """The new name after RENAME [TO | AS], and the other table of EXCHANGE PARTITION ... WITH TABLE."""
        while self._next is not None:
            word = self._word()
            if word == "RENAME" and not any(self._peek() == other for other in ("COLUMN", "INDEX", "KEY")):
                if not (self._skip("TO") or self._skip("AS")):
                    self._skip("=")
                yield self._table()
            elif word == "WITH" and self._skip("TABLE"):
                yield self._table()

    def _tables(self, tables: list[TableId], *, truncates: bool = False) -> SchemaChange:
        return SchemaChange(frozenset(tables), self._database, self._sql, truncates)

    def _peek(self) -> str:
        """The next word in capitals, or the next character; "" for a quoted name and at the end."""
        if self._next is None or self._next[0] in ("name", "string", "broken"):
            return ""
        return self._next[1].upper()

    def _take(self) -> Token:
        token = self._next
        if token is None or token[0] == "broken":
            raise _Unclear
        self._next = next(self._tokens, None)
        return token

    def _word(self) -> str:
        word = self._peek()
        self._take()
        return word

    def _skip(self, word: str) -> bool:
        is_next = self._peek() == word
        if is_next:
            self._take()
        return is_next

    def _skip_condition(self) -> None:
        if self._skip("IF"):
            self._skip("NOT")
            self._skip("EXISTS")

    def _after(self, word: str) -> TableId:
        while self._word() != word:
            pass
        return self._table()

    def _name(self) -> str:
        kind, text = self._take()
        if kind not in ("name", "word"):
            raise _Unclear
        return text

    def _table(self) -> TableId:
        name = self._name()
        if self._skip("."):
            return TableId(name, self._name())
        return TableId(self._database, name)


class _Unclear(Exception):
    """The statement is not of a form known here."""
