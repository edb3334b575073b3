"""The line that a running job logs every 30 seconds, and the warning about binlog files that MySQL may soon purge."""

from __future__ import annotations

from incsnap.monitoring.amounts import count, duration, moment, size
from incsnap.monitoring.status import JobStatus, Rates, TableStatus

#: Tables that the line names. With more tables the line would be too long to read at a glance.
_TABLES = 3
#: Largest lag of a job that is up to date, in milliseconds.
_IDLE_MS = 5_000


def line(status: JobStatus, *, idle: bool = False) -> str:
    """Return the log line of a job, for example `Lag 0.06 s; 1,234 events/s, ...`.

    Return "" before the first planning. Without `idle` return "" also for an idle job: it has sent everything, and no
    snapshot is under way.
    """
    if status.stream is None:
        return ""
    stream, rates, snapshot = status.stream, status.rates, status.snapshot
    is_up_to_date = stream.connected and stream.lag_ms < _IDLE_MS and not stream.lag_bytes
    if not idle and is_up_to_date and rates == Rates() and not snapshot.active:
        return ""
    behind = f", {size(stream.lag_bytes)} behind" if stream.lag_bytes else ""
    parts = [
        f"Lag {duration(stream.lag_ms / 1000)}{behind}",
        f"{count(rates.events)} events/s, {count(rates.rows)} snapshot rows/s, {size(rates.bytes)}/s",
        f"at {stream.file}:{stream.pos}, batch {stream.batch}",
    ]
    if not stream.connected:
        parts.insert(0, "Not connected to the binlog")
    if snapshot.active:
        parts += map(_table, snapshot.tables[:_TABLES])
        left = len(snapshot.tables[_TABLES:]) + snapshot.waiting
        parts += [f"{left} more tables wait"] if left else []
        parts += [snapshot.waits_for] if snapshot.waits_for else []
    return "; ".join(parts)


def purge_warning(status: JobStatus) -> str:
    """Return the warning that the server may soon purge a file that the job needs, or "" if there is no such danger."""
    stream = status.stream
    if stream is None or stream.purge_not_before_ms is None or not stream.is_purged_soon(status.written_ms):
        return ""
    waiting = f"XA transactions wait for their XA COMMIT: {', '.join(stream.prepared)}" if stream.prepared else ""
    why, when = waiting or f"the job is {duration(stream.lag_ms / 1000)} behind", moment(stream.purge_not_before_ms)
    return (
        f"MySQL may purge {stream.needs_file} from {when} on, but the job still needs this binlog file"
        f" ({why}). Raise binlog_expire_logs_seconds on the server until the job has caught up"
    )


def _table(table: TableStatus) -> str:
    text = f"{table.table} (snapshot {table.signal}) {count(table.rows_done)} rows"
    if table.rows_expected:
        text += f" of about {count(table.rows_expected)}"
    if table.seconds_left is not None:
        text += f", {duration(table.seconds_left)} left"
    return text
