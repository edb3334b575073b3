"""The tables that a statement changes, read from its text.

This is conservative on purpose: a statement that is not understood touches all tables, because it may name any of them.
That only makes the job read windows again. The opposite mistake would send a row of an old shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from incsnap.ddl.words import NotUnderstood, Words, tokens
from incsnap.events import SchemaChange
from incsnap.tables import TableId

#: Statements that leave tables as they are (`xa_statements` reads XA).
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
#: Objects of CREATE, ALTER and DROP other than tables, indexes and databases.
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
        "COMPRESSION_DICTIONARY",  # of Percona Server
    )
)
#: First words of the options of ALTER DATABASE. If they follow at once, the statement is about the session's database.
DATABASE_OPTIONS = frozenset(("DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ"))
#: Statements that change rows, SELECT by a stored function. A row-based binlog never has their text.
ROW_STATEMENTS = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "SELECT"))


def first_word(sql: str) -> str:
    """Return the first word of the statement in capitals; "" if it begins with something else."""
    for kind, text in tokens(sql):
        return text.upper() if kind == "word" else ""
    return ""


def schema_change(sql: str, database: str, *, exact: bool = True, sql_mode: int | None = None) -> SchemaChange | None:
    """Return the change that the statement makes to tables; None if it changes none.

    `database`: for names without a database. `exact` is False if names in `sql` may be garbled: the change then touches
    all tables. `sql_mode`: of the session, None if unknown.
    """
    change = _Statement(sql, database, sql_mode).change()
    if change is not None and not exact:
        return SchemaChange(None, "", sql, change.truncates, moves_rows_in=change.moves_rows_in)
    return change


class _Statement:
    """A statement whose tables are being read."""

    def __init__(self, sql: str, database: str, sql_mode: int | None) -> None:
        self._sql, self._database = sql, database
        self._words = Words(sql, database, sql_mode)
        self._moves_rows_in = False
        self._moved_away: frozenset[TableId] = frozenset()
        self._taken_names: frozenset[TableId] = frozenset()

    def change(self) -> SchemaChange | None:
        """Return the change that the statement makes to tables; None if it changes none."""
        words = self._words
        if words.at_end or (verb := words.peek()) in _HARMLESS or verb in ROW_STATEMENTS:
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
                pairs = renamed(words)
                names = former_names(pairs)
                self._moved_away = _absent(names.values(), names)
                self._taken_names = frozenset(new for new, old in names.items() if new.folded != old.folded)
                return self._tables(chain.from_iterable(pairs))
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
                return None  # only its own session sees it, and its rows are never logged
            if word in _OTHER_OBJECTS:
                return None
            if word in ("DATABASE", "SCHEMA"):
                words.skip_condition()
                if verb == "CREATE":
                    return None
                unnamed = verb == "ALTER" and words.peek() in DATABASE_OPTIONS
                return SchemaChange(None, self._database if unnamed else words.name(), self._sql)
            if word in ("TABLE", "TABLES"):
                words.skip_condition()
                tables = words.listed(words.table) if verb == "DROP" else [words.table()]
                return self._tables([*tables, *self._also_altered(tables[0])] if verb == "ALTER" else tables)
            if word == "INDEX":
                words.skip_past("ON")
                return self._tables([words.table()])
        raise NotUnderstood

    def _tables(self, tables: Iterable[TableId], *, truncates: bool = False) -> SchemaChange:
        touched = frozenset(tables)
        return SchemaChange(
            touched,
            self._database,
            self._sql,
            truncates,
            moves_rows_in=self._moves_rows_in,
            moved_away=self._moved_away,
            taken_names=self._taken_names,
        )

    def _also_altered(self, altered: TableId) -> Iterator[TableId]:
        """Yield the new name of an ALTER TABLE, and the other table of EXCHANGE PARTITION ... WITH TABLE."""
        words = self._words
        if not words.mentions("RENAME", "EXCHANGE", "IMPORT"):
            return
        while not words.at_end:
            word = words.take()
            if word == "RENAME" and (table := new_name(words)) is not None:
                self._moves_rows_in = True
                self._moved_away, self._taken_names = _absent([altered], [table]), _absent([table], [altered])
                yield table
            elif word == "WITH" and words.skip("TABLE"):
                yield words.table()
            elif word in ("EXCHANGE", "IMPORT") and words.peek() in ("PARTITION", "TABLESPACE"):
                self._moves_rows_in = True


def moved_in(sql: str, database: str, sql_mode: int | None = None) -> dict[TableId, TableId | None]:
    """Return the tables that have their rows from another table or from a file, with the other table's name.

    The name is that before the statement, and None for a file. A name that another table had before the statement is
    left out: there one table has taken the place of another. The result is empty if the statement moves no table or is
    not understood. Arguments are those of `schema_change`.

    >>> moved_in("RENAME TABLE tmp.t TO d.t", "d")
    {TableId(database='d', table='t'): TableId(database='tmp', table='t')}
    """
    words = Words(sql, database, sql_mode)
    try:
        verb = words.take()
        if verb == "RENAME":
            return _renamed_tables(renamed(words))
        if verb == "ALTER" and words.skip("TABLE"):
            return _of_alter(words)
    except NotUnderstood:
        pass
    return {}


def taken_over(sql: str, database: str, sql_mode: int | None = None) -> frozenset[TableId]:
    """Return the names that one table had before the statement and another one has behind it. Arguments are those of
    `schema_change`.

    >>> taken_over("RENAME TABLE t TO t_old, t_new TO t", "d")
    frozenset({TableId(database='d', table='t')})
    """
    words = Words(sql, database, sql_mode)
    try:
        names = former_names(renamed(words)) if words.take() == "RENAME" else {}
    except NotUnderstood:
        return frozenset()
    return frozenset(names) & frozenset(names.values())


def _renamed_tables(pairs: list[tuple[TableId, TableId]]) -> dict[TableId, TableId | None]:
    """Return the tables under names that no table had before the statement, with their former names."""
    names = former_names(pairs)
    taken = set(names.values())
    return {new: old for new, old in names.items() if new not in taken}


def former_names(pairs: list[tuple[TableId, TableId]]) -> dict[TableId, TableId]:
    """Return the tables under new names with their names before the statement, which renames from left to right."""
    names: dict[TableId, TableId] = {}
    for old, new in pairs:
        names[new] = names.pop(old, old)
    return names


def _absent(before: Iterable[TableId], after: Iterable[TableId]) -> frozenset[TableId]:
    """Return the names in `before` that are not in `after`. Letter case does not tell names apart."""
    present = {table.folded for table in after}
    return frozenset(table for table in before if table.folded not in present)


def _of_alter(words: Words) -> dict[TableId, TableId | None]:
    """Return what `moved_in` returns for an ALTER TABLE. `words` stands behind TABLE."""
    table = words.table()
    if not words.mentions("RENAME", "IMPORT"):
        return {}
    while not (words.at_end or words.is_broken):
        word = words.take()
        if word == "RENAME" and (new := new_name(words)) is not None:
            return {new: table} if new != table else {}
        if word == "IMPORT" and words.peek() == "TABLESPACE":
            return {table: None}
    return {}


def renamed(words: Words) -> list[tuple[TableId, TableId]]:
    """Return (old name, new name) for each table of a RENAME TABLE. `words` stands behind RENAME.

    Raise NotUnderstood if the statement goes on in another way.
    """
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
    """Return the table's new name from an ALTER TABLE; None if a column or an index is renamed.

    `words` stands behind RENAME.
    """
    if words.peek() in ("COLUMN", "INDEX", "KEY"):
        return None
    _ = words.skip("TO") or words.skip("AS") or words.skip("=")
    return words.table()
