"""The snapshot's part of the status, derived from the context in the offset. Pure.

Rates and the remaining time are missing here. The driver adds them, because it sees how the rows grow (`watch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from incsnap.monitoring.row_estimate import Expected, expected_rows, share_of_keys
from incsnap.monitoring.status import FinishedTable, KeyRange, LimitStatus, SnapshotStatus, TableStatus, WindowStatus
from incsnap.snapshot.context import Scan, SnapshotContext, id_of
from incsnap.snapshot.engine import BatchFacts, Plan
from incsnap.snapshot.keys import show_key
from incsnap.snapshot.load import MeasuredLoad
from incsnap.snapshot.notifications import TABLE_SCAN_COMPLETED, Notification
from incsnap.snapshot.throttle import ROWS
from incsnap.snapshot.window import Window
from incsnap.tables import TableId

#: Windows that are listed. A signal for thousands of small tables has 256 in flight.
_LISTED_WINDOWS = 64
#: Tables that are listed, both of those being read and of those waiting. This keeps the status file below 100 kB.
_LISTED_TABLES = 64
#: Ended tables that are kept, and as many again that were not read completely. A signal may read thousands of tables.
_KEPT_TABLES = 50
#: Greatest share of the key range to report while some keys are still to be planned.
_NOT_ALL = 0.999


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The server's answers about a table, asked once."""

    rows: int | None = None  #: TABLE_ROWS of information_schema; None: unknown
    least: str | None = None  #: least value of the first ordering column; None: unknown, or not a number


@dataclass(frozen=True, slots=True)
class LimitsInForce:
    """The limits on reading that are in force, and the one that holds chunks back now."""

    listed: tuple[LimitStatus, ...] = ()  #: all limits, with their measured values
    held_back_by: str = ""  #: name of the limit that chunks wait for; "" for none
    why: str = ""  #: `held_back_by` as a sentence for people; "" for none


#: The value for a job without limits.
NO_LIMITS = LimitsInForce()


def limits_of(plan: Plan, facts: BatchFacts) -> LimitsInForce:
    """Return the limits on reading as they are when a batch was planned, with their measured values.

    `plan` is the engine's decision about the batch. `facts` are the facts that the engine has decided by.
    """
    context, bounds, held = plan.context, plan.bounds, plan.held_back
    listed = tuple(
        LimitStatus(bound.name, bound.most, bound.signal, _measured(bound.name, facts.loads))
        for bound in bounds.values()
    )
    if not context.active or context.paused:
        return LimitsInForce(listed)
    if held is not None:
        return LimitsInForce(listed, held.name, held.why)
    if ROWS in bounds and context.throttle.next_ms > facts.now_ms:
        return LimitsInForce(listed, ROWS, f"throttled to {bounds[ROWS].most:,} rows/s by {bounds[ROWS].whose}")
    return LimitsInForce(listed)


def _measured(name: str, loads: Sequence[MeasuredLoad]) -> int | None:
    """Return the greatest measured value of the limit `name`, or None if nothing was measured."""
    return max((load.value for load in loads if load.name == name and load.value is not None), default=None)


def snapshot_status(
    context: SnapshotContext,
    facts: Mapping[TableId, TableFacts],
    finished: Sequence[FinishedTable] = (),
    waits_for: str = "",
    retried: int = 0,
    limits: LimitsInForce = NO_LIMITS,
) -> SnapshotStatus:
    """Return the status of all snapshots in `context`. `facts` holds the known facts of tables that are being read."""
    in_flight = context.in_flight
    of_scan: dict[int, list[Window]] = {}
    for window in in_flight:
        of_scan.setdefault(window.scan, []).append(window)
    scans = sorted(context.scans, key=lambda scan: scan.number)[:_LISTED_TABLES]
    return SnapshotStatus(
        paused=context.paused,
        waits_for=waits_for,
        limits=limits.listed,
        held_back_by=limits.held_back_by,
        waiting=len(context.queue),
        waiting_first=tuple(str(request.table) for request in context.queue[:_LISTED_TABLES]),
        tables=tuple(_table(scan, of_scan.get(scan.number, []), facts.get(scan.table, TableFacts())) for scan in scans),
        windows_in_flight=len(in_flight),
        windows=tuple(_window(window) for window in in_flight[:_LISTED_WINDOWS]),
        rows_held=sum(each.result.rows - _rows_sent(each) for each in in_flight if each.result is not None),
        retried=retried,
        finished=tuple(finished),
    )


