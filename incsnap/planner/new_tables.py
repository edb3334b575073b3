"""The snapshots of tables that become captured while a job has an offset (`snapshot.new.tables=parallel`).

Two kinds of tables become captured with rows that no event has brought: tables that the settings did not capture
before, and tables whose rows a statement has moved in. Their rows come by a snapshot. Such a table that is renamed
before its snapshot ends is read under its new name.

The first kind is found by the filter of the start before. The filter lies in a file beside the checkpoint:

    filters/<digest of the content>.json    the lists that chose the captured tables

The position of the channel `tables` in the offset names the file. So a change of the lists is obeyed in exactly one
batch. The filter is remembered under every value of the setting: a table that was captured for a while without a
snapshot is not new when the setting is changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.config.patterns import TableFilter
from incsnap.config.settings import SnapshotSettings
from incsnap.ddl.statements import first_word, moved_in, taken_over
from incsnap.events import SchemaChange
from incsnap.planner.signal_commands import Captured, CapturedTables
from incsnap.planner.start_snapshot import snapshot_of
from incsnap.snapshot.commands import Command
from incsnap.snapshot.notifications import FEW_NAMED, comma_list
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId

log = logging.getLogger(__name__)

_CHANNEL = "tables"
#: Prefix of the snapshots' ids. The job's id and the number of the batch follow.
_ID = "new-tables-"


class FilterFiles:
    """The files with the filters of earlier starts. `files` is incsnap's part of the checkpoint."""

    def __init__(self, files: Files) -> None:
        self._files = ContentFiles(files, "filters", "the lists that chose the captured tables")

    def keep(self, tables: TableFilter) -> str:
        """Write the filter, forced to the disk, and return the file's name."""
        return self._files.write(tables.model_dump_json().encode())

    def read(self, name: str) -> TableFilter | None:
        """Return the filter in a file; None if the file is gone or torn."""
        try:
            return TableFilter.model_validate_json(self._files.read(name))
        except CheckpointDamaged:
            return None

    def forget(self, end: Offset) -> None:
        """Delete files that are not needed any more. The batch that ends at `end` is done."""
        self._files.forget(end.signal_positions.get(_CHANNEL), end.batch)


def first_filter(tables: TableFilter, files: FilterFiles) -> dict[str, Any]:
    """Write the filter of a new job, and return the channel's position in the first offset."""
    return {_CHANNEL: files.keep(tables)}


def filter_of(offset: Offset) -> str:
    """Return the name of the file with the filter of the start before; "" if there is none."""
    return str(offset.signal_positions.get(_CHANNEL) or "")


class NewTables:
    """The snapshots of new tables, for one planner. `tables` is the filter of this start."""

    def __init__(self, settings: SnapshotSettings, tables: TableFilter, files: FilterFiles) -> None:
        self._settings = settings
        self._filter = tables
        self._files = files
        self._name = ""

    def commands(
        self, start: Offset, changes: Sequence[SchemaChange], captured: Captured, *, reads_all: bool
    ) -> tuple[tuple[Command, ...], dict[str, Any]]:
        """Return the commands for the batch after `start`, and the channel's position behind it.

        `changes` are the statements of the batch. `reads_all`: the batch asks for a snapshot of all captured tables, so
        no table is asked for here.
        """
        before = start.signal_positions.get(_CHANNEL)
        self._name = self._name or self._files.keep(self._filter)
        position = {_CHANNEL: self._name}
        if reads_all or self._settings.new_tables != "parallel":
            return (), position
        moved = list(self._moved(changes, _unread(start)))
        if before in (None, self._name) and not moved:
            return (), position
        tables = captured()
        new = [*self._of_wider_lists(before, tables), *map(tables.spelled, moved)]
        read = [table for table in dict.fromkeys(new) if self._settings.included(table)]
        command = snapshot_of(f"{_ID}{start.job_id[:8]}-{start.batch + 1}", read, self._settings, tables)
        if command is None:
            return (), position
        log.info("snapshot.new.tables=parallel: tables are new here, and are read: %s", comma_list(read, FEW_NAMED))
        return (command,), position

    def _of_wider_lists(self, before: str | None, tables: CapturedTables) -> list[TableId]:
        """Return the captured tables that the filter in the file `before` did not let pass."""
        if before in (None, self._name):
            return []
        former = self._files.read(before or "")
        if former is None:
            log.warning(
                "snapshot.new.tables=parallel: it is not known which tables the job captured before, because the file"
                " of its lists is gone. Tables that are new since are not read: signal execute-snapshot for them."
            )
            return []
        return [table for table in tables.tables if not former.included(table)]

    def _moved(self, changes: Sequence[SchemaChange], unread: set[TableId]) -> Iterator[TableId]:
        """Yield the captured tables whose rows a statement has moved in and no event has brought.

        Such rows come from a table that is not captured, from a file, or from a new table that is not read to its end.
        The copy of a tool for online schema changes has the rows that events of the altered table have brought.
        `unread` are these new tables before the statements.
        """
        for change in changes:
            if not change.moves_rows_in:
                continue
            statement = (change.sql, change.database, change.session.sql_mode)
            for now, before in moved_in(*statement).items():
                if not self._filter.included(now) or change.online.keeps(now) or change.online.hides(now):
                    continue
                if before is None or not self._filter.included(before) or change.online.hides(before):
                    yield now
                elif before in unread and before not in taken_over(*statement):
                    unread.add(now)
                    yield now


def _unread(start: Offset) -> set[TableId]:
    """Return the tables that this module has asked for and that are read or wait. Their rows have no events."""
    snapshot = start.snapshot
    requests = (*(scan.request for scan in snapshot.scans), *snapshot.queue)
    return {request.table for request in requests if request.signal.startswith(_ID)}


def brings_tables(change: SchemaChange, included: Callable[[TableId], bool]) -> bool:
    """Whether a statement may have created a captured table, or given a captured name to another table."""
    if change.truncates:
        return False
    if change.tables is None:
        return True
    named = change.tables if first_word(change.sql) == "CREATE" else change.taken_names
    return any(included(table) for table in named if not change.online.hides(table))
