"""Which tables a statement changes, read from its text.

Conservative on purpose: what is not understood touches all tables, for it may name those of any database. That only
makes windows be read again; the other mistake would let a row of an old shape out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from incsnap.ddl.words import NotUnderstood, Words, tokens
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
#: How the options of ALTER DATABASE begin, which may stand without a database's name: then it is the session's.
_DATABASE_OPTIONS = frozenset(("DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ"))
#: Statements that change rows: in a row-based binlog they are never logged as text.
ROW_STATEMENTS = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH"))


def first_word(sql: str) -> str:
    """The statement's verb in capitals."""
    for kind, text in tokens(sql):
        return text.upper() if kind == "word" else ""
    return ""


def schema_change(sql: str, database: str, *, exact: bool = True, sql_mode: int | None = None) -> SchemaChange | None:
    """Return what this statement changed; None for nothing. ``exact`` False: names in ``sql`` may be garbled."""
    change = _Statement(sql, database, sql_mode).change()
    if change is not None and not exact:
        return SchemaChange(None, "", sql, change.truncates, moves_rows_in=change.moves_rows_in)
    return change


class _Statement:
    def __init__(self, sql: str, database: str, sql_mode: int | None) -> None:
        self._sql, self._database = sql, database
        self._words = Words(sql, database, sql_mode)
        self._moves_rows_in = False

    def change(self) -> SchemaChange | None:
        words = self._words
        if words.at_end or (verb := words.peek()) in _HARMLESS:
            return None
        try:
            words.take()
            if verb == "TRUNCATE":
                words.skip("TABLE")
                return self._tables([words.table()], truncates=True)
            if verb == "RENAME":
                if words.skip("USER"):
                    return None
                self._moves_rows_in = True
                return self._tables(chain.from_iterable(renamed(words)))
            if verb in ("CREATE", "ALTER", "DROP"):
                return self._definition(verb)
        except NotUnderstood:
            pass
        return SchemaChange(None, "", self._sql, moves_rows_in=self._moves_rows_in)

    def _definition(self, verb: str) -> SchemaChange | None:
        words = self._words
        # Between the verb and the object stand OR REPLACE, DEFINER = `u`@`h`, UNIQUE, ALGORITHM = ... and the like.
        for _ in range(24):
            word = words.take()
            if word == "TEMPORARY":
                return None  # of its session alone; never logged with rows
            if word in _OTHER_OBJECTS:
                return None
            if word in ("DATABASE", "SCHEMA"):
                words.skip_condition()
                if verb == "CREATE":
                    return None
                unnamed = verb == "ALTER" and words.peek() in _DATABASE_OPTIONS
                return SchemaChange(None, self._database if unnamed else words.name(), self._sql)
            if word in ("TABLE", "TABLES"):
                words.skip_condition()
                tables = [words.table()]
                while verb == "DROP" and words.skip(","):
                    tables.append(words.table())
                return self._tables([*tables, *self._also_altered()] if verb == "ALTER" else tables)
            if word == "INDEX":
                words.skip_past("ON")
                return self._tables([words.table()])
        raise NotUnderstood

    def _tables(self, tables: Iterable[TableId], *, truncates: bool = False) -> SchemaChange:
        touched = frozenset(tables)
        return SchemaChange(touched, self._database, self._sql, truncates, moves_rows_in=self._moves_rows_in)

    def _also_altered(self) -> Iterator[TableId]:
        """Yield the new name of an ALTER TABLE, and the other table of EXCHANGE PARTITION ... WITH TABLE."""
        words = self._words
        if not words.mentions("RENAME", "EXCHANGE", "IMPORT"):
            return
        while not words.at_end:
            word = words.take()
            if word == "RENAME" and (table := new_name(words)) is not None:
                self._moves_rows_in = True
                yield table
            elif word == "WITH" and words.skip("TABLE"):
                yield words.table()
            elif word in ("EXCHANGE", "IMPORT") and words.peek() in ("PARTITION", "TABLESPACE"):
                self._moves_rows_in = True


def renamed(words: Words) -> list[tuple[TableId, TableId]]:
    """The old and the new name of each table of a RENAME TABLE, of which the first word was taken."""
    if not (words.skip("TABLE") or words.skip("TABLES")):
        raise NotUnderstood
    tables = []
    while True:
        old = words.table()
        if not words.skip("TO"):
            raise NotUnderstood
        tables.append((old, words.table()))
        if not words.skip(","):
            return tables


def new_name(words: Words) -> TableId | None:
    """The table's new name, where RENAME of an ALTER TABLE was just taken; None where a part of it is renamed."""
    if words.peek() in ("COLUMN", "INDEX", "KEY"):
        return None
    _ = words.skip("TO") or words.skip("AS") or words.skip("=")
    return words.table()
