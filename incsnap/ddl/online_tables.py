"""The tables of tools for online schema changes, as they are known at one place of the stream.

`online_ddl` follows them from statement to statement. A table belongs to a tool only if there is a trace of the tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from incsnap.events import UNKNOWN
from incsnap.tables import TableId

#: Most characters of a copy's alterations that are kept. They are in a file of the checkpoint.
_MOST_TEXT = 65_536
_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_ALTERED = re.compile(rf"\s*ALTER\s+(?:/\*.*?\*/\s*)?TABLE\s+{_NAME}(?:\s*\.\s*{_NAME})?\s+(.*?)\s*", re.S | re.I)
#: Alterations of a copy that are the tool's own: they keep the counter of AUTO_INCREMENT.
_COUNTER = re.compile(r"AUTO_INCREMENT\s*=\s*\d+", re.IGNORECASE)
#: The end of each alteration by spirit that MySQL can do with it.
_ALGORITHM = re.compile(r"\s*,\s*ALGORITHM\s*=\s*COPY$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OnlineTable:
    """A table that a tool has made, or that may become one."""

    table: TableId  #: the table
    tool: str  #: gh-ost, pt-online-schema-change or spirit
    #: copy: gets the rows of `of` and later its name; former: was `of` before the copy took its place; log: a table of
    #: the tool's own
    role: Literal["copy", "former", "log"]
    of: TableId | None = None  #: the table that the tool alters; None for a log, and while it is not known
    #: What proves that the table is a tool's; "": nothing does. The table is then captured like any other.
    trace: str = ""
    #: What was done to a copy since it was created, as the text behind ALTER TABLE and the name; "" for a text that
    #: cannot be given. `UNKNOWN` if the creation was not seen.
    alterations: tuple[str, ...] = ()
    #: Whether all changes of `of` reach the copy or, in a revert, the former: False once the tool's triggers are gone,
    #: and behind a statement that has changed rows of `of` without events.
    is_fed: bool = True
    #: Whether a copy was created with exactly the columns of another table and has no rows yet. Its statements are not
    #: reported, even before there is a trace.
    is_alike: bool = False

    @property
    def is_certain(self) -> bool:
        """True if the table belongs to a tool."""
        return bool(self.trace)

    @property
    def is_like_spirits(self) -> bool:
        """True if the copy was altered as spirit does. A person has no reason to ask for ALGORITHM=COPY."""
        return any(map(_ALGORITHM.search, self.alterations))

    def altered(self, sql: str) -> OnlineTable:
        """Return the copy behind the statement `sql`, which alters the copy."""
        match = _ALTERED.fullmatch(sql)
        text = match[1] if match is not None else ""
        if _COUNTER.fullmatch(text):
            return self
        is_long = sum(map(len, self.alterations)) + len(text) > _MOST_TEXT
        return replace(self, alterations=UNKNOWN if is_long else (*self.alterations, text))

    def statements_about(self, of: TableId) -> tuple[str, ...]:
        """Return what was done to the copy, as statements about the table `of`; `UNKNOWN` if that is not known."""
        if not all(self.alterations):
            return UNKNOWN
        return tuple(f"ALTER TABLE {of.sql} {_ALGORITHM.sub('', text)}" for text in self.alterations)

    def __str__(self) -> str:
        return f"{self.table} belongs to {self.tool}{f', which alters {self.of}' if self.of else ''} ({self.trace})"


@dataclass(frozen=True, slots=True)
class OnlineTables:
    """The tables of all tools at one place of the stream."""

    tables: tuple[OnlineTable, ...] = ()  #: those that are a tool's, or may become one
    #: Tables that a tool has renamed or dropped and whose copy has not taken their name yet. Their rows are all in the
    #: copy.
    away: tuple[TableId, ...] = ()

    def certain(self) -> Iterator[OnlineTable]:
        """Yield the tables that belong to tools."""
        return (each for each in self.tables if each.is_certain)

    def altered(self) -> Iterator[TableId]:
        """Yield the tables that tools alter, also those that are away."""
        yield from self.away
        copies = (each for each in self.certain() if each.role == "copy" and each.is_fed)
        yield from (each.of for each in copies if each.of is not None)

    def has(self, key: str) -> bool:
        """Return True if a table with the name `key`, as `TableId.folded` gives it, is a tool's or may become one."""
        return any(each.table.folded == key for each in self.tables)

    def names(self) -> frozenset[str]:
        """Return the names of the tables that belong to tools, as `TableId.folded` gives them."""
        return frozenset(each.table.folded for each in self.certain())

    def without_tables_of_tools(self, tables: Iterable[TableId]) -> list[TableId]:
        """Return those of `tables` that belong to no tool, in their order."""
        names = self.names()
        return [table for table in tables if table.folded not in names]
