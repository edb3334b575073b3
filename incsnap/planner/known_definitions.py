"""What tables were when rows that do not name their columns were written (``binlog_row_metadata=MINIMAL``): known where
it is certain, never guessed (ADR 0014).

A definition that the server gives is one of all rows behind the last statement about the table, once the binlog was
read to its end as it was behind the answer. From there on each statement is followed (``definition_history``), and the
outcome is compared with what the server gives, wherever that is certain. What is known at a batch's end is in a file
that the offset names, so it stays known over a restart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance, UnnamedRows
from incsnap.binlog.table_rows import misfit
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.config.settings import Settings
from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.errors import DefinitionUnknown, IncsnapError
from incsnap.events import SchemaChange, StreamPosition, server_of
from incsnap.mysql.catalog import lower_case_table_names
from incsnap.mysql.row_definitions import leaves_names_out
from incsnap.planner.choices import digest_of
from incsnap.planner.definition_history import KnownTables, difference, quoted, redefines, without
from incsnap.planner.definitions import WAIT_SECONDS, NotCertain
from incsnap.planner.query_connection import QueryConnection
from incsnap.planner.server_definitions import ServerAnswer, ask_server
from incsnap.snapshot.commands import Command, DataCollection, Execute, LeaveOut
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId, TableShape

log = logging.getLogger(__name__)

#: Seconds that rows wait for their table's definition. The tail fills its memory in less.
_PATIENCE_SECONDS = 30.0
#: Seconds until tables without rows are asked for again, where the tail is far behind the server.
_AGAIN_SECONDS = 5.0

_LEFT_OUT = (
    "They are left out (inconsistent.schema.handling.mode). The table is read again where its definition is certain."
    " Rows that were deleted meanwhile stay in the topic."
)

DefinitionFiles = ValueFiles[BatchDefinitions]


@dataclass(frozen=True, slots=True)
class BatchKnowledge:
    """What a batch's rows are read by, what is known at its end, and what the snapshot has to do about it."""

    definitions: BatchDefinitions
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True)
class _Missing:
    """Rows for which no definition is known."""

    at: UnnamedRows
    why: str  #: the reason, as far as it is known; ""
    misfit: bool = False  #: whether a definition was known that does not fit the rows' table map

    def __str__(self) -> str:
        return f"{self.at.place}: rows of {self.at.table} were written with binlog_row_metadata=MINIMAL"


