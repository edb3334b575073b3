"""The definitions of tables behind a statement: followed from the definitions before it, or lost.

A statement is understood as a whole or not at all. A definition that is guessed wrongly would put values under wrong
names. A lost definition only costs a question to the server.

Example: the table shop.orders has the columns id and note, and the binlog has
`ALTER TABLE shop.orders ADD qty INT AFTER id`. `follow` returns `known` with the columns id, qty and note, and
shop.orders in `changed`. If a word of the statement is not understood, shop.orders is in `lost` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from incsnap.ddl.alterations import Alteration, read_alter_table, read_create_index, read_drop_index
from incsnap.ddl.altered import altered
from incsnap.ddl.character_sets import known_charset, read_charset_option
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.created import read_created
from incsnap.ddl.statements import DATABASE_OPTIONS, renamed
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.ddl.table_options import one_charset
from incsnap.ddl.words import NotUnderstood
from incsnap.events import SchemaChange
from incsnap.tables import TableId

Name = TypeVar("Name", str, TableId)


@dataclass(frozen=True, slots=True)
class Followed:
    """The definitions behind a statement."""

    known: Definitions  #: what is certain behind the statement
    #: Table -> reason, for tables that exist behind the statement but whose definition is unknown, now or already
    #: before.
    lost: Mapping[TableId, str] = field(default_factory=dict)
    gone: frozenset[TableId] = frozenset()  #: tables that were dropped or renamed
    changed: frozenset[TableId] = frozenset()  #: tables whose definition in `known` is new or different


def _maybe_there(_table: TableId) -> bool:
    return False


def follow(
    change: SchemaChange,
    known: Definitions,
    *,
    letter_case: int = 0,
    absent: Callable[[TableId], bool] = _maybe_there,
) -> Followed:
    """Return the definitions behind `change`. `known` are the definitions before it.

    `letter_case`: the server's lower_case_table_names. `absent` returns True if a table certainly does not exist. A
    CREATE TABLE IF NOT EXISTS ... SELECT can only be followed then.
    """
    statement = _Statement(change, known, letter_case, absent)
    try:
        statement.follow()
    except NotUnderstood as problem:
        return _not_followed(change, known, letter_case, str(problem) or "the statement is not understood")
    return statement.followed()


def _not_followed(change: SchemaChange, known: Definitions, letter_case: int, why: str) -> Followed:
    """Return the definitions without all tables that the statement may have changed; these are lost."""
    touched = {table for table in known.tables if change.touches(table)}
    named = {_stored(table, letter_case, known.tables) for table in change.tables or ()}
    tables = {table: each for table, each in known.tables.items() if table not in touched}
    databases = known.databases
    if change.tables is None:
        name = _stored_database(change.database, letter_case, databases)
        databases = {**databases, name: ""} if name else {}
    return Followed(Definitions(tables, databases), dict.fromkeys(sorted(touched | named), why))


def _stored(table: TableId, letter_case: int, known: Iterable[TableId]) -> TableId:
    """Return the table's name as the server stores it, by its lower_case_table_names."""
    return _spelled(table, TableId(table.database.lower(), table.table.lower()), letter_case, known)


def _stored_database(name: str, letter_case: int, known: Iterable[str]) -> str:
    """Return the database's name as the server stores it, by its lower_case_table_names."""
    return _spelled(name, name.lower(), letter_case, known)


def _spelled(name: Name, lower: Name, letter_case: int, known: Iterable[Name]) -> Name:
    """Return the spelling that the server stores: that of the statement, lower case, or that of the creation."""
    if letter_case == 0:
        return name
    if letter_case == 1:
        return lower
    return next((each for each in known if str(each).lower() == str(lower)), name)


