"""The repair of a gap (`incsnap.gap.recovery=differences`): answers of the comparison, as commands.

The driver compares the tables beside the stream and writes answers (`incsnap.checkpoint.gap_files`). The position of
the channel `gap` in the offset says how many answers are taken. A job without a gap has no such position.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.gap_files import BESIDE, GapAnswer, GapFiles, TableAnswer
from incsnap.checkpoint.location import is_local
from incsnap.config.settings import SnapshotSettings
from incsnap.planner.signal_commands import Captured, CapturedTables
from incsnap.planner.start_snapshot import INITIAL, snapshot_of
from incsnap.snapshot.commands import ChosenRows, Command, DataCollection, Execute, Stop
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId

log = logging.getLogger(__name__)

_CHANNEL = "gap"
#: The position behind the last answer.
_CLOSED = "closed"
#: Prefix of the snapshots' ids. The job's id and the number of the answer follow.
_ID = "gap-"


def open_positions() -> dict[str, Any]:
    """Return the positions of a new job that has a gap to close, and reads no tables otherwise."""
    return {_CHANNEL: 0, "start": _CLOSED}


def closed_positions(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the channel's position in a new job that makes no comparison.

    `before` are the positions of the job before. An unfinished comparison of that job gives the new job no answer.
    """
    return {_CHANNEL: _CLOSED} if _CHANNEL in before else {}


def is_unrepaired(end: Offset) -> bool:
    """Return True if the job of the offset `end` has a gap, and has not sent all that differs."""
    snapshot, own = end.snapshot, f"{_ID}{end.job_id[:8]}-"
    requests = (*(scan.request for scan in snapshot.scans), *snapshot.queue)
    is_compared = end.signal_positions.get(_CHANNEL, _CLOSED) == _CLOSED
    return not is_compared or any(each.signal.startswith(own) for each in requests)


class GapLists:
    """The answers about the gap of one job, for one planner. `files` is incsnap's part of the checkpoint."""

    def __init__(self, settings: SnapshotSettings, files: Files) -> None:
        self._settings, self._files = settings, files
        #: Seconds between two looks for an answer.
        self._pause = 0.2 if is_local(files.root) else 5.0
        self._looked_at = -float("inf")

    def commands(self, start: Offset, captured: Captured) -> tuple[tuple[Command, ...], dict[str, Any]]:
        """Return the commands for the batch after `start`, and the channel's new position.

        Both are empty if there is nothing to do. The snapshots that an earlier job began by itself are stopped first.
        """
        taken = start.signal_positions.get(_CHANNEL, _CLOSED)
        stops: tuple[Command, ...] = ()
        if start.batch == 0:
            # A job without a comparison may have a snapshot of its own.
            stops = tuple(
                Stop(f"{_ID}{start.job_id}", asked_by=prefix)
                for prefix in ((_ID,) if taken == _CLOSED else (INITIAL, _ID))
                if any(request.signal.startswith(prefix) for request in start.snapshot.queue)
            )
        if taken == _CLOSED:
            return stops, {}
        now = time.monotonic()
        if now - self._looked_at < self._pause and not stops:
            return (), {}
        self._looked_at = now
        files = GapFiles(self._files, start.job_id)
        answer = files.answer(taken + 1)
        if answer is None:
            # An earlier release left the channel open in jobs that compare nothing.
            return stops, {} if files.behind() is not None else {_CHANNEL: _CLOSED}
        commands = self._executes(f"{_ID}{start.job_id[:8]}-{taken + 1}", answer, captured())
        if answer.is_last:
            log.info("The gap is compared. %s", "What differs is read again" if commands else "Nothing more differs")
        return (*stops, *commands), {_CHANNEL: _CLOSED if answer.is_last else taken + 1}

    def _executes(self, name: str, answer: GapAnswer, captured: CapturedTables) -> tuple[Command, ...]:
        """Return the commands of an answer. Each has a table once."""
        rounds: list[dict[TableId, TableAnswer]] = []
        for each in answer.tables:
            table = TableId.parse(each.table)
            own = next((round_ for round_ in rounds if table not in round_), None)
            if own is None:
                rounds.append(own := {})
            own[table] = each
        names = [name, *(f"{name}-{number}" for number in range(2, len(rounds) + 1))]
        return tuple(
            Execute(id_, tuple(self._collection(each, captured) for each in round_.values()))
            for id_, round_ in zip(names, rounds, strict=False)
        )

    def _collection(self, answer: TableAnswer, captured: CapturedTables) -> DataCollection:
        table = TableId.parse(answer.table)
        if answer.keys:
            return DataCollection(table, chosen=ChosenRows(files=BESIDE + answer.keys, deletes=True))
        whole = snapshot_of("", [table], self._settings, captured)
        assert whole is not None
        return whole.collections[0]