def waits_for(
    context: SnapshotContext, now_ms: int, behind_seconds: float | None, limits: LimitsInForce = NO_LIMITS
) -> str:
    """Return why no chunk is planned at the end of a batch, or "" if nothing prevents it.

    `behind_seconds` is the lag of the stream if that lag holds chunks back, else None.
    """
    if not context.active:
        return ""
    if context.paused:
        return f"paused by signal {context.paused_by or '(of an earlier release)'}; resume-snapshot continues it"
    if behind_seconds is not None:
        return f"the stream is {behind_seconds:,.0f} s behind the server and must catch up first"
    if limits.why:
        return limits.why
    due = [scan for scan in context.scans if not scan.wholly_planned or scan.again]
    if due and not context.in_flight and all(scan.not_before_ms > now_ms for scan in due):
        left = (min(scan.not_before_ms for scan in due) - now_ms) / 1000
        return f"queries about the table failed (see the log); next try in {left:.1f} s"
    return ""


def finished_table(notification: Notification) -> FinishedTable | None:
    """Return the table whose end `notification` reports, or None for another notification."""
    if notification.type != TABLE_SCAN_COMPLETED:
        return None
    fields = dict(notification.fields)
    return FinishedTable(
        table=fields["scanned_collection"],
        signal=notification.id,
        status=fields["status"],
        rows=int(fields["total_rows_scanned"]),
        ended_ms=notification.timestamp_ms,
        reason=fields.get("reason", ""),
        missing_keys=fields.get("missing_keys", ""),
    )


def kept_tables(ended: Sequence[FinishedTable]) -> tuple[FinishedTable, ...]:
    """Return the newest 50 ended tables, behind the newest 50 of those before them that were not read completely.

    A table that was not read completely is left out there if it was read completely later.
    """
    newest = ended[-_KEPT_TABLES:]
    # A dictionary keeps the last place of a table.
    whole_at = {each.table: place for place, each in enumerate(ended) if each.is_whole}
    failed = [
        each
        for place, each in enumerate(ended[:-_KEPT_TABLES])
        if not each.is_whole and whole_at.get(each.table, -1) < place
    ]
    return (*failed[-_KEPT_TABLES:], *newest)


def _table(scan: Scan, windows: Sequence[Window], facts: TableFacts) -> TableStatus:
    sent = sum(_rows_sent(window) for window in windows)
    read = scan.rows_read + sum(window.result.rows for window in windows if window.result is not None)
    being_read = sum(window.rows for window in windows if window.result is None)
    being_read += sum(missed.rows for missed in scan.again)
    # Neither statistics nor keys tell how many rows fulfil a condition, or are in a range or a sample.
    chosen = scan.chosen
    is_unknown = bool(scan.request.collection.condition or chosen.first or chosen.last or chosen.every)
    expected = None if is_unknown else expected_rows(read, being_read, facts.rows, _planned_share(scan, facts))
    if scan.keys and scan.maximum is not None:
        listed = max(read, int(scan.maximum[0] or 0) - scan.absent)
        expected = Expected(read, listed, listed)
    return TableStatus(
        number=scan.number,
        table=str(scan.table),
        signal=id_of(scan.request.signal),
        condition=scan.request.collection.condition,
        rows_done=scan.rows_read + sent,
        rows_expected=expected.likely if expected else None,
        rows_low=expected.low if expected else None,
        rows_high=expected.high if expected else None,
        chunk_rows=scan.chunk_rows,
        windows=len(windows),
        planned_key=show_key(scan.boundary) if scan.boundary is not None else "",
        maximum_key=show_key(scan.maximum) if scan.maximum is not None else "",
        read_again=len(scan.again),
        readings=max((missed.attempt for missed in scan.again), default=0),
        not_before_ms=scan.not_before_ms,
        quarantined=tuple(KeyRange(show_key(lost.lower), show_key(lost.upper)) for lost in scan.quarantine),
        lost_readings=scan.lost_readings,
    )


def _planned_share(scan: Scan, facts: TableFacts) -> float | None:
    """Return which share (0 to 1) of the key range is read or being read, or None if unknown."""
    if scan.wholly_planned:
        return 1.0
    if facts.least is None or scan.maximum is None:
        return None
    planned = scan.boundary[0] if scan.boundary is not None else None
    share = share_of_keys(facts.least, planned, scan.maximum[0])
    return None if share is None else min(share, _NOT_ALL)


def _window(window: Window) -> WindowStatus:
    result = window.result
    read = "releasing" if window.passed else "read"
    return WindowStatus(
        id=window.id,
        table=str(window.table),
        state=read if result is not None else "reading",
        rows=result.rows if result is not None else window.rows,
        planned_ms=window.planned_ms,
        bytes=result.record_bytes if result is not None else 0,
        file=result.high_file if result is not None else "",
        pos=result.high_pos if result is not None else 0,
        parts=result.parts if result is not None else 1,
        sent=window.sent,
        attempt=window.attempt,
    )


def _rows_sent(window: Window) -> int:
    """Return how many rows of the window were sent, about: rows are spread over the parts about evenly."""
    result = window.result
    return result.rows * window.sent // max(1, result.parts) if result is not None else 0
