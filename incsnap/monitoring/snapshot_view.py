"""The snapshot as people see it, read off the context that the offset carries. Pure.

Rates and the time that is left come from the driver, which sees how the rows go up (``watch``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from incsnap.monitoring.row_estimate import expected_rows, share_of_keys
from incsnap.monitoring.status import FinishedTable, KeyRange, LimitStatus, SnapshotStatus, TableStatus, WindowStatus
from incsnap.snapshot.context import Scan, SnapshotContext
from incsnap.snapshot.engine import BatchFacts, Plan
from incsnap.snapshot.keys import show_key
from incsnap.snapshot.load import MeasuredLoad
from incsnap.snapshot.notifications import TABLE_SCAN_COMPLETED, Notification
from incsnap.snapshot.throttle import ROWS
from incsnap.snapshot.window import Window
from incsnap.tables import TableId

#: Windows that are listed; a signal for thousands of small tables has 256 in flight.
_LISTED_WINDOWS = 64
#: Tables that are listed, read and waiting. With them the file stays below 100 kB.
_LISTED_TABLES = 64
#: Of a key range's share, where some of it is still to be planned.
_NOT_ALL = 0.999


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the server said of a table when it was first asked: ``rows`` of its statistics, and the ``least`` value of
    the column that orders the chunks where that is a number. None: not known."""

    rows: int | None = None
    least: str | None = None


@dataclass(frozen=True, slots=True)
class LimitsInForce:
    """``listed``: those in force. ``held_back_by``: the name of the one that chunks wait for, "" for none; ``why``: the
    same for people."""

    listed: tuple[LimitStatus, ...] = ()
    held_back_by: str = ""
    why: str = ""


#: Of a job that has none.
NO_LIMITS = LimitsInForce()


def limits_of(plan: Plan, facts: BatchFacts) -> LimitsInForce:
    """What holds reading back, or may, at the end of the batch that was planned by these facts."""
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
    return max((load.value for load in loads if load.name == name and load.value is not None), default=None)


def snapshot_status(
    context: SnapshotContext,
    facts: Mapping[TableId, TableFacts],
    finished: Sequence[FinishedTable] = (),
    waits_for: str = "",
    retried: int = 0,
    limits: LimitsInForce = NO_LIMITS,
) -> SnapshotStatus:
    """``facts``: of the tables being read, as far as they are known."""
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
        rows_held=sum(_rows_left(window) for window in in_flight if window.reading is not None),
        retried=retried,
        finished=tuple(finished),
    )


def waits_for(
    context: SnapshotContext, now_ms: int, behind_seconds: float | None, limits: LimitsInForce = NO_LIMITS
) -> str:
    """Why no chunk is planned at the end of a batch, "" where nothing is in the way. ``behind_seconds``: of the stream,
    where it is so far behind that none is planned."""
    if not context.active:
        return ""
    if context.paused:
        return f"paused by signal {context.paused_by or '(of a former release)'}; resume-snapshot goes on"
    if behind_seconds is not None:
        return f"the stream is {behind_seconds:,.0f} s behind the server, and is let catch up first"
    if limits.why:
        return limits.why
    due = [scan for scan in context.scans if not scan.wholly_planned or scan.again]
    if due and not context.in_flight and all(scan.not_before_ms > now_ms for scan in due):
        left = (min(scan.not_before_ms for scan in due) - now_ms) / 1000
        return f"questions about the table failed, see the log; asked again in {left:.1f} s"
    return ""


def finished_table(notification: Notification) -> FinishedTable | None:
    """The table whose end a notification tells, None for other notifications."""
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


def _table(scan: Scan, windows: Sequence[Window], facts: TableFacts) -> TableStatus:
    sent = sum(_rows_sent(window) for window in windows)
    read = scan.rows_read + sum(window.reading.rows for window in windows if window.reading is not None)
    being_read = sum(window.rows for window in windows if window.reading is None)
    being_read += sum(missed.rows for missed in scan.again)
    # What of a table a condition holds for, neither statistics nor keys tell.
    has_condition = bool(scan.request.collection.condition)
    expected = None if has_condition else expected_rows(read, being_read, facts.rows, _planned_share(scan, facts))
    return TableStatus(
        number=scan.number,
        table=str(scan.table),
        signal=scan.request.signal,
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
    if scan.wholly_planned:
        return 1.0
    if facts.least is None or scan.maximum is None:
        return None
    planned = scan.boundary[0] if scan.boundary is not None else None
    share = share_of_keys(facts.least, planned, scan.maximum[0])
    return None if share is None else min(share, _NOT_ALL)


def _window(window: Window) -> WindowStatus:
    reading = window.reading
    read = "releasing" if window.passed else "read"
    return WindowStatus(
        id=window.id,
        table=str(window.table),
        state=read if reading is not None else "reading",
        rows=reading.rows if reading is not None else window.rows,
        planned_ms=window.planned_ms,
        bytes=reading.record_bytes if reading is not None else 0,
        file=reading.high_file if reading is not None else "",
        pos=reading.high_pos if reading is not None else 0,
        parts=reading.parts if reading is not None else 1,
        sent=window.sent,
        attempt=window.attempt,
    )


def _rows_sent(window: Window) -> int:
    """Rows of the parts that were released: those of a window are spread over its parts about evenly."""
    reading = window.reading
    return reading.rows * window.sent // max(1, reading.parts) if reading is not None else 0


def _rows_left(window: Window) -> int:
    reading = window.reading
    return reading.rows - _rows_sent(window) if reading is not None else window.rows
