"""The snapshot that `snapshot.mode` asks for. It runs like the snapshot of a signal: beside the stream, with
notifications.

This snapshot has a signal channel of its own. The channel's position in the offset is the id of the snapshot that was
requested last. In a job's first offset the position `_DUE` says that a snapshot is due. So a job that has begun without
a snapshot does not get one when the mode is changed to `initial` later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from incsnap.config.patterns import TableFilter
from incsnap.config.settings import SnapshotSettings
from incsnap.planner.signal_commands import Captured, CapturedTables
from incsnap.snapshot.commands import Command, DataCollection, Execute, Stop
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId

log = logging.getLogger(__name__)

_CHANNEL = "start"
_DUE = ""
#: Prefix of the snapshot's id. The job's id follows, or with `snapshot.mode=always` the id of the run.
INITIAL = "initial-"


def first_positions(settings: SnapshotSettings) -> dict[str, Any]:
    """Return the positions of the signal channels in the first offset of a job."""
    return {_CHANNEL: _DUE} if settings.reads_at_start else {}


def snapshot_of(
    id_: str, tables: Iterable[TableId], settings: SnapshotSettings, captured: CapturedTables
) -> Execute | None:
    """Return the command that reads `tables`, with the conditions in the settings; None for no tables.

    `id_` is the snapshot's id in notifications.
    """
    conditions = {captured.compared(table): condition for table, condition in settings.conditions.items()}
    collections = tuple(DataCollection(each, conditions.get(captured.compared(str(each)), "")) for each in tables)
    return Execute(id_, collections) if collections else None


class StartSnapshot:
    """The snapshot of `snapshot.mode`.

    `filter_` has the order of the captured tables. `run` is the id of one run of `incsnap run` or of another program.
    It stays the same when the query is started again within the run. If it is "", the job's id takes its place.
    """

    def __init__(self, settings: SnapshotSettings, filter_: TableFilter, run: str) -> None:
        self._settings = settings
        self._filter = filter_
        self._run = run

    def commands(self, start: Offset, captured: Captured) -> tuple[tuple[Command, ...], dict[str, Any]]:
        """Return the commands for the batch after `start`, and the channel's new position.

        Both are empty if no snapshot is due. An unfinished snapshot of an earlier start is stopped first: its tables
        are read again from their beginning.
        """
        name = self._due(start)
        if not name:
            return (), {}
        captured_tables = captured()
        tables = captured_tables.tables
        included = self._filter.in_order(table for table in tables if self._settings.included(table))
        conditions = {captured_tables.compared(table) for table in self._settings.conditions}
        for lost in sorted(conditions - {captured_tables.compared(str(table)) for table in tables}):
            log.warning("snapshot.select.statement.overrides names %s, which is not captured", lost)
        log.info(
            "snapshot.mode=%s: %d of %d captured tables are read, beside the stream, as by signal %s",
            self._settings.mode,
            len(included),
            len(tables),
            name,
        )
        commands: list[Command] = []
        snapshot = start.snapshot
        unfinished = (*(scan.request for scan in snapshot.scans), *snapshot.queue)
        if any(request.signal.startswith(INITIAL) for request in unfinished):
            commands.append(Stop(name, asked_by=INITIAL))
        if (command := snapshot_of(name, included, self._settings, captured_tables)) is not None:
            commands.append(command)
        return tuple(commands), {_CHANNEL: name}

    def _due(self, start: Offset) -> str:
        """Return the id of the snapshot that is due; "" if none is due."""
        last_id = start.signal_positions.get(_CHANNEL)
        if self._settings.mode == "always":
            name = f"{INITIAL}{self._run or start.job_id}"
            return name if last_id != name else ""
        due = self._settings.reads_at_start and start.batch == 0 and last_id == _DUE
        return f"{INITIAL}{start.job_id}" if due else ""
