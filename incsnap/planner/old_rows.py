"""The snapshots behind ALTER TABLE, for rows with values that no event has brought (`incsnap.online.ddl.reread`).

A table's definition from before a statement is compared with the server's behind it (`ddl.old_rows`). The server's is
used only if it is certain for the batch's end. Otherwise the table is compared in a later batch, by all statements
since. So two statements in a row ask for one snapshot.

The definitions lie in a file beside the checkpoint:

    columns/<digest of the content>.json    what captured tables were, and which of them are still to be compared

The position of the channel `columns` in the offset names the file. So a statement is obeyed in exactly one batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.config.patterns import TableFilter
from incsnap.config.settings import SnapshotSettings
from incsnap.ddl.old_rows import DefinedTable, changed_columns, unknown_values
from incsnap.ddl.table_statements import table_statements
from incsnap.envelope.column_rules import ColumnRules, matches
from incsnap.errors import shorten
from incsnap.events import SchemaChange
from incsnap.mysql.defined_tables import defined_tables
from incsnap.planner.altered_tables import AlteredTable
from incsnap.planner.definitions import NotCertain, defines, redefined
from incsnap.planner.new_tables import filter_of
from incsnap.planner.signal_commands import Captured
from incsnap.planner.start_snapshot import snapshot_of
from incsnap.snapshot.commands import Command, Execute
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId

log = logging.getLogger(__name__)

_CHANNEL = "columns"
#: Prefix of the snapshots' ids. The job's id, the batch and a number follow.
_ID = "reread-"
#: Seconds until the server is asked again, if its answer was not certain.
_AGAIN_SECONDS = 5.0
#: Most characters of reasons, in the log and in notifications.
_MOST_REASONS = 230

#: Asks a question about definitions. Returns the answer, and the statements behind the batch that it may already show.
#: Raises NotCertain.
Asking = Callable[
    [Callable[[], dict[TableId, DefinedTable]]], tuple[dict[TableId, DefinedTable], tuple[SchemaChange, ...]]
]


@dataclass(frozen=True, slots=True)
class KnownTables:
    """The definitions at the end of a batch."""

    #: captured tables, each as it was when it was last compared
    tables: tuple[tuple[TableId, DefinedTable], ...] = ()
    altered: tuple[AlteredTable, ...] = ()  #: tables that are to be compared
    is_complete: bool = False  #: whether the server was asked for all captured tables
    lists: str = ""  #: file with the lists that chose these tables (`new_tables.filter_of`)


DefinedFiles = ValueFiles[KnownTables]


def defined_files(files: Files) -> DefinedFiles:
    """Return the files of definitions in a checkpoint. `files` is incsnap's part of it."""
    return ValueFiles(files, _CHANNEL, "what captured tables were before an ALTER TABLE", KnownTables)


def defined_file_of(offset: Offset) -> str:
    """Return the name of the file that the offset names; "" if it names none."""
    return str(offset.signal_positions.get(_CHANNEL) or "")


