"""Definitions of tables whose rows do not name their columns, as they are stored beside the checkpoint."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from incsnap.ddl.table_definition import TableDefinition
from incsnap.tables import TableId, TableShape


@dataclass(frozen=True, slots=True)
class BatchDefinitions:
    """What is known of tables at the end of a batch, and by what the batch's rows are read."""

    known: tuple[TableShape, ...] = ()  #: columns alone, which earlier releases have stored in place of `definitions`
    #: Tables as they were for rows of the batch, if they are otherwise or not known at the batch's end. One without
    #: columns means that the table's rows are left out.
    before: tuple[TableShape, ...] = ()
    definitions: tuple[TableDefinition, ...] = ()  #: tables as they are at the batch's end
    databases: tuple[tuple[str, str], ...] = ()  #: names of databases and their default character sets
    unconfirmed: tuple[TableId, ...] = ()  #: tables of `definitions` that the server has not confirmed yet
    lost: tuple[tuple[TableId, str], ...] = ()  #: tables that may exist and whose definition is not known, and why
    complete: bool = False  #: whether no captured table exists that is neither in `definitions` nor in `lost`
    unread: tuple[TableId, ...] = ()  #: tables of which rows were left out: to be read again once they are known
    captured_by: str = ""  #: a digest of the settings that said which tables were captured

    @property
    def tables(self) -> tuple[TableDefinition, ...]:
        """The tables as they are at the batch's end."""
        return self.definitions or tuple(map(TableDefinition, self.known))

    def of_rows(self, tables: Collection[TableId]) -> tuple[TableShape, ...]:
        """Return what the batch's rows of these tables are read by."""
        shapes = {shape.id: shape for shape in (*(each.shape for each in self.tables), *self.before)}
        return tuple(shapes[table] for table in sorted(tables) if table in shapes)
