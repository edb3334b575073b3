"""The definitions of tables whose rows do not name their columns (`binlog_row_metadata=MINIMAL`).

A definition is used only if it is certain, and is never guessed (`docs/adr/0014-rows-without-names.md`). The server's
definition is that of all rows after the last statement about the table. That is certain once the binlog was read up to
its end, and this end was taken after the server's answer. From there on each statement is followed
(`definition_history`). The result is compared with the server's definition whenever that one is certain. A file that
the offset names has what is known at a batch's end, so it is still known after a restart.

Example: the table shop.orders has the columns id and note. Each line is a batch. While the second and the fourth were
planned there was a backlog, so the server was not asked.

    in the binlog                               rows are read by   known at the batch's end
    INSERT                                      id, note           id, note        the server was asked
    INSERT; ALTER TABLE ... ADD qty AFTER id    id, note           id, qty, note   followed: in `unconfirmed`
    INSERT                                      id, qty, note      id, qty, note   confirmed by the server
    ALTER ... CONVERT TO CHARACTER SET DEFAULT  -                  nothing         in `lost`: not followed
    INSERT                                      id, qty, note      id, qty, note   the batch has asked and waited

If ALTER TABLE ... DROP note follows the last INSERT, the server's definition is not that of the row. No definition is
certain then, and `KnownDefinitions.at` raises DefinitionUnknown. With `inconsistent.schema.handling.mode` other than
`fail` the row is left out instead, and the table is read again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.tail import Tail
from incsnap.config.patterns import is_builtin
from incsnap.config.settings import Settings
from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.errors import DefinitionUnknown, IncsnapError
from incsnap.events import SchemaChange, StreamPosition
from incsnap.mysql.catalog import lower_case_table_names
from incsnap.mysql.row_definitions import leaves_names_out
from incsnap.planner.definition_files import DefinitionFiles
from incsnap.planner.definition_history import (
    KnownTables,
    RowsWithoutDefinition,
    bounded,
    captured_by,
    definitions_of_rows,
    difference,
    first_misfit,
    quoted,
    redefines,
    without,
)
from incsnap.planner.definitions import WAIT_SECONDS, NotCertain
from incsnap.planner.query_connection import QueryConnection
from incsnap.planner.server_definitions import ServerAnswer, ask_server
from incsnap.snapshot.commands import Command, DataCollection, Execute, LeaveOut
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId, TableShape

log = logging.getLogger(__name__)

#: Seconds that rows wait for their table's definition. The tail fills its memory in less.
_PATIENCE_SECONDS = 30.0
#: Seconds until tables without rows are asked for again, if the tail is far behind the server.
_AGAIN_SECONDS = 5.0

_LEFT_OUT = (
    "They are left out (inconsistent.schema.handling.mode). The table is read again where its definition is certain."
    " Rows that were deleted meanwhile stay in the topic."
)


@dataclass(frozen=True, slots=True)
class BatchKnowledge:
    """The definitions of a batch, and what the snapshot must do about rows without one."""

    definitions: BatchDefinitions  #: what is known at the batch's end, and by what the batch's rows are read
    commands: tuple[Command, ...] = ()  #: commands for tables of which rows were left out


class KnownDefinitions:
    """The definitions that one planner knows. `files` are the files that offsets name."""

    def __init__(self, settings: Settings, queries: QueryConnection, files: DefinitionFiles) -> None:
        self._settings = settings
        self._queries = queries
        self._files = files
        self._captured_by = captured_by(settings.tables)
        #: Whether rows without a known definition end the job. Otherwise they are left out, and their tables are read
        #: again.
        self._strict = settings.failures.inconsistent_schema == "fail"
        #: Whether the stream brings the statements about all tables but the server's own; None before the first
        #: question.
        self._all_statements: bool | None = None
        self._letter_case: int | None = None
        #: Whether all captured tables must be asked for, so that they are known before their rows come and before they
        #: change; None before the first batch.
        self._owed: bool | None = None
        self._again_at = 0.0
        #: The file that the last batch began with, and what the file tells. Often the next batch begins with the same
        #: file.
        self._read: tuple[str, KnownTables] = ("", KnownTables())

    def follows_statements(self, start: str, connection: Connection[Any]) -> bool:
        """Whether the stream must bring the statements about all tables: one that is not captured may be renamed to a
        captured one.

        `start` is the file that the job's offset names.
        """
        if self._all_statements is None:
            self._all_statements = bool(start) or leaves_names_out(connection)
        return self._all_statements

    def at(
        self, start: Offset, advance: Advance, tail: Tail, connection: Connection[Any], *, has_backlog: bool
    ) -> BatchKnowledge | None:
        """Return what is known at the end of the batch that `advance` brings; None while all rows name their columns.

        `has_backlog`: a backlog waits, so only what the batch needs is asked for.

        Raise DefinitionUnknown if no definition is certain for rows of the batch, and
        `inconsistent.schema.handling.mode` is `fail`. Raise IncsnapError if the definition may become certain later.
        """
        if self._owed is None:
            unconfirmed = bool(start.definitions) and bool(self._known(start.definitions).unconfirmed)
            self._owed = leaves_names_out(connection) or unconfirmed
        if not (start.definitions or self._owed or advance.unnamed):
            return None
        before = self._known(start.definitions)
        history = self._history(before, advance.changes, connection)
        end = history[-1]
        if (advance.unnamed and not before.definitions.tables) or end != before:
            self._owed = True
        maps = tail.unnamed_maps(start.stream, advance.end) if advance.unnamed else {}
        read_by, missing = definitions_of_rows(advance.unnamed, history, maps, self._queries.charsets)
        # No statement is followed from a definition that does not fit its rows.
        unsure = {table: rows for table, rows in missing.items() if rows.misfit or end.shape(table) is None}
        end = without(end, {table: rows.why for table, rows in unsure.items()})
        end, left_out = self._learned(missing, maps, end, advance, tail, connection, has_backlog=has_backlog)
        shapes = [TableShape(table, ()) for table in left_out]
        shapes += [shape for table, shape in read_by.items() if end.shape(table) != shape]
        end = replace(end, unread=end.unread | left_out.keys())
        commands, end = self._commands(start, before, end, left_out)
        before_end = sorted(shapes, key=lambda shape: shape.id)
        return BatchKnowledge(end.stored(before_end, self._captured_by), commands)

    def is_news(self, start: str, advance: Advance, knowledge: BatchKnowledge | None) -> bool:
        """Whether a batch is needed to write down what is known, even if it has nothing to send.

        What is not written down must be asked for again.
        """
        if knowledge is None:
            return False
        known = replace(knowledge.definitions, before=())
        return bool(advance.changes) or known != (replace(self._files.read(start), before=()) if start else None)

    def of_batch(self, end: str, tables_of_rows: Collection[TableId]) -> tuple[TableShape, ...]:
        """Return the definitions by which the rows of these tables are read.

        `end` is the file that their batch's end names.
        """
        return self._files.read(end).of_rows(tables_of_rows) if end else ()

    # -- what is known already

    def _known(self, start: str) -> KnownTables:
        """Return what the file `start` tells."""
        if self._read[0] != start:
            stored = self._files.read(start) if start else BatchDefinitions()
            self._read = start, KnownTables.of(stored, self._concerns, self._captured_by)
        return self._read[1]

    def _concerns(self, table: TableId) -> bool:
        """Whether the stream brings all statements about the table."""
        included = self._settings.tables
        if self._all_statements and not is_builtin(table.database):
            return True
        return table == included.signal_table or included.included(table)

    def _history(
        self, before: KnownTables, changes: Sequence[SchemaChange], connection: Connection[Any]
    ) -> list[KnownTables]:
        """Return what is known before the first statement and after each statement."""
        history, included = [before], self._settings.tables
        if changes and self._letter_case is None:
            self._letter_case = lower_case_table_names(connection)
        for change in changes:
            known = history[-1].after(change, self._concerns, included.included, self._letter_case or 0)
            history.append(bounded(known, included.may_include_database))
        return history

    # -- what the server says

    def _learned(
        self,
        missing: Mapping[TableId, RowsWithoutDefinition],
        maps: Mapping[TableId, Collection[bytes]],
        known: KnownTables,
        advance: Advance,
        tail: Tail,
        connection: Connection[Any],
        *,
        has_backlog: bool,
    ) -> tuple[KnownTables, dict[TableId, RowsWithoutDefinition]]:
        """Ask the server for the definitions that rows of the batch wait for, and in good time for those of all
        captured tables.

        Return what is known after that, and the rows that are left out. Raise IncsnapError if rows must wait longer,
        and DefinitionUnknown if rows cannot be read and this ends the job.
        """
        left_out: dict[TableId, RowsWithoutDefinition] = {}
        requested: dict[TableId, RowsWithoutDefinition] = {}
        for table, rows in missing.items():
            changed = next((each for each in advance.changes[rows.at.first :] if redefines(each, table)), None)
            if changed is None:
                requested[table] = rows
            else:
                left_out[table] = self._refused(rows, f"the table was changed behind them, by {quoted(changed)}")
        stream_has_begun = bool(advance.end.server_uuid)
        everything = bool(self._owed) and stream_has_begun and not has_backlog and time.monotonic() >= self._again_at
        if not requested and not everything:
            return known, left_out
        try:
            answer = ask_server(
                requested,
                known,
                self._settings.tables,
                advance.end,
                connection,
                _PATIENCE_SECONDS if requested else WAIT_SECONDS,
                tail.all_changes_behind if requested else tail.changes_behind,
                same_server=self._queries.leads_to(advance.end),
                everything=everything,
            )
        except NotCertain as late:
            self._again_at = time.monotonic() + _AGAIN_SECONDS
            for rows in requested.values():
                raise IncsnapError(
                    f"{rows}, and the table's definition is not certain yet: {late}",
                    "The job starts again from its offset by itself. If this happens again, look into the"
                    " server's error log.",
                ) from late
            return known, left_out
        for table, rows in requested.items():
            served = answer.definitions.get(table)
            if served is None:
                reason = answer.why[table]
            else:
                reason = first_misfit(maps.get(table, ()), served.shape, self._queries.charsets)
            if reason:
                left_out[table] = self._refused(rows, reason)
        if everything:
            self._owed = False
            for table in sorted(answer.why):
                log.info("The definition of %s is not certain yet: %s", table, answer.why[table])
        known = self._compared(known, answer, advance.end)
        return answer.updates(known, everything=everything), left_out

    def _refused(self, rows: RowsWithoutDefinition, why: str) -> RowsWithoutDefinition:
        """Return the rows with one more reason why they cannot be read.

        Raise DefinitionUnknown if this ends the job.
        """
        rows = replace(rows, why="; ".join(filter(None, (rows.why, why))))
        if self._strict:
            raise DefinitionUnknown(f"{rows}, and {rows.why}")
        return rows

    def _compared(self, known: KnownTables, answer: ServerAnswer, end: StreamPosition) -> KnownTables:
        """Compare followed definitions with those of the server. A table that differs must be read again.

        Raise DefinitionUnknown if a difference ends the job.
        """
        unread = set(known.unread)
        for table, served in answer.definitions.items():
            followed = known.shape(table)
            if followed is None or followed == served.shape:
                continue
            problem = (
                f"{end.file}:{end.pos}: {table} is not what its statements in the binlog made of it:"
                f" {difference(followed, served.shape)}. Was it changed with sql_log_bin = 0?"
            )
            if self._strict:
                raise DefinitionUnknown(problem)
            log.warning("%s It is read again; rows since its last statement may have had wrong names.", problem)
            unread.add(table)
        return replace(known, unread=frozenset(unread))

    # -- what is left out

    def _commands(
        self, start: Offset, before: KnownTables, end: KnownTables, left_out: Mapping[TableId, RowsWithoutDefinition]
    ) -> tuple[tuple[Command, ...], KnownTables]:
        """Return what the snapshot must do about rows that are left out, now or earlier, and what is known after
        that."""
        name = f"unknown-definition-{start.batch + 1}"
        commands: list[Command] = []
        for table, rows in left_out.items():
            is_first = table not in before.unread
            if is_first:
                log.warning("%s, and %s. %s", rows, rows.why, _LEFT_OUT)
            commands.append(LeaveOut(name, table, rows.at.place, rows.why, is_repeated=not is_first))
        known = frozenset(table for table in end.unread if end.shape(table) is not None)
        captured = sorted(table for table in known if self._settings.tables.included(table))
        if collections := tuple(
            DataCollection(each) for each in captured if each != self._settings.tables.signal_table
        ):
            log.warning(
                "%s: snapshotted again, because changes of its rows were left out",
                ", ".join(str(each.table) for each in collections),
            )
            commands.append(Execute(name, collections))
        return tuple(commands), replace(end, unread=end.unread - known)