class OldRows:
    """The snapshots behind ALTER TABLE, for one planner.

    `included` are the captured tables, and `columns` has the rules for the captured columns.
    """

    def __init__(
        self, settings: SnapshotSettings, included: TableFilter, columns: ColumnRules, files: DefinedFiles
    ) -> None:
        self._settings = settings
        self._included = included
        self._columns = columns
        self._files = files
        self._again_at = 0.0

    def commands(
        self,
        start: Offset,
        changes: Sequence[SchemaChange],
        asking: Asking | None,
        connection: Connection[Any],
        captured: Captured,
        others: Sequence[Command],
    ) -> tuple[tuple[Command, ...], dict[str, Any]]:
        """Return the commands for the batch after `start`, and the channel's position behind it.

        `changes` are the batch's statements. `asking` asks about definitions at the batch's end; None: a backlog waits,
        and nothing is asked. `others` are the batch's other commands.
        """
        name = defined_file_of(start)
        if self._settings.reread == "never":
            return (), {_CHANNEL: ""} if name else {}
        known = self._known(name)
        defining = list(filter(defines, changes))
        # Wider lists take further tables, from the second batch of a start on.
        lists = filter_of(start)
        is_complete = known.is_complete and known.lists == lists
        if is_complete and not (known.altered or defining):
            return (), {_CHANNEL: name}  # most batches: there may be thousands of tables
        tables, altered = dict(known.tables), {each.table: each for each in known.altered}
        for change in defining:
            self._follow(change, tables, altered, captured)
        is_due = altered or not is_complete
        commands: list[Command] = []
        if is_due and asking is not None and time.monotonic() >= self._again_at:
            asked = sorted({*altered, *(() if is_complete else captured().tables)})
            try:
                definitions, later = asking(lambda: defined_tables(connection, asked))
            except NotCertain as late:
                self._again_at = time.monotonic() + _AGAIN_SECONDS
                log.info("incsnap.online.ddl.reread: definitions are not certain yet: %s", late)
            else:
                certain = [table for table in asked if not redefined(table, later)]
                compared = {table: altered.pop(table) for table in certain if table in altered}
                commands = list(self._reread(start, compared, tables, definitions, captured, others))
                _learn(tables, certain, definitions, compared)
                is_complete = True
        asked_for = lists if is_complete else known.lists
        after = KnownTables(
            tuple(sorted(tables.items())), tuple(altered.values()), is_complete or known.is_complete, asked_for
        )
        return tuple(commands), {_CHANNEL: name if after == known and name else self._files.keep(after)}

    def _known(self, name: str) -> KnownTables:
        """Return what the file `name` tells; nothing if there is no file, or if it is gone or torn."""
        if not name:
            return KnownTables()
        try:
            return self._files.read(name)
        except CheckpointDamaged as damaged:
            log.warning("incsnap.online.ddl.reread: %s. MySQL is asked for definitions again.", damaged)
            return KnownTables()

    def _follow(
        self,
        change: SchemaChange,
        tables: dict[TableId, DefinedTable],
        altered: dict[TableId, AlteredTable],
        captured: Captured,
    ) -> None:
        """Note which captured tables the statement may have changed. A table that it creates or drops is forgotten."""
        statements = table_statements(change.sql, change.session.database, change.session.sql_mode)
        # A CREATE TABLE IF NOT EXISTS that finds the table is in the binlog, too, and has no Xid. CREATE TABLE ...
        # SELECT has none either: it is logged in the transaction of its rows.
        made = {
            each.table.folded: each.type
            for each in statements
            if each.table is not None
            and (
                each.type == "DROP"
                or (each.type == "CREATE" and (change.has_xid or (change.in_transaction and not each.if_absent)))
            )
        }
        hides = change.online.hides
        touched = [table for table in {**tables, **altered} if change.touches(table) and not hides(table)]
        named = [table for table in change.tables or () if self._is_data(table) and not hides(table)]
        if {table.folded for table in named} - {table.folded for table in touched}:
            server = captured()
            touched = list(dict.fromkeys([*touched, *map(server.spelled, named)]))
        for table in touched:
            if table.folded in made:
                tables.pop(table, None)
                altered[table] = AlteredTable(table, is_made=made[table.folded] == "CREATE")
            altered[table] = altered.get(table, AlteredTable(table)).behind(change)

    def _is_data(self, table: TableId) -> bool:
        """Whether the table is captured for its rows, and not for signals."""
        return self._included.included(table) and (
            self._included.signal_table is None or table.folded != self._included.signal_table.folded
        )

    def _reread(
        self,
        start: Offset,
        compared: Mapping[TableId, AlteredTable],
        before: Mapping[TableId, DefinedTable],
        after: Mapping[TableId, DefinedTable],
        captured: Captured,
        others: Sequence[Command],
    ) -> Iterator[Command]:
        """Yield a command for each table of `compared` that must be read again."""
        setting, number = self._settings.reread, 0
        snapshot = start.snapshot
        running = {scan.table for scan in snapshot.scans} | {request.table for request in snapshot.queue}
        read = _read_from_now_on(start, others)
        for table, altered in compared.items():
            if table not in after or table in read:
                continue
            if table in before:
                reasons = self._reasons(before[table], after[table], altered)
            elif altered.is_made and altered.is_redefined:
                reasons = ("rows may have come between its CREATE TABLE and this statement",)
            else:
                # A RENAME behind a DROP brings rows without events, as the ALTER TABLE of an unknown table does.
                if (altered.is_alter or altered.statements.others) and table not in running:
                    log.warning(
                        "incsnap.online.ddl.reread=%s: it is not known what %s was before %s. Old rows may have values"
                        " that no event has brought: signal execute-snapshot for it if consumers need them.",
                        setting,
                        table,
                        altered.sql,
                    )
                continue
            if not reasons:
                continue
            why = shorten("; ".join(reasons), _MOST_REASONS)
            if not self._settings.included(table):
                log.warning(
                    "incsnap.online.ddl.reread=%s: %s is not read again behind %s, because"
                    " snapshot.include.collection.list leaves the table out: %s",
                    setting,
                    table,
                    altered.sql,
                    why,
                )
                continue
            number += 1
            id_ = f"{_ID}{start.job_id[:8]}-{start.batch + 1}" + (f"-{number}" if number > 1 else "")
            command = snapshot_of(id_, [table], self._settings, captured())
            if command is not None:
                log.info(
                    "incsnap.online.ddl.reread=%s: %s is read again behind %s: %s", setting, table, altered.sql, why
                )
                yield replace(command, reason=f"{altered.sql}: {why}")

    def _reasons(self, before: DefinedTable, after: DefinedTable, altered: AlteredTable) -> tuple[str, ...]:
        """Return why the table must be read again; () if it need not be."""
        origins = None if altered.origins is None else dict(altered.origins)
        if self._settings.reread == "all":
            return changed_columns(before, after, origins, altered.statements)

        def is_captured(column: str) -> bool:
            # A record's key has its columns even if the row leaves them out.
            name, rules = f"{altered.table}.{column}", self._columns
            return rules.includes(name) or matches(rules.key_patterns(), name) or column in after.key

        return unknown_values(before, after, origins, altered.statements, is_captured, is_copied=altered.is_copied)


def _learn(
    tables: dict[TableId, DefinedTable],
    certain: Iterable[TableId],
    definitions: Mapping[TableId, DefinedTable],
    compared: Mapping[TableId, AlteredTable],
) -> None:
    """Put the certain definitions into `tables`. A table that is gone is forgotten, unless a RENAME has taken it away:
    another RENAME may bring its copy in its place."""
    for table in certain:
        if table in definitions:
            tables[table] = definitions[table]
        elif table in compared and not compared[table].is_away:
            tables.pop(table, None)


def _read_from_now_on(start: Offset, others: Iterable[Command]) -> set[TableId]:
    """Return the tables of which every row is read behind this batch's start: no new snapshot is needed.

    Other commands of the batch ask for such tables, or a snapshot of this module's has not begun yet.
    """
    whole = {
        collection.table
        for command in others
        if isinstance(command, Execute)
        for collection in command.collections
        if not collection.condition and collection.chosen is None
    }
    waiting = [*start.snapshot.queue, *(scan.request for scan in start.snapshot.scans if scan.maximum is None)]
    return whole | {request.table for request in waiting if request.signal.startswith(_ID)}
