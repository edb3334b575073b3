"""The changes of definitions in a statement, as Debezium shows them on the schema change topic.

One statement may be several changes (`DROP TABLE a, b`; `RENAME TABLE a TO b, c TO d`), each of one table or of a whole
database. Indexes that are not unique, and ALTER DATABASE, do not change what Debezium shows of a definition. Debezium
shows their text alone, and only beside the DDL of tables that are not captured. Views, routines and TRUNCATE are no
changes. Neither are events, users and FLUSH, which Debezium shows as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from incsnap.ddl.statements import DATABASE_OPTIONS, new_name, renamed
from incsnap.ddl.words import NotUnderstood, Words, trimmed
from incsnap.tables import TableId

_OBJECTS = ("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA")
#: The beginning of a RENAME TABLE, up to its first table.
_RENAME = re.compile(r"\s*RENAME\s+TABLES?\s+", re.IGNORECASE)
#: A comma, or a comment or quoted name that may have commas.
_COMMA = re.compile(r"/\*.*?\*/|`[^`]*`|\"[^\"]*\"|,", re.DOTALL)
#: Words that may stand between the verb and its object.
_BETWEEN = frozenset(("OR", "REPLACE", "UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE", "IGNORE"))


@dataclass(frozen=True, slots=True)
class TableStatement:
    """A change of one table's definition, or of a database."""

    #: DATABASE: a change of a database; TEXT: a statement of which only the text is shown
    type: Literal["CREATE", "ALTER", "DROP", "DATABASE", "TEXT"]
    database: str  #: database of the table, or the changed database
    table: TableId | None  #: None for DATABASE and TEXT
    ddl: str  #: the statement that the record shows; without outer comments, except for TEXT
    #: Whether it is CREATE TABLE IF NOT EXISTS with columns of its own, which does nothing if there is such a table.
    #: MySQL logs it all the same.
    if_absent: bool = False
    index: str = ""  #: name of the unique index that it creates; "" for none


def table_statements(sql: str, database: str, sql_mode: int | None = None) -> tuple[TableStatement, ...]:
    """Return the changes in a statement; () if it defines no table or is not understood.

    `database`: for names without a database. `sql_mode`: of the session, None if unknown.
    """
    words = Words(sql, database, sql_mode)
    try:
        verb = words.take()
        if verb == "RENAME":
            names = [new for _, new in renamed(words)]
            texts = _renames(trimmed(sql, sql_mode), len(names))
            return tuple(_of("ALTER", new, text) for new, text in zip(names, texts, strict=True))
        if verb in ("CREATE", "ALTER", "DROP"):
            return tuple(
                each if each.type == "TEXT" else replace(each, ddl=trimmed(each.ddl, sql_mode))
                for each in _defined(verb, words, sql, database)
            )
    except NotUnderstood:
        pass
    return ()


def _renames(sql: str, count: int) -> list[str]:
    """Return `RENAME TABLE a TO b` for each of the `count` tables of the statement, in the words of the statement."""
    begin = _RENAME.match(sql)
    places = [each.start() for each in _COMMA.finditer(sql) if each[0] == ","]
    if count == 1 or begin is None or len(places) != count - 1:
        return [sql] * count
    borders = [begin.end() - 1, *places, len(sql)]
    clauses = [sql[first + 1 : end].strip() for first, end in pairwise(borders)]
    return [begin[0] + clause for clause in clauses]


def _of(type_: Literal["CREATE", "ALTER", "DROP"], table: TableId, ddl: str) -> TableStatement:
    return TableStatement(type_, table.database, table, ddl)


def _defined(verb: str, words: Words, sql: str, database: str) -> Iterator[TableStatement]:
    unique = False
    while (word := words.take()) not in _OBJECTS:
        unique |= word == "UNIQUE"
        if word not in _BETWEEN:
            return  # a temporary table or another object
    if word in ("DATABASE", "SCHEMA"):
        words.skip_condition()
        if verb != "ALTER":
            yield TableStatement("DATABASE", words.name(), None, sql)
        else:
            yield TableStatement("TEXT", database if words.peek() in DATABASE_OPTIONS else words.name(), None, sql)
    elif word == "INDEX":
        index = words.name()
        words.skip_past("ON")
        table = words.table()
        may_be_key = verb == "CREATE" and unique
        text = TableStatement("TEXT", table.database, None, sql)
        yield TableStatement("ALTER", table.database, table, sql, index=index) if may_be_key else text
    elif verb == "CREATE":
        conditional = words.skip_condition()
        table = words.table()
        words.skip("(")
        # Debezium shows the definition of a table that is made LIKE another, whether the statement makes it or not.
        yield TableStatement("CREATE", table.database, table, sql, conditional and words.peek() != "LIKE")
    elif verb == "ALTER":
        yield _of("ALTER", _altered(words), sql)
    else:
        conditional = words.skip_condition()
        tables = words.listed(words.table)
        tail = next((f" {how}" for how in ("RESTRICT", "CASCADE") if words.skip(how)), "")
        for table in tables:  # like Debezium: one statement per table
            yield _of("DROP", table, f"DROP TABLE {'IF EXISTS ' if conditional else ''}{table.sql}{tail}")


def _altered(words: Words) -> TableId:
    """Return the table under its name behind the statement."""
    table = words.table()
    if not words.mentions("RENAME"):
        return table
    while not (words.at_end or words.is_broken):
        if words.take() == "RENAME":
            table = new_name(words) or table
    return table
