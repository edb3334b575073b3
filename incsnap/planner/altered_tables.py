"""The tables that statements have changed and that are not compared yet (`old_rows`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from incsnap.ddl.column_origins import origins_behind, read_alteration
from incsnap.ddl.column_statements import NO_STATEMENT, ColumnStatements
from incsnap.ddl.old_rows import Origins
from incsnap.ddl.online_names import GH_OST, PT_OSC
from incsnap.ddl.statements import first_word
from incsnap.errors import shorten
from incsnap.events import UNKNOWN, SchemaChange
from incsnap.tables import TableId

#: Most characters of a statement in the log and in notifications.
_MOST_SQL = 150


@dataclass(frozen=True, slots=True)
class AlteredTable:
    """A table that statements have changed and that is not compared yet."""

    table: TableId  #: the table
    sql: str = ""  #: the last of the statements, for people
    #: where columns come from (`ddl.old_rows.Origins`), as pairs; None if a statement was not understood
    origins: tuple[tuple[str, str | None], ...] | None = ()
    is_away: bool = False  #: whether the last statement renames tables: it may have taken this one away for a moment
    is_alter: bool = False  #: whether the last statement is an ALTER TABLE
    statements: ColumnStatements = NO_STATEMENT  #: the statements that have defined columns
    is_made: bool = False  #: whether a CREATE TABLE has made the table, before the statements
    is_redefined: bool = False  #: whether an ALTER TABLE may have changed columns, or the key that tells rows apart
    is_copied: bool = False  #: whether gh-ost or pt-online-schema-change has filled a copy of the table

    def behind(self, change: SchemaChange) -> AlteredTable:
        """Return the table behind one more statement. A swap of an online schema change is its ALTER TABLE."""
        alteration = change.online.alteration_of(self.table)
        origins: Origins | None = None if self.origins is None else dict(self.origins)
        about = statements_about(self.table, change)
        read = [read_alteration(sql, change.session) for sql in about]
        understood = [each for each in read if each is not None]
        statements = self.statements.behind(understood, self._added())
        for each in read:
            origins = origins_behind(origins, each, change.online.tool_of(self.table))
        if change.tables is None:
            origins = None  # it may be about this table
            # An ALTER may define any column, and a RENAME may bring another table. Others define no column of a table.
            is_alter = first_word(change.sql) == "ALTER" and not change.database
            is_rename = change.moves_rows_in and not is_alter
            unread, others = statements.unread + is_alter, statements.others + is_rename
            statements = replace(statements, unread=unread, others=others)
        elif alteration in (None, UNKNOWN) and self._is_replaced(change):
            origins = None  # the columns are those of another table
            # What earlier statements have defined is hidden, too.
            had_others = bool(self.sql) and not self.is_away
            statements = replace(statements, others=statements.others + (2 if had_others else 1))
        elif any(first_word(sql) == "ALTER" for sql, each in zip(about, read, strict=True) if each is None):
            statements = replace(statements, unread=statements.unread + 1)
        return AlteredTable(
            self.table,
            shorten(change.online.text_of(self.table) or change.sql, _MOST_SQL),
            None if origins is None else tuple(sorted(origins.items())),
            is_away=change.moves_rows_in and alteration is None,
            is_alter=alteration is not None or change.sql.lstrip()[:5].upper() == "ALTER",
            statements=statements,
            is_made=self.is_made,
            is_redefined=self.is_redefined or statements.unread > 0 or any(each.changes_rows for each in understood),
            is_copied=self.is_copied or change.online.tool_of(self.table) in (GH_OST, PT_OSC),
        )

    def _is_replaced(self, change: SchemaChange) -> bool:
        """Whether another table has this one's name behind the statement."""
        return change.brings_another(self.table)

    def _added(self) -> Collection[str] | None:
        """Return the columns that the statements may have added. None: any column."""
        if self.origins is not None:
            return [name for name, former in self.origins if former is None]
        return None if self.statements.unread else self.statements.columns


def statements_about(table: TableId, change: SchemaChange) -> list[str]:
    """Return the statements that the change is for `table`: for a swap of an online schema change, the alteration of
    its copy. Return none if the statement may be about another table."""
    if change.tables is None:
        return []
    alteration = change.online.alteration_of(table)
    return [change.sql] if alteration is None or alteration == UNKNOWN else list(alteration)
