"""The server's definitions of tables, asked so that it is certain which rows they belong to."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.statement_search import statements_behind
from incsnap.config.patterns import TableFilter
from incsnap.config.settings import Settings
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.errors import IncsnapError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.mysql import watermarks
from incsnap.mysql.catalog import all_tables, charsets, database_charsets
from incsnap.mysql.row_definitions import definitions_at_hand, leaves_names_out, row_definitions
from incsnap.mysql.session import dial
from incsnap.planner.definition_files import DefinitionFiles
from incsnap.planner.definition_history import KnownTables, captured_by, quoted, redefines
from incsnap.planner.definitions import WAIT_SECONDS, ChangesBehind, NotCertain, answer_behind
from incsnap.planner.schema_changes import capture_options
from incsnap.tables import TableId

log = logging.getLogger(__name__)

#: Most tables that are asked for without being captured. 200 with 30 columns add about 500 kB to a file of definitions.
_MOST_OTHERS = 200


class _LeavesStatementsOut(Exception):
    """An error: the server's answer cannot be compared with its binlog, because the binlog lacks statements."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The server's answer about tables, as far as it is certain at a batch's end."""

    definitions: dict[TableId, TableDefinition]  #: definitions that are certain
    why: dict[TableId, str]  #: tables without a certain definition -> why it is not certain
    databases: dict[str, str] = field(default_factory=dict)  #: databases -> default character sets that are certain
    is_complete: bool = False  #: whether the server was asked which captured tables exist
    captured: frozenset[TableId] = frozenset()  #: captured tables that exist now
    later: tuple[SchemaChange, ...] = ()  #: statements after the batch that the answer may already show

    def updates(self, known: KnownTables, *, everything: bool) -> KnownTables:
        """Return `known` with the definitions of this answer added. These are certain now, and no longer lost.

        `everything`: as in `ask_server`, for which the answer was given. Then each captured table without a certain
        definition counts as lost.
        """
        tables = {**known.definitions.tables, **self.definitions}
        definitions = Definitions(tables, {**known.definitions.databases, **self.databases})
        # The first reason says more: it names the statement that could not be followed.
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
    """Return the definitions of the tables `requested`, as far as they are certain at `end`.

    `everything`: ask also for all captured tables that are not known for certain, and for at most `_MOST_OTHERS` tables
    that are not captured. Such a table may be renamed to a captured one, or copied. The other arguments are those of
    `answer_behind`. Raise NotCertain as `answer_behind` does.
    """

    def question() -> ServerAnswer:
        if not watermarks.logs_everything(connection):
            raise _LeavesStatementsOut
        asked, captured, others = set(requested), frozenset[TableId](), list[TableId]()
        if everything:
            there, signal_table = all_tables(connection), included.signal_table
            captured = frozenset(table for table in there if included.included(table))
            captured |= frozenset([signal_table] if signal_table else [])
            asked |= captured - (known.definitions.tables.keys() - known.unconfirmed)
            others = [table for table in _others(there, captured, included) if table not in known.definitions.tables]
        definitions, why = row_definitions(connection, sorted(asked))
        for table in asked - definitions.keys():
            why.setdefault(table, "the server has no such table any more, or the user may not see it")
        if others:
            definitions = {**definitions_at_hand(connection, others), **definitions}
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
    # CREATE, ALTER and DROP DATABASE name no table. After one of them no character set of a database is certain.
    databases = answer.databases if all(change.tables for change in later) else {}
    return ServerAnswer(definitions, why, databases, everything, answer.captured, later)


def _others(there: Sequence[TableId], captured: Collection[TableId], included: TableFilter) -> list[TableId]:
    """Return tables that are not captured. Those of databases that may have captured tables come first."""
    others = (table for table in there if table not in captured)
    return sorted(others, key=lambda table: not included.may_include_database(table.database))[:_MOST_OTHERS]


def first_definitions(
    settings: Settings, files: DefinitionFiles, connection: Connection[Any], first: StreamPosition
) -> str:
    """Return the name of the file with the definitions at `first`; "" if rows name their columns or if no answer is
    certain.

    Seconds pass between a job's first offset and its first batch, while Spark starts. A row may be written in this
    time, and then a statement about its table. Nobody could tell the row's definition later. So the server is asked at
    once. If the answer is not certain, the first batch asks again.
    """
    if not leaves_names_out(connection):
        return ""
    at = StreamPosition(first.delivered, "", 0, server_uuid=watermarks.server_uuid(connection))
    options = capture_options(settings, tuple(sorted(charsets(connection).items())), follows=True)
    search = partial(statements_behind, partial(dial, settings.mysql), settings.mysql.server_id, options)
    try:
        answer = ask_server(
            (),
            KnownTables(),
            settings.tables,
            at,
            connection,
            WAIT_SECONDS,
            lambda position, until, _: search(position, until),
            same_server=True,
            everything=True,
        )
    except (NotCertain, IncsnapError) as late:
        log.info("The first batch asks MySQL for the definitions of tables, because they are not certain yet: %s", late)
        return ""
    return files.keep(answer.updates(KnownTables(), everything=True).stored((), captured_by(settings.tables)))
