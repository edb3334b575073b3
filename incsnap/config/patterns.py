"""Which tables are captured: Debezium's four include and exclude lists."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from incsnap.tables import TableId
from signals.regex import any_matches, exact_name, java_pattern

#: MySQL's own databases are never captured (Debezium: ``table.ignore.builtin=true``).
BUILTIN = frozenset({"mysql", "sys", "information_schema", "performance_schema"})

_COMMA = re.compile(r"(?<!\\),")


def split_list(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated list; ``\\,`` is a comma inside a part, as in Debezium."""
    return tuple(part.strip() for part in _COMMA.split(text) if part.strip())


def pattern_problem(text: str) -> str | None:
    """Why ``text`` is not a regular expression, or ``None`` when it is one."""
    try:
        java_pattern(text)
    except re.error as error:
        return str(error)
    return None


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return any_matches(patterns, name, ignore_case=True)


class TableFilter(BaseModel):
    """Patterns are Java regexes, matched wholly and without regard to letter case: against ``db`` and ``db.table``.

    The signal table is always included, whatever the lists say, or its rows would not be seen.
    """

    model_config = ConfigDict(frozen=True)

    database_include: tuple[str, ...] = ()
    database_exclude: tuple[str, ...] = ()
    table_include: tuple[str, ...] = ()
    table_exclude: tuple[str, ...] = ()
    signal_table: TableId | None = None

    def included(self, table: TableId) -> bool:
        if table == self.signal_table:
            return True
        database, name = table.database, str(table)
        if database.lower() in BUILTIN:
            return False
        if self.database_include and not _any(self.database_include, database):
            return False
        if self.database_exclude and _any(self.database_exclude, database):
            return False
        if self.table_include and not _any(self.table_include, name):
            return False
        return not (self.table_exclude and _any(self.table_exclude, name))

    def may_include_database(self, database: str) -> bool:
        """Can any table of ``database`` be included?  For DDL that names no table."""
        if self.signal_table is not None and self.signal_table.database == database:
            return True
        if database.lower() in BUILTIN:
            return False
        if self.database_include and not _any(self.database_include, database):
            return False
        return not (self.database_exclude and _any(self.database_exclude, database))

    def without_match(self, tables: list[TableId]) -> tuple[str, ...]:
        """The patterns of ``table.include.list`` that none of ``tables`` matches: mostly a spelling mistake."""
        names = [str(table) for table in tables]
        known = {name.lower() for name in names if name.isascii()}

        def matches(pattern: str) -> bool:
            if exact := exact_name(pattern):
                return exact.lower() in known
            return any(_any((pattern,), name) for name in names)

        return tuple(pattern for pattern in self.table_include if not matches(pattern))
