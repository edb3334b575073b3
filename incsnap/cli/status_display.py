"""The status for people: a few lines about the stream, and a progress bar for each table that is being read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from incsnap.errors import shorten
from incsnap.monitoring.amounts import count, duration, moment, size
from incsnap.monitoring.gap_status import gap_line
from incsnap.monitoring.liveness import Liveness, stalled
from incsnap.monitoring.status import (
    FAILED,
    RETRYING,
    FinishedTable,
    JobStatus,
    LimitStatus,
    SnapshotStatus,
    StreamStatus,
    TableStatus,
)
from incsnap.monitoring.verification_status import verification_line
from incsnap.snapshot.notifications import key_range

#: Tables, and key ranges of a table, that are shown. `--json` has all of them.
_TABLES, _RANGES = 12, 5
#: Ended tables that are shown: of those that were not read completely, and of all.
_FAILED, _NEWEST = 8, 3
#: Remark behind figures of a job that does not run.
_OLD = ", when the job was seen last"


def shown(status: JobStatus, liveness: Liveness, now_ms: int) -> RenderableType:
    """Return the status for rich's console. `now_ms` is the time by a clock close to that of the job's machine."""
    table = Table.grid(padding=(0, 2))
    for name, value in _lines(status, liveness, now_ms):
        table.add_row(f"[bold]{name}", value)
    snapshot = status.snapshot
    if not snapshot.tables:
        return table
    bars = Table.grid(padding=(0, 2))
    for each in snapshot.tables[:_TABLES]:
        rows, color = _rows(each, live=liveness.alive), "yellow" if liveness.alive else "dim"
        bars.add_row(escape(each.table), *_progress(each, live=liveness.alive), rows)
        for line in _troubles(each):
            bars.add_row("", "", "", f"[{color}]{escape(line)}")
    if len(snapshot.tables) > _TABLES:
        bars.add_row(f"... {len(snapshot.tables) - _TABLES} more", "", "", "")
    return Group(table, "", bars)


def _lines(status: JobStatus, liveness: Liveness, now_ms: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each line."""
    yield "job", f"{escape(status.topic_prefix)}  {_state(status, liveness, now_ms)}"
    failure = status.failure
    if failure is not None:
        passed = "" if status.state in (RETRYING, FAILED) else " (it has passed)"
        yield "last error", f"[red]{escape(failure.message)}[/] at {moment(failure.at_ms)}{passed}"
        yield "", f"[dim]→ {escape(failure.hint)}"
    stream = status.stream
    if stream is None:
        return
    live = liveness.alive
    yield "lag", _lag(stream, live=live)
    took = f" took {stream.batch_ms} ms" if stream.batch_ms and live else ""
    yield "position", f"{stream.file}:{stream.pos:,}, batch {stream.batch:,}{took}"
    if status.sums.batches or stream.batch <= 1:
        yield from _sent(status, liveness)
    # Otherwise this is a DataFrame query, whose rows Spark counts.
    yield "binlog", _purge(stream, now_ms, live=live)
    if stream.prepared:
        names = shorten(", ".join(stream.prepared))
        wait = "XA transaction waits for its" if len(stream.prepared) == 1 else "XA transactions wait for their"
        yield "prepared", _of_then(f"{len(stream.prepared)} {wait} XA COMMIT: {escape(names)}", live=live)
    yield "snapshot", _of_then(escape(_snapshot(status.snapshot)), live=live or not status.snapshot.active)
    if status.gap is not None:
        color = "red" if status.gap.failure else ("yellow" if live else "dim") if status.gap.is_open else ""
        text = escape(gap_line(status.gap))
        yield "gap", f"[{color}]{text}[/]" if color else text
    if status.verification is not None:
        color = "red" if status.verification.is_bad else ""
        text = escape(verification_line(status.verification))
        yield "verified", f"[{color}]{text}[/]" if color else text
    for ended in worth_showing(status.snapshot.finished):
        why = f": {shorten(ended.reason, 200)}" if ended.reason else ""
        lost = f", without the keys {ended.missing_keys}" if ended.missing_keys else ""
        yield "finished", escape(f"{ended.table} {ended.status}, {count(ended.rows)} rows{lost}{why}")


def worth_showing(finished: Sequence[FinishedTable]) -> list[FinishedTable]:
    """Return the ended tables to show: first those that were not read completely, then the newest."""
    failed = [each for each in finished if not each.is_whole]
    return [*failed[-_FAILED:], *(each for each in finished[-_NEWEST:] if each not in failed)]


def _sent(status: JobStatus, liveness: Liveness) -> Iterator[tuple[str, str]]:
    if liveness.alive:
        rates = status.rates
        yield "now", f"{count(rates.events)} events/s, {count(rates.rows)} snapshot rows/s, {size(rates.bytes)}/s"
    sums = status.sums
    yield (
        "sent",
        (
            f"{count(sums.events)} change events, {count(sums.reads)} snapshot rows, {size(sums.bytes)}"
            f" ({count(sums.discarded)} more rows were overtaken by an event)"
        ),
    )


