"""The definitions of tables as the server has them, asked so that it is certain which rows they are of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from pymysql.connections import Connection

from incsnap.config.patterns import TableFilter
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.events import SchemaChange, StreamPosition
from incsnap.mysql import watermarks
from incsnap.mysql.catalog import database_charsets, tables
from incsnap.mysql.row_definitions import row_definitions
from incsnap.planner.definition_history import KnownTables, quoted, redefines
from incsnap.planner.definitions import ChangesBehind, answer_behind
from incsnap.tables import TableId


class _LeavesStatementsOut(Exception):
    """What the server answers cannot be held against its binlog."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What the server said of tables, and what of it is certain at a batch's end."""

    definitions: dict[TableId, TableDefinition]  #: the tables that are certain
    why: dict[TableId, str]  #: of the others: why they are not
    databases: dict[str, str] = field(default_factory=dict)  #: default character sets that are certain
    is_complete: bool = False  #: whether the server was asked which captured tables there are
    captured: frozenset[TableId] = frozenset()  #: the captured tables that there are now
    later: tuple[SchemaChange, ...] = ()  #: the statements behind the batch that the answer may be of already

    def updates(self, known: KnownTables, *, everything: bool) -> KnownTables:
        """Return what is known with this answer. `everything`: it is about all captured tables that were not known."""
        tables = {**known.definitions.tables, **self.definitions}
        definitions = Definitions(tables, {**known.definitions.databases, **self.databases})
        # The first reason tells more: it names the statement that could not be followed.
        lost, complete = {table: why or self.why.get(table, "") for table, why in known.lost.items()}, known.complete
        if everything and self.is_complete and not complete:
            named = {table for change in self.later for table in change.tables or ()}
            lost = {table: lost.get(table) or self.why.get(table, "") for table in self.captured | named}
            complete = all(change.tables is not None for change in self.later)
        return KnownTables(
            definitions,
            known.unconfirmed - self.definitions.keys(),
            {table: why for table, why in lost.items() if table not in tables},
            complete,
            known.unread,
        )


def ask_server(
    requested: Collection[TableId],
    known: KnownTables,
    included: TableFilter,
    end: StreamPosition,
    connection: Connection[Any],
    patience: float,
    changes_behind: ChangesBehind,
    *,
    same_server: bool,
    everything: bool,
) -> ServerAnswer:
    """Return the definitions of the tables `requested`. `everything`: also those of all captured tables that are not
    known for certain. The other arguments are those of `answer_behind`, which may raise `NotCertain`.
    """

    def question() -> ServerAnswer:
        if not watermarks.logs_everything(connection):
            raise _LeavesStatementsOut
        asked, captured = set(requested), frozenset[TableId]()
        if everything:
            signal_table = included.signal_table
            captured = frozenset((*tables(connection, included), *([signal_table] if signal_table else [])))
            asked |= captured - (known.definitions.tables.keys() - known.unconfirmed)
        definitions, why = row_definitions(connection, sorted(asked))
        for table in asked - definitions.keys():
            why.setdefault(table, "the server has no such table any more, or the user may not see it")
        return ServerAnswer(definitions, why, database_charsets(connection), everything, captured)

    try:
        answer, later = answer_behind(question, end, connection, changes_behind, patience, same_server=same_server)
    except _LeavesStatementsOut:
        filtered = "the server leaves statements out of its binlog (binlog-do-db, binlog-ignore-db)"
        return ServerAnswer({}, dict.fromkeys(requested, filtered))
    definitions, why = dict(answer.definitions), dict(answer.why)
    for table in answer.definitions:
        changed = next((change for change in later if redefines(change, table)), None)
        if changed is not None:
            del definitions[table]
            why[table] = f"the table may have been changed since, by {quoted(changed)}"
    # CREATE, ALTER and DROP DATABASE name no table.
    databases = answer.databases if all(change.tables for change in later) else {}
    return ServerAnswer(definitions, why, databases, everything, answer.captured, later)
