"""The filter for captured tables: Debezium's four include and exclude lists."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict
from regex import Pattern

from incsnap.tables import TableId
from signals.regex import any_matches, exact_name, java_pattern

#: MySQL's own databases, which are never captured (as with Debezium's `table.ignore.builtin=true`).
BUILTIN = frozenset({"mysql", "sys", "information_schema", "performance_schema"})

_COMMA = re.compile(r"(?<!\\),")


def is_builtin(database: str) -> bool:
    """Whether the database is one of the server's own, in any letter case."""
    return database.lower() in BUILTIN


def split_list(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list. `\\,` is a comma inside a part, as in Debezium."""
    return tuple(part.strip() for part in _COMMA.split(text) if part.strip())


def pattern_problem(text: str) -> str | None:
    """Return why `text` is not a regular expression of Java, or None if it is one."""
    try:
        java_pattern(text)
    except re.error as error:
        return str(error)
    return None


def _any(patterns: tuple[str, ...], name: str) -> bool:
    """Return True if one of `patterns` matches the whole of `name`, in any letter case."""
    return any_matches(patterns, name, ignore_case=True)


def _selected(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Return True if both lists let `name` pass. An empty list lets every name pass."""
    return (not include or _any(include, name)) and not _any(exclude, name)


class TableFilter(BaseModel):
    """A filter for captured tables.

    Patterns are Java regexes. They must match the whole of `db` or `db.table`, in any letter case. The signal table is
    always included, because otherwise its rows would not be read.
    """

    model_config = ConfigDict(frozen=True)

    database_include: tuple[str, ...] = ()
    database_exclude: tuple[str, ...] = ()
    table_include: tuple[str, ...] = ()
    table_exclude: tuple[str, ...] = ()
    signal_table: TableId | None = None

    def included(self, table: TableId) -> bool:
        """Return True if `table` is captured."""
        return table == self.signal_table or (
            self.has_database(table.database) and _selected(str(table), self.table_include, self.table_exclude)
        )

    def may_include_database(self, database: str) -> bool:
        """Return True if a table of `database` may be captured, by the database lists alone.

        This decides for a DDL statement that names no table (DROP DATABASE, for example), and about the definitions to
        keep.
        """
        has_signals = self.signal_table is not None and self.signal_table.database == database
        return has_signals or self.has_database(database)

    def has_database(self, database: str) -> bool:
        """Return True if the database lists let `database` pass, and the database is not one of the server's own."""
        return not is_builtin(database) and _selected(database, self.database_include, self.database_exclude)

    def of_whole_databases(self) -> TableFilter:
        """Return the filter for all tables of the databases in which tables are captured."""
        return self.model_copy(update={"table_include": (), "table_exclude": ()})

    def in_order(self, tables: Iterable[TableId]) -> list[TableId]:
        """Return `tables` in the order of the first pattern of `table.include.list` that matches each.

        Tables of one pattern stay in the given order. Debezium reads the tables of its first snapshot in this order.
        """
        named: dict[str, int] = {}
        expressions: list[tuple[int, Pattern[str]]] = []
        for number, pattern in enumerate(self.table_include):
            if (name := exact_name(pattern)) is not None:
                named.setdefault(name.lower(), number)
            else:
                expressions.append((number, java_pattern(pattern, ignore_case=True)))

        def place(table: TableId) -> int:
            name, last = str(table), len(self.table_include)
            matching = (number for number, expression in expressions if expression.fullmatch(name))
            return min(named.get(name.lower(), last), next(matching, last))

        return sorted(tables, key=place)

    def without_match(self, tables: list[TableId]) -> tuple[str, ...]:
        """Return the patterns of `table.include.list` that match none of `tables`.

        Most of them are spelling mistakes.
        """
        names = [str(table) for table in tables]
        known = {name.lower() for name in names if name.isascii()}

        def matches(pattern: str) -> bool:
            if exact := exact_name(pattern):
                return exact.lower() in known
            return any(_any((pattern,), name) for name in names)

        return tuple(pattern for pattern in self.table_include if not matches(pattern))
