"""The engine's reaction to a chunk that could not be read: a part of its `receive` step."""

from __future__ import annotations

from dataclasses import replace

from incsnap.errors import shorten
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.context import Range, Scan
from incsnap.snapshot.failed_chunk import FailedChunk
from incsnap.snapshot.failures import GIVE_UP_AFTER, MAX_QUARANTINED, MAX_RANGES, SHAPE, TIMEOUT, TOO_LARGE, Verdict
from incsnap.snapshot.keys import show_key
from incsnap.snapshot.next_context import REASON, NextContext
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import Window

#: The way out for a listed key that many rows have.
_MANY_ROWS = (
    "all rows of a listed key must fit into one chunk: send a signal with incsnap-from and incsnap-to, both this key,"
    " or with an additional condition"
)


def fail(state: NextContext, window: Window, error: str, limits: Limits, key: str = "") -> None:
    """Let the range of a failed chunk be read again, or give up its row or its table.

    `error` has the form `kind: message`. `key` is the key of a list that the window reads; "" for another window.
    """
    scan = state.scans[window.scan]
    failed = FailedChunk.of(window, error, limits.query_seconds)
    missed = failed.missed(state.now_ms)
    state.dropped.append(window.id)
    if failed.is_worth_a_warning:
        _tell(state, failed, error, key)
        scan = state.scans[window.scan]
    if failed.verdict is Verdict.GIVE_UP:
        state.end(scan, notes.SKIPPED, error)
    elif failed.is_hopeless and len(scan.quarantine) >= MAX_QUARANTINED:
        state.end(scan, notes.SQL_EXCEPTION, error)
    elif failed.is_hopeless and key:
        # A range that begins and ends with one key stands for this key.
        more = f"; {_MANY_ROWS}" if failed.kind == TOO_LARGE else ""
        _quarantine(state, scan, replace(missed, lower=(key,), upper=(key,)), f"{error}{more}")
    elif failed.is_hopeless:
        _quarantine(state, scan, missed, error)
    else:
        _repeat(state, scan, failed, missed, limits)


def _tell(state: NextContext, failed: FailedChunk, error: str, key: str) -> None:
    """Warn of the failed chunk.

    Of lost attempts only the first of a table is reported, and all are counted, because hundreds may follow. Of chunks
    that meet other columns or no table, only the first is reported until the table is described again.
    """
    window = failed.window
    if failed.kind == SHAPE and not state.scans[window.scan].described:
        return
    if failed.is_lost:
        scan = state.scans[window.scan]
        state.scans[scan.number] = replace(scan, lost_readings=scan.lost_readings + 1)
        if scan.lost_readings:
            return
    where = f"{window.table} {shorten(key) or f'({show_key(window.lower)}, {show_key(window.upper)}]'}"
    state.warn(f"chunk {where} failed, attempt {failed.attempt}: {shorten(error, REASON)}", window.signal)


def count_failure(state: NextContext, number: int, error: str) -> None:
    """Count a batch in which chunks of a table failed by their own fault and none succeeded.

    End the table after `GIVE_UP_AFTER` such batches in a row.
    """
    scan = state.scans[number]
    if scan.failures + 1 >= GIVE_UP_AFTER:
        state.end(scan, notes.SQL_EXCEPTION, error)
    else:
        state.scans[number] = replace(scan, failures=scan.failures + 1)


def _repeat(state: NextContext, scan: Scan, failed: FailedChunk, missed: Range, limits: Limits) -> None:
    """Put the failed chunk's range in front of those to read again, and adapt the table to the failure."""
    if failed.shrinks_chunks:
        # Time makes no chunk smaller than this: see `sizing`.
        least = min(limits.least_rows, limits.start_rows) if failed.kind == TIMEOUT else 1
        scan = replace(scan, chunk_rows=min(scan.chunk_rows, max(least, failed.window.rows // 2)))
    if failed.wants_time:
        scan = replace(scan, doublings=max(scan.doublings, failed.window.doublings + 1))
    if failed.is_of_the_server:
        # The table waits, because a batch would otherwise wait for the boundaries of chunks that fail as well.
        scan = replace(scan, not_before_ms=max(scan.not_before_ms, missed.not_before_ms))
    if failed.kind == SHAPE:
        # Describe the table again even if no DDL follows: it may have been described before a DDL was visible.
        scan = replace(scan, described=False)
    state.scans[scan.number] = scan
    split = failed.is_to_be_halved and len(scan.again) < MAX_RANGES
    state.put_in_front(scan.number, replace(missed, split=split))


def _quarantine(state: NextContext, scan: Scan, lost: Range, error: str) -> None:
    """Give up the range `lost`, which is a single row, and report its key."""
    state.scans[scan.number] = replace(scan, quarantine=(*scan.quarantine, lost))
    state.give_up_row(scan.request.signal, scan.table, show_key(lost.lower), show_key(lost.upper), error)
