"""What a statement says of each table it defines, as Debezium tells it on the schema change topic.

One statement may be several changes (``DROP TABLE a, b``; ``RENAME TABLE a TO b, c TO d``), each of one table or of a
whole database. Statements that leave definitions as Debezium shows them are none: other indexes than unique ones,
views, routines, ALTER DATABASE, TRUNCATE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from incsnap.ddl.statements import tokens
from incsnap.tables import TableId

_OBJECTS = ("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA")
#: Words that may stand between the verb and its object.
_BETWEEN = frozenset(("OR", "REPLACE", "UNIQUE", "ONLINE", "OFFLINE", "IGNORE"))


@dataclass(frozen=True, slots=True)
class TableStatement:
    """``type``: CREATE, ALTER, DROP of ``table``, or DATABASE: then ``table`` is None. ``ddl``: what is shown."""

    type: Literal["CREATE", "ALTER", "DROP", "DATABASE"]
    database: str
    table: TableId | None
    ddl: str


def table_statements(sql: str, database: str, sql_mode: int | None = None) -> tuple[TableStatement, ...]:
    """``database``: of names that are written without one; ``sql_mode``: of the session. () for what defines no table,
    and for what is not understood."""
    words = _Words(sql, sql_mode)
    try:
        verb = words.next()
        if verb == "RENAME":
            if words.next() not in ("TABLE", "TABLES"):
                return ()
            return tuple(_of("ALTER", table, sql) for table in _renamed(words, database))
        if verb in ("CREATE", "ALTER", "DROP"):
            return tuple(_defined(verb, words, sql, database))
    except _NotUnderstood:
        pass
    return ()


def _of(type_: Literal["CREATE", "ALTER", "DROP"], table: TableId, ddl: str) -> TableStatement:
    return TableStatement(type_, table.database, table, ddl)


def _defined(verb: str, words: _Words, sql: str, database: str) -> Iterator[TableStatement]:
    unique = False
    while (word := words.next()) not in _OBJECTS:
        unique |= word == "UNIQUE"
        if word not in _BETWEEN:
            return  # TEMPORARY, and other objects
    if word in ("DATABASE", "SCHEMA"):
        words.condition()
        if verb != "ALTER":
            yield TableStatement("DATABASE", words.name(), None, sql)
    elif word == "INDEX":
        if verb == "CREATE" and unique:
            while words.next() != "ON":
                pass
            yield _of("ALTER", words.table(database), sql)
    elif verb == "CREATE":
        words.condition()
        yield _of("CREATE", words.table(database), sql)
    elif verb == "ALTER":
        yield _of("ALTER", _new_name(words, words.table(database), database), sql)
    else:
        conditional = words.condition()
        tables = [words.table(database)]
        while words.skip(","):
            tables.append(words.table(database))
        tail = next((f" {how}" for how in ("RESTRICT", "CASCADE") if words.skip(how)), "")
        for table in tables:  # Debezium makes one statement a table of it
            yield _of("DROP", table, f"DROP TABLE {'IF EXISTS ' if conditional else ''}{table.sql}{tail}")


def _renamed(words: _Words, database: str) -> list[TableId]:
    tables = []
    while True:
        words.table(database)
        if not words.skip("TO"):
            raise _NotUnderstood
        tables.append(words.table(database))
        if not words.skip(","):
            return tables


def _new_name(words: _Words, table: TableId, database: str) -> TableId:
    while not words.at_end:
        if words.next() == "RENAME" and words.peek() not in ("COLUMN", "INDEX", "KEY"):
            _ = words.skip("TO") or words.skip("AS") or words.skip("=")
            table = words.table(database)
    return table


class _Words:
    def __init__(self, sql: str, sql_mode: int | None) -> None:
        self._tokens = list(tokens(sql, sql_mode))
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def peek(self) -> str:
        """The next word in capitals or character; "" for a quoted name and at the end."""
        if self.at_end:
            return ""
        kind, text = self._tokens[self._at]
        return text.upper() if kind in ("word", "other") else ""

    def next(self) -> str:
        if self.at_end:
            raise _NotUnderstood
        word = self.peek()
        self._at += 1
        return word

    def skip(self, word: str) -> bool:
        is_next = self.peek() == word
        self._at += is_next
        return is_next

    def condition(self) -> bool:
        """IF [NOT] EXISTS"""
        present = self.skip("IF")
        if present:
            self.skip("NOT")
            self.skip("EXISTS")
        return present

    def name(self) -> str:
        if self.at_end or self._tokens[self._at][0] not in ("name", "word"):
            raise _NotUnderstood
        self._at += 1
        return self._tokens[self._at - 1][1]

    def table(self, database: str) -> TableId:
        name = self.name()
        return TableId(name, self.name()) if self.skip(".") else TableId(database, name)


class _NotUnderstood(Exception):
    """Not of a form known here."""
