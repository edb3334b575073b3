"""What tables were when rows that do not name their columns were written (``binlog_row_metadata=MINIMAL``): known where
it is certain, never guessed (ADR 0014).

A definition that the server gives is one of all rows behind the last statement about the table, once the binlog was
read to its end as it was behind the answer. It stays one until the next statement about the table comes by in the
stream, also over a restart: what is known at a batch's end is in a file that the offset names.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance, UnnamedRows
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.config.settings import Settings
from incsnap.errors import DefinitionUnknown, IncsnapError, shorten
from incsnap.events import SchemaChange, StreamPosition, server_of
from incsnap.mysql import watermarks
from incsnap.mysql.catalog import tables
from incsnap.mysql.row_definitions import leaves_names_out, row_definitions
from incsnap.planner.definitions import WAIT_SECONDS, ChangesBehind, NotCertain, answer_behind, defines, redefined
from incsnap.planner.query_connection import QueryConnection
from incsnap.tables import BatchDefinitions, TableId, TableShape

log = logging.getLogger(__name__)

#: Seconds that rows wait for their table's definition. The tail fills its memory in less.
_PATIENCE_SECONDS = 30.0
#: Seconds until tables without rows are asked for again, where the tail is far behind the server.
_AGAIN_SECONDS = 5.0

DefinitionFiles = ValueFiles[BatchDefinitions]


class _LeavesStatementsOut(Exception):
    """What the server answers cannot be held against its binlog."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """``shapes``: certain behind the batch's end, and for rows of the batch behind its last statement about their
    table. ``why``: of the others, why not."""

    shapes: dict[TableId, TableShape]
    why: dict[TableId, str]


class KnownDefinitions:
    """The definitions that one planner knows. ``files``: of what is known at the ends of batches."""

    def __init__(self, settings: Settings, queries: QueryConnection, files: DefinitionFiles) -> None:
        self._settings = settings
        self._queries = queries
        self._files = files
        #: Must all captured tables be asked for, so that they are known before their rows come and they are changed?
        self._owed: bool | None = None
        self._again_at = 0.0
        #: The file that a batch began with, and what is known by it: most batches begin with that of the one before.
        self._read: tuple[str, dict[TableId, TableShape]] = ("", {})

    def at(
        self, start: str, advance: Advance, tail: Tail, connection: Connection[Any], *, behind: bool
    ) -> BatchDefinitions | None:
        """What is known at the end of the batch that ``advance`` brings; None while the server tells all names by
        itself. ``start``: the file that the batch's beginning names. ``behind``: there is a backlog, so only what the
        batch needs is asked for. ``DefinitionUnknown`` where rows of the batch may have been written with another
        definition than any that is known; ``IncsnapError`` where that may be found out later."""
        if self._owed is None:
            self._owed = leaves_names_out(connection)
        if not (start or self._owed or advance.unnamed):
            return None
        changes = advance.changes
        known = self._known(start)
        if (advance.unnamed and not known) or any(map(defines, changes)):
            self._owed = True
        missing = [each for each in advance.unnamed if not _is_known(each, changes, known)]
        for each in missing:
            _check_order(each, changes)
        after = known
        if changes:
            after = {table: shape for table, shape in known.items() if not redefined(table, changes)}
        if learned := self._learned(missing, after, advance, tail, connection, behind=behind):
            after = {shape.id: shape for shape in _sorted({**after, **learned}.values())}
        rows = {each.table for each in advance.unnamed} - {each.table for each in missing}
        before = [known[table] for table in rows if after.get(table) != known[table]]
        return BatchDefinitions(tuple(after.values()), _sorted(before))

    def is_news(self, start: str, advance: Advance, definitions: BatchDefinitions | None) -> bool:
        """Is it worth a batch, which may have nothing to send? What is not written down must be asked for again."""
        if definitions is None:
            return False
        return bool(advance.changes) or definitions.known != (self._files.read(start).known if start else ())

    def _known(self, start: str) -> dict[TableId, TableShape]:
        """What is known by the file ``start``, in the order of the tables. Those that are not captured are left out:
        their statements do not come by."""
        if self._read[0] != start:
            shapes = self._files.read(start).known if start else ()
            self._read = start, {shape.id: shape for shape in shapes if self._settings.tables.included(shape.id)}
        return self._read[1]

    def of_batch(self, end: str, tables_of_rows: Collection[TableId]) -> tuple[TableShape, ...]:
        """What the rows of these tables are read by in the batch whose end names the file ``end``."""
        return self._files.read(end).of_rows(tables_of_rows) if end else ()

    def _learned(
        self,
        missing: Sequence[UnnamedRows],
        known: Collection[TableId],
        advance: Advance,
        tail: Tail,
        connection: Connection[Any],
        *,
        behind: bool,
    ) -> dict[TableId, TableShape]:
        """Learns the definitions of tables with rows in the batch, which wait for it; and in good time those of all
        captured tables."""
        stream_has_begun = bool(advance.end.server_uuid)
        asks_for_all = bool(self._owed) and stream_has_begun and not behind and time.monotonic() >= self._again_at
        if not missing and not asks_for_all:
            return {}
        unknown = {each.table for each in missing}
        if asks_for_all:
            signal_table = self._settings.tables.signal_table
            captured = {*tables(connection, self._settings.tables), *([signal_table] if signal_table else [])}
            unknown |= captured - set(known)
        patience, changes_behind = WAIT_SECONDS, tail.changes_behind
        if missing:
            patience, changes_behind = _PATIENCE_SECONDS, tail.all_changes_behind
        try:
            answer = self._ask_server(sorted(unknown), advance.end, connection, patience, changes_behind)
        except NotCertain as late:
            self._again_at = time.monotonic() + _AGAIN_SECONDS
            if missing:
                raise IncsnapError(
                    f"{_description(missing[0])}, and its definition cannot be told yet: {late}",
                    "The job goes on from its offset by itself; look at the server if this happens again.",
                ) from late
            return {}
        for each in missing:
            if each.table not in answer.shapes:
                raise DefinitionUnknown(f"{_description(each)}, and {answer.why[each.table]}")
        if asks_for_all:
            self._owed = False
            for table in sorted(unknown - answer.shapes.keys()):
                log.info("the definition of %s is not certain yet: %s", table, answer.why[table])
        return answer.shapes

    def _ask_server(
        self,
        unknown: Sequence[TableId],
        end: StreamPosition,
        connection: Connection[Any],
        patience: float,
        changes_behind: ChangesBehind,
    ) -> _Answer:
        """Raises ``NotCertain`` while there is none."""

        def question() -> tuple[dict[TableId, TableShape], dict[TableId, str]]:
            if not watermarks.logs_everything(connection):
                raise _LeavesStatementsOut
            definitions, why = row_definitions(connection, unknown)
            return {table: definition.shape for table, definition in definitions.items()}, why

        same_server = server_of(end.server_uuid) == self._queries.server_uuid
        try:
            (shapes, why), later = answer_behind(
                question, end, connection, changes_behind, patience, same_server=same_server
            )
        except _LeavesStatementsOut:
            filtered = "the server leaves statements out of its binlog (binlog-do-db, binlog-ignore-db)"
            return _Answer({}, dict.fromkeys(unknown, filtered))
        for table in unknown:
            changed = next((change for change in later if redefined(table, [change])), None)
            if changed is not None:
                shapes.pop(table, None)
                why[table] = f"the table may have been changed since, by {_quoted(changed)}"
            elif table not in shapes:
                why.setdefault(table, "the server has no such table any more, or the user may not see it")
        return _Answer(shapes, why)


def _is_known(rows: UnnamedRows, changes: Sequence[SchemaChange], known: Collection[TableId]) -> bool:
    """Were all of the rows written before the first statement about their table, with a definition that is known?"""
    return rows.table in known and not redefined(rows.table, changes[: rows.last])


def _check_order(rows: UnnamedRows, changes: Sequence[SchemaChange]) -> None:
    """Refuses rows that a statement of the batch stands behind: what the server says now is of later rows only."""
    changed = next((change for change in changes[rows.first :] if redefined(rows.table, [change])), None)
    if changed is not None:
        raise DefinitionUnknown(f"{_description(rows)}, and the table was changed behind them, by {_quoted(changed)}")


def _description(rows: UnnamedRows) -> str:
    return f"{rows.place}: rows of {rows.table} were written with binlog_row_metadata=MINIMAL"


def _quoted(change: SchemaChange) -> str:
    where = f" at {change.origin.file}:{change.origin.pos}" if change.origin is not None else ""
    return f"{shorten(change.sql)!r}{where}"


def _sorted(shapes: Iterable[TableShape]) -> tuple[TableShape, ...]:
    return tuple(sorted(shapes, key=lambda shape: shape.id))