class _Statement:
    """A statement that is being followed.

    `_tables` and `_databases` are the definitions up to the last word that was read.
    """

    def __init__(
        self, change: SchemaChange, known: Definitions, letter_case: int, absent: Callable[[TableId], bool]
    ) -> None:
        self._change, self._before, self._letter_case, self._absent = change, known, letter_case, absent
        self._tables, self._databases = dict(known.tables), dict(known.databases)
        self._lost: dict[TableId, str] = {}
        self._gone: set[TableId] = set()

    def follow(self) -> None:
        """Read the statement. Raise NotUnderstood if this is not possible; nothing was followed then."""
        session = self._change.session
        if session.client == "binary" and not self._change.sql.isascii():
            raise NotUnderstood("the client's character set is binary, so the texts in the statement are not certain")
        words = Clauses(self._change.sql, session)
        match words.take():
            case "TRUNCATE":
                pass
            case "RENAME":
                tables = renamed(words)
                words.must_end()
                for old, new in tables:
                    self._rename(self._stored(old), self._stored(new))
            case "CREATE":
                self._create(words)
            case "ALTER":
                self._alter(words)
            case "DROP":
                self._drop(words)
            case _:
                raise words.wrong()

    def followed(self) -> Followed:
        """Return the definitions behind the statement, after `follow`."""
        before = self._before.tables
        changed = {table for table, definition in self._tables.items() if before.get(table) != definition}
        known = Definitions(self._tables, self._databases)
        return Followed(known, self._lost, frozenset(self._gone), frozenset(changed))

    def _database(self, name: str) -> str:
        return _stored_database(name, self._letter_case, self._databases)

    def _stored(self, table: TableId) -> TableId:
        return _stored(table, self._letter_case, self._tables)

    def _create(self, words: Clauses) -> None:
        kind = words.skip_any("UNIQUE", "FULLTEXT", "SPATIAL")
        match words.take():
            case "INDEX":
                table, alteration = read_create_index(words, kind)
                self._change_table(self._stored(table), alteration)
            case "TABLE" if not kind:
                self._create_table(words)
            case "DATABASE" | "SCHEMA" if not kind:
                conditional = words.skip_condition()
                name = self._database(words.name())
                charset = _database_charset(words) or self._change.session.server
                if not conditional or self._change.has_xid:
                    self._databases[name] = charset and known_charset(charset)
            case "TEMPORARY" if not kind:
                pass  # only its own session sees a temporary table
            case _:
                raise words.wrong()

    def _create_table(self, words: Clauses) -> None:
        conditional = words.skip_condition()
        table = self._stored(words.table())
        if table in self._tables:
            if conditional and not self._change.has_xid:
                return
            raise NotUnderstood(f"{table} is known, and is created nevertheless")
        bracket = words.skip("(")
        if words.skip("LIKE"):
            source = self._stored(words.table())
            if bracket:
                words.expect(")")
            words.must_end()
            definition = self._tables.get(source)
            why = f"the definition of {source}, of which it is a copy, is not known"
        elif bracket:
            definition, why = read_created(words, table, self._databases.get(self._database(table.database), "")), ""
        else:
            raise words.wrong()
        if conditional and not self._is_made(table):
            definition, why = None, "a table or view of its name may have been there before the statement"
        self._set_table(table, definition, why)

    def _is_made(self, table: TableId) -> bool:
        """Return True if the statement, a CREATE TABLE IF NOT EXISTS, certainly made the table.

        The server logs the statement where there is such a table or view, too, and does nothing then. It logs a
        CREATE TABLE IF NOT EXISTS ... SELECT only if it makes the table, but a user may write what it logs.
        """
        return self._change.has_xid or (self._change.in_transaction and self._absent(table))

    def _alter(self, words: Clauses) -> None:
        if words.skip_any("DATABASE", "SCHEMA"):
            unnamed = words.peek() in DATABASE_OPTIONS
            name = self._change.session.database if unnamed else words.name()
            charset = _database_charset(words)
            if charset:
                self._databases[self._database(name)] = charset
            return
        words.expect("TABLE")
        table = self._stored(words.table())
        self._change_table(table, read_alter_table(words))

    def _drop(self, words: Clauses) -> None:
        match words.take():
            case "TABLE" | "TABLES":
                words.skip_condition()
                dropped = [self._stored(table) for table in words.listed(words.table)]
                words.skip_any("RESTRICT", "CASCADE")
                words.must_end()
                for table in dropped:
                    self._remove(table)
            case "INDEX":
                named, alteration = read_drop_index(words)
                self._change_table(self._stored(named), alteration)
            case "DATABASE" | "SCHEMA":
                words.skip_condition()
                database = self._database(words.name())
                words.must_end()
                for table in [table for table in self._tables if self._database(table.database) == database]:
                    self._remove(table)
                self._databases.pop(database, None)
            case "TEMPORARY":
                pass
            case _:
                raise words.wrong()

    def _change_table(self, table: TableId, alteration: Alteration) -> None:
        before = self._tables.get(table)
        if before is None:
            self._lost[table] = "the table's definition before the statement is not known"
        elif before.charset:
            self._tables[table] = altered(before, alteration)
        elif alteration.changes_rows:
            raise NotUnderstood("of the table's definition before the statement only the columns are known")
        if alteration.new_name is not None:
            self._rename(table, self._stored(alteration.new_name))

    def _rename(self, old: TableId, new: TableId) -> None:
        definition = self._tables.get(old)
        why = self._lost.pop(old, f"the definition of {old}, which was renamed, is not known")
        if old != new:
            self._remove(old)
        self._set_table(new, definition, why)

    def _remove(self, table: TableId) -> None:
        self._tables.pop(table, None)
        self._lost.pop(table, None)
        self._gone.add(table)

    def _set_table(self, table: TableId, definition: TableDefinition | None, why: str) -> None:
        self._gone.discard(table)
        if definition is None:
            self._tables.pop(table, None)
            self._lost[table] = why
        else:
            self._tables[table] = replace(definition, shape=replace(definition.shape, id=table))


def _database_charset(words: Clauses) -> str:
    """Read the options of a database, and return its character set; "" if they do not tell it."""
    charset = ""
    while not (words.at_end or words.peek() == ";"):
        words.skip("DEFAULT")
        named = read_charset_option(words)
        if named is None and not words.skip_option({"ENCRYPTION": "= string", "READ": "ONLY = name"}):
            raise words.wrong()
        charset = one_charset(charset, named)
    words.must_end()
    return charset
