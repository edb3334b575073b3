"""Which tables are captured: Debezium's four include and exclude lists."""

from __future__ import annotations

import re
from functools import lru_cache

from pydantic import BaseModel, ConfigDict

from incsnap.tables import TableId
from signals.regex import any_matches, java_pattern

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


#: A name that is no more than that: of characters that mean themselves, with one dot at the most. A dot that is not
#: escaped stands for any character, but a name has its own dot where the pattern has it, or does not match.
_PLAIN = re.compile(r"[A-Za-z0-9_-]+(?:\\?\.[A-Za-z0-9_-]+)?")


@lru_cache(maxsize=64)
def _divided(patterns: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Plain names, in lower case, and the rest. A list of 5,000 names was compiled again for each of 5,000 tables."""
    plain = frozenset(pattern.replace("\\", "").lower() for pattern in patterns if _PLAIN.fullmatch(pattern))
    return plain, tuple(pattern for pattern in patterns if not _PLAIN.fullmatch(pattern))


def _any(patterns: tuple[str, ...], name: str) -> bool:
    plain, rest = _divided(patterns)
    return (name.isascii() and name.lower() in plain) or any_matches(rest, name, ignore_case=True)


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
            if _PLAIN.fullmatch(pattern):
                return pattern.replace("\\", "").lower() in known
            return any(any_matches((pattern,), name, ignore_case=True) for name in names)

        return tuple(pattern for pattern in self.table_include if not matches(pattern))