class KnownDefinitions:
    """The definitions that one planner knows. ``files``: of what is known at the ends of batches."""

    def __init__(self, settings: Settings, queries: QueryConnection, files: DefinitionFiles) -> None:
        self._settings = settings
        self._queries = queries
        self._files = files
        self._captured_by = digest_of(settings.tables.model_dump_json(exclude_defaults=True))
        #: Whether rows of unknown definitions end the job. Else they are left out, and their tables are read again.
        self._strict = settings.failures.inconsistent_schema == "fail"
        #: Whether statements come by about all tables of databases that may have captured ones. Else only those about
        #: captured tables do. None before the first question.
        self._all_statements: bool | None = None
        self._letter_case: int | None = None
        #: Must all captured tables be asked for, so that they are known before their rows come and they are changed?
        self._owed: bool | None = None
        self._again_at = 0.0
        #: The file that a batch began with, and what is known by it: most batches begin with that of the one before.
        self._read: tuple[str, KnownTables] = ("", KnownTables())

    def follows_statements(self, start: str, connection: Connection[Any]) -> bool:
        """Whether the stream must bring the statements about all tables of captured databases: one that is not captured
        may be renamed to one that is. ``start``: the file that the job's offset names."""
        if self._all_statements is None:
            self._all_statements = bool(start) or leaves_names_out(connection)
        return self._all_statements

    def at(
        self, start: Offset, advance: Advance, tail: Tail, connection: Connection[Any], *, behind: bool
    ) -> BatchKnowledge | None:
        """Return what is known at the end of the batch that ``advance`` brings; None while the server tells all names
        by itself. ``behind``: there is a backlog, so only what the batch needs is asked for.

        Raise ``DefinitionUnknown`` where rows of the batch may have been written with another definition than any that
        is known, and ``inconsistent.schema.handling.mode`` is ``fail``. Raise ``IncsnapError`` where that may be found
        out later.
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
        read_by, missing = self._of_rows(advance, history, maps)
        # A definition that does not fit is none to follow statements from.
        unsure = {table: rows for table, rows in missing.items() if rows.misfit or end.shape(table) is None}
        end = without(end, {table: rows.why for table, rows in unsure.items()})
        end, left_out = self._learned(missing, maps, end, advance, tail, connection, behind=behind)
        shapes = [TableShape(table, ()) for table in left_out]
        shapes += [shape for table, shape in read_by.items() if end.shape(table) != shape]
        end = replace(end, unread=end.unread | left_out.keys())
        commands, end = self._commands(start, before, end, left_out)
        stored = end.stored(sorted(shapes, key=lambda shape: shape.id))
        return BatchKnowledge(replace(stored, captured_by=self._captured_by), commands)

    def is_news(self, start: str, advance: Advance, knowledge: BatchKnowledge | None) -> bool:
        """Whether it is worth a batch, which may have nothing to send. What is not written down must be asked for
        again."""
        if knowledge is None:
            return False
        known = replace(knowledge.definitions, before=())
        return bool(advance.changes) or known != (replace(self._files.read(start), before=()) if start else None)

    def of_batch(self, end: str, tables_of_rows: Collection[TableId]) -> tuple[TableShape, ...]:
        """Return what the rows of these tables are read by in the batch whose end names the file ``end``."""
        return self._files.read(end).of_rows(tables_of_rows) if end else ()

    # -- what is known already

    def _known(self, start: str) -> KnownTables:
        """Return what is known by the file ``start``."""
        if self._read[0] != start:
            stored = self._files.read(start) if start else BatchDefinitions()
            self._read = start, KnownTables.of(stored, self._concerns, self._captured_by)
        return self._read[1]

    def _concerns(self, table: TableId) -> bool:
        """Whether all statements about the table come by."""
        included = self._settings.tables
        if self._all_statements and included.may_include_database(table.database):
            return True
        return table == included.signal_table or included.included(table)

    def _history(
        self, before: KnownTables, changes: Sequence[SchemaChange], connection: Connection[Any]
    ) -> list[KnownTables]:
        """Return what is known before the first statement, and behind each."""
        history = [before]
        if changes and self._letter_case is None:
            self._letter_case = lower_case_table_names(connection)
        for change in changes:
            history.append(
                history[-1].behind(change, self._concerns, self._settings.tables.included, self._letter_case or 0)
            )
        return history

    def _of_rows(
        self, advance: Advance, history: Sequence[KnownTables], maps: Mapping[TableId, Collection[bytes]]
    ) -> tuple[dict[TableId, TableShape], dict[TableId, _Missing]]:
        """Return the definitions by which rows of the batch are read, and the rows for which none is known. ``maps``:
        the rows' table maps."""
        read_by: dict[TableId, TableShape] = {}
        missing: dict[TableId, _Missing] = {}
        for rows in advance.unnamed:
            table = rows.table
            shapes = {each.shape(table) for each in history[rows.first : rows.last + 1]}
            shape = shapes.pop() if len(shapes) == 1 else None
            if shape is None:
                missing[table] = _Missing(rows, history[rows.first].lost.get(table, ""))
            elif differs := self._misfit(maps.get(table, ()), shape):
                missing[table] = _Missing(rows, f"by another definition than is known: {differs}", misfit=True)
            else:
                read_by[table] = shape
        return read_by, missing

    def _misfit(self, maps: Collection[bytes], shape: TableShape) -> str:
        """Return how the first of the table maps that does not fit the definition differs from it; "" if all fit."""
        return next(filter(None, (misfit(each, shape, self._queries.charsets) for each in maps)), "")

    # -- what the server says

    def _learned(
        self,
        missing: Mapping[TableId, _Missing],
        maps: Mapping[TableId, Collection[bytes]],
        known: KnownTables,
        advance: Advance,
        tail: Tail,
        connection: Connection[Any],
        *,
        behind: bool,
    ) -> tuple[KnownTables, dict[TableId, _Missing]]:
        """Ask for the definitions of tables with rows in the batch, which wait for it; and in good time for those of
        all captured tables. Return what is known then, and the rows that are left out."""
        left_out: dict[TableId, _Missing] = {}
        requested: dict[TableId, _Missing] = {}
        for table, rows in missing.items():
            changed = next((each for each in advance.changes[rows.at.first :] if redefines(each, table)), None)
            if changed is None:
                requested[table] = rows
            else:
                left_out[table] = self._refused(rows, f"the table was changed behind them, by {quoted(changed)}")
        stream_has_begun = bool(advance.end.server_uuid)
        everything = bool(self._owed) and stream_has_begun and not behind and time.monotonic() >= self._again_at
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
                same_server=server_of(advance.end.server_uuid) == self._queries.server_uuid,
                everything=everything,
            )
        except NotCertain as late:
            self._again_at = time.monotonic() + _AGAIN_SECONDS
            for rows in requested.values():
                raise IncsnapError(
                    f"{rows}, and its definition cannot be told yet: {late}",
                    "The job goes on from its offset by itself; look at the server if this happens again.",
                ) from late
            return known, left_out
        for table, rows in requested.items():
            served = answer.definitions.get(table)
            reason = answer.why[table] if served is None else self._misfit(maps.get(table, ()), served.shape)
            if reason:
                left_out[table] = self._refused(rows, reason)
        if everything:
            self._owed = False
            for table in sorted(answer.why):
                log.info("the definition of %s is not certain yet: %s", table, answer.why[table])
        known = self._compared(known, answer, advance.end)
        return answer.updates(known, everything=everything), left_out

    def _refused(self, rows: _Missing, why: str) -> _Missing:
        """Return the rows with one more reason why they cannot be read. Raise ``DefinitionUnknown`` where that ends the
        job."""
        rows = replace(rows, why="; ".join(filter(None, (rows.why, why))))
        if self._strict:
            raise DefinitionUnknown(f"{rows}, and {rows.why}")
        return rows

    def _compared(self, known: KnownTables, answer: ServerAnswer, end: StreamPosition) -> KnownTables:
        """Compare definitions that were followed with those of the server. A table that differs is to be read again, or
        ends the job."""
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
        self, start: Offset, before: KnownTables, end: KnownTables, left_out: Mapping[TableId, _Missing]
    ) -> tuple[tuple[Command, ...], KnownTables]:
        """Return what the snapshot has to do about rows that are left out, now and before, and what is known then."""
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
                "%s: read again, since rows of it were left out", ", ".join(str(each.table) for each in collections)
            )
            commands.append(Execute(name, collections))
        return tuple(commands), replace(end, unread=end.unread - known)