def _state(status: JobStatus, liveness: Liveness, now_ms: int) -> str:
    where = f"on {escape(status.host)}, process {status.pid}"
    if liveness.has_ended:
        color = "red" if status.state == FAILED else "yellow"
        return f"[{color}]{status.state}[/] since {moment(liveness.since_ms)} ({where})"
    if not liveness.alive:
        return f"[bold red]dead[/] since {moment(liveness.since_ms)}: its last state was {status.state} {where}"
    if stalled(status, now_ms):
        return f"[bold red]stalled[/] since {moment(status.asked_ms)}: no batch has ended since ({where})"
    color = "green" if status.state not in (RETRYING,) else "red"
    tries = f", failure {status.failure.count}" if status.state == RETRYING and status.failure else ""
    return f"[{color}]{status.state}[/] for {duration((now_ms - status.started_ms) / 1000)}{tries} {where}"


def _lag(stream: StreamStatus, *, live: bool) -> str:
    behind = "" if stream.lag_bytes is None else f", {size(stream.lag_bytes)} of binlog behind the server"
    lost = "" if stream.connected or not live else "  [red]not connected to the binlog"
    text = f"{duration(stream.lag_ms / 1000)}{behind}{lost}"
    return _of_then(text, live=live)


def _of_then(text: str, *, live: bool) -> str:
    """Return a line with figures of the present. The line is dimmed if the job does not run."""
    return text if live else f"[dim]{text}{_OLD}"


def _purge(stream: StreamStatus, now_ms: int, *, live: bool) -> str:
    needed = f"needs {stream.needs_file or 'nothing yet'}"
    if not live:
        # The earliest moment of the purge holds, as the server said it.
        purge = f"; the server purges this file at {moment(at)} or later" if (at := stream.purge_not_before_ms) else ""
        return _of_then(needed + purge, live=False)
    if stream.purge_not_before_ms is None:
        return f"{needed}; it is unknown when the server purges this file"
    if stream.purge_not_before_ms == 0:
        return f"{needed}; the server does not purge this file"
    color = "[red]" if stream.is_purged_soon(now_ms) else ""
    return f"{color}{needed}; the server purges this file at {moment(stream.purge_not_before_ms)} or later"


def _snapshot(snapshot: SnapshotStatus) -> str:
    named = ", ".join(f"{limit.name} {limit.most:,}{_measured(limit)}" for limit in snapshot.limits)
    limits = [f"limits: {named}"] if named else []
    if not snapshot.active:
        return "; ".join(["none", *limits])
    parts = [f"{len(snapshot.tables)} being read, {snapshot.waiting:,} waiting"]
    windows = "window" if snapshot.windows_in_flight == 1 else "windows"
    verb = "holds" if snapshot.windows_in_flight == 1 else "hold"
    parts.append(f"{snapshot.windows_in_flight} {windows} in flight that {verb} {count(snapshot.rows_held)} rows")
    if snapshot.retried:
        parts.append(f"{snapshot.retried:,} readings repeated")
    parts += limits
    if snapshot.paused or snapshot.waits_for:
        parts.append(snapshot.waits_for or "paused")
    return "; ".join(parts)


def _measured(limit: LimitStatus) -> str:
    return f" (now {limit.measured:,})" if limit.measured is not None else ""


def _progress(table: TableStatus, *, live: bool) -> tuple[ProgressBar | str, str]:
    """Return a progress bar and the percentage, or twice "" if the number of rows is unknown.

    A bar that does not move would suggest a stuck table. So a job that does not run has none.
    """
    if not table.rows_expected:
        return "", ""
    done = min(table.rows_done, table.rows_expected)
    if not live:
        return "", f"[dim]{100 * done / table.rows_expected:.0f} %"
    return ProgressBar(total=table.rows_expected, completed=done, width=24), f"{100 * done / table.rows_expected:.0f} %"


def _rows(table: TableStatus, *, live: bool) -> str:
    """Return the rows that were read. Only of a job that runs they have a rate and a time left."""
    text = f"{count(table.rows_done)} rows"
    if table.rows_expected is not None and table.rows_low is not None and table.rows_high is not None:
        text += f" of about {count(table.rows_expected)}"
        if table.rows_high - table.rows_low > table.rows_expected // 50:
            text += f" ({count(table.rows_low)} to {count(table.rows_high)})"
    if not live:
        return _of_then(text, live=False)
    if table.rows_per_second is not None:
        text += f", {count(table.rows_per_second)} rows/s"
    if table.seconds_left is not None and table.seconds_low is not None and table.seconds_high is not None:
        text += f", {duration(table.seconds_left)} left"
        if table.seconds_high - table.seconds_low > 10 and table.seconds_high > 1.5 * table.seconds_low:
            text += f" ({duration(table.seconds_low)} to {duration(table.seconds_high)})"
    return text


def _troubles(table: TableStatus) -> Iterator[str]:
    """Yield lines about key ranges that are read again, were lost or were given up."""
    if table.read_again:
        yield f"{table.read_again} ranges are read again, one of them {table.readings} times so far"
    if table.lost_readings:
        yield f"{table.lost_readings:,} readings of its chunks were lost and repeated"
    if table.quarantined:
        ranges = "; ".join(key_range(each.lower, each.upper) for each in table.quarantined[:_RANGES])
        more = f"; ... {len(table.quarantined) - _RANGES} more" if len(table.quarantined) > _RANGES else ""
        yield f"given up (quarantine), keys {ranges}{more}"
