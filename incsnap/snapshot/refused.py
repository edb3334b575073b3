"""The engine's reaction to rows that Kafka refused for their size: its `quarantine` step.

The batch that was to send such a row has left it out. The next batch puts the row's key into quarantine, before it
reports any table as complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from incsnap.snapshot import notifications as notes
from incsnap.snapshot.context import Range, SnapshotContext
from incsnap.snapshot.failures import MAX_QUARANTINED
from incsnap.snapshot.next_context import NextContext
from incsnap.snapshot.window import Window


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that the last batch has left out."""

    window: str  #: name of the file of its window, as in `ChunkResult.file`
    key: str  #: values of its record's key, for people
    error: str  #: why Kafka refused it, for people


def quarantine_refused(state: NextContext, context: SnapshotContext, refused: Sequence[RefusedRow]) -> None:
    """Put the keys of the rows that the last batch has left out into quarantine.

    `context` is the state at that batch's end.
    """
    windows = {each.window.result.file: each.window for each in context.released if each.window.result is not None}
    of_windows: dict[str, list[RefusedRow]] = {}
    for row in refused:
        if row.window in windows:
            of_windows.setdefault(row.window, []).append(row)
    for file, rows in of_windows.items():
        _quarantine(state, windows[file], rows)


def _quarantine(state: NextContext, window: Window, rows: Sequence[RefusedRow]) -> None:
    """Put the keys of the window's rows into quarantine, and report them."""
    scan = state.scans.get(window.scan)
    if scan is not None:
        known = {lost.upper for lost in scan.quarantine}
        # A range that begins and ends with one key stands for this key.
        new = [Range((row.key,), (row.key,), 1) for row in rows if (row.key,) not in known]
        state.scans[scan.number] = replace(scan, quarantine=(*scan.quarantine, *new)[:MAX_QUARANTINED])
        unlisted = len(scan.quarantine) + len(new) - MAX_QUARANTINED
        if unlisted > 0:
            state.warn(
                f"{window.table}: {unlisted} more rows are given up; `missing_keys` of the table's last notification"
                f" lists only the first {MAX_QUARANTINED}",
                window.signal,
            )
    for row in rows[: notes.MAX_NAMED]:
        state.give_up_row(window.signal, window.table, row.key, row.key, row.error)
    if len(rows) > notes.MAX_NAMED:
        more = f"... {len(rows) - notes.MAX_NAMED} more"
        state.give_up_row(window.signal, window.table, more, more, rows[-1].error)
