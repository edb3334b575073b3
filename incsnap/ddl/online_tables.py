"""The tables of tools for online schema changes, as they are known at one place of the stream.

`online_ddl` follows them from statement to statement. A table belongs to a tool only if there is a trace of the tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from incsnap.tables import TableId


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
    #: What was done to a copy, as the text behind ALTER TABLE and the name; "" for a text that cannot be given
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
