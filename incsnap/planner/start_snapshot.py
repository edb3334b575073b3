"""The snapshot that ``snapshot.mode`` asks for, by the way of a signal: beside the stream, with notifications.

It has a signal channel of its own, whose position in the offset is the id of the snapshot that was asked for last. A
job's first offset says by it that one is due (``_DUE``), so that a job that has begun without one never gets one
because the mode is another later.
"""

from __future__ import annotations

import logging
from typing import Any

from incsnap.config.snapshot_settings import SnapshotSettings
from incsnap.planner.signal_commands import Captured
from incsnap.snapshot.commands import Command, DataCollection, Execute, Stop
from incsnap.snapshot.offset import Offset

log = logging.getLogger(__name__)

_CHANNEL = "start"
_DUE = ""
#: How its ids begin; what follows is the job's id or, where each start has one, that of the start.
_ID = "initial-"


def first_positions(settings: SnapshotSettings) -> dict[str, Any]:
    """The positions of the signal channels for the first offset of a job."""
    return {_CHANNEL: _DUE} if settings.reads_at_start else {}


class StartSnapshot:
    """``run``: of the job, by ``incsnap run`` or a program, however often its query is started again in it."""

    def __init__(self, settings: SnapshotSettings, run: str) -> None:
        self._settings = settings
        self._run = run

    def commands(self, start: Offset, captured: Captured) -> tuple[tuple[Command, ...], dict[str, Any]]:
        """What is asked of the batch behind ``start``, and the channel's position then; nothing, mostly.

        One of an earlier start that is not done ends: its tables are read from their beginning.
        """
        name = self._due(start)
        if not name:
            return (), {}
        captured_tables = captured()
        tables, compared = captured_tables.tables, captured_tables.compared
        included = [table for table in tables if self._settings.included(table)]
        conditions = {compared(table): condition for table, condition in self._settings.conditions.items()}
        for lost in sorted(set(conditions) - {compared(str(table)) for table in tables}):
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
        if any(request.signal.startswith(_ID) for request in unfinished):
            commands.append(Stop(name, asked_by=_ID))
        if included:
            collections = (DataCollection(each, conditions.get(compared(str(each)), "")) for each in included)
            commands.append(Execute(name, tuple(collections)))
        return tuple(commands), {_CHANNEL: name}

    def _due(self, start: Offset) -> str:
        """The id of the snapshot that is due; "" where none is."""
        last_id = start.signal_positions.get(_CHANNEL)
        if self._settings.mode == "always":
            name = f"{_ID}{self._run or start.job_id}"
            return name if last_id != name else ""
        due = self._settings.reads_at_start and start.batch == 0 and last_id == _DUE
        return f"{_ID}{start.job_id}" if due else ""
