"""The definitions of tables that a batch needs, as they are stored beside the checkpoint.

They are needed for tables whose binlog events do not name their columns (binlog_row_metadata=MINIMAL).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from incsnap.ddl.table_definition import TableDefinition
from incsnap.tables import CharsetName, TableId, TableShape


@dataclass(frozen=True, slots=True)
class BatchDefinitions:
    """The known definitions at the end of a batch, and the definitions by which the batch's rows are read."""

    known: tuple[TableShape, ...] = ()  #: columns alone; earlier releases stored them in place of `definitions`
    #: Tables whose definition for rows of the batch differs from `definitions` or is missing there. A table without
    #: columns: its rows are left out.
    before: tuple[TableShape, ...] = ()
    definitions: tuple[TableDefinition, ...] = ()  #: tables at the batch's end
    #: (name, default character set) of databases; the character set is "" if unknown
    databases: tuple[tuple[str, CharsetName], ...] = ()
    unconfirmed: tuple[TableId, ...] = ()  #: tables of `definitions` that the server has not confirmed yet
    #: (table, reason) for tables that may exist but whose definition is unknown
    lost: tuple[tuple[TableId, str], ...] = ()
    complete: bool = False  #: each captured table that exists is in `definitions` or in `lost`
    #: tables whose rows were left out; they must be read again once their definition is known
    unread: tuple[TableId, ...] = ()
    captured_by: str = ""  #: digest of the settings that choose the captured tables

    @property
    def tables(self) -> tuple[TableDefinition, ...]:
        """Return the definitions of the tables at the batch's end.

        Those stored by an earlier release have only columns.
        """
        return self.definitions or tuple(map(TableDefinition, self.known))

    def of_rows(self, tables: Collection[TableId]) -> tuple[TableShape, ...]:
        """Return the columns by which the batch's rows of `tables` are read.

        Tables without a definition are left out.
        """
        shapes = {shape.id: shape for shape in (*(each.shape for each in self.tables), *self.before)}
        return tuple(shapes[table] for table in sorted(tables) if table in shapes)
