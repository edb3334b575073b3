"""The demo's output: a progress bar, or lines without a terminal, and a short report at the end."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from incsnap.checkpoint.status import Status
from incsnap.cli import output
from incsnap.monitoring.status import Sums
from lab.workload import WorkDone

#: Seconds over which the rate is averaged, and seconds between two lines without a terminal.
_RATE_SECONDS, _LINE_SECONDS = 3.0, 3.0


class Display:
    """A progress display, used as a context manager. Call `show` often.

    `total` is the approximate number of rows that the snapshots read.
    """

    def __init__(self, total: int) -> None:
        self._console = output.console()
        self._total = total
        self._counts: deque[tuple[float, int]] = deque()
        self._next_line = 0.0
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f}%  {task.fields[figures]}"),
            console=self._console,
            transient=False,
        )
        self._task = self._progress.add_task("", total=total, figures="")

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def finish(self) -> None:
        """Set the bar to 100 %. `total` was an estimate, because rows come and go."""
        self._progress.update(self._task, completed=self._total)

    def show(self, status: Status, lag_seconds: float) -> None:
        """Show the figures of `status`, and the lag. Without a terminal, print a line every 3 s."""
        now = time.monotonic()
        rows = status.sent.reads + status.sent.discarded
        self._counts.append((now, rows))
        while self._counts[0][0] < now - _RATE_SECONDS and len(self._counts) > 1:
            self._counts.popleft()
        since, before = self._counts[0]
        span = max(now - since, 0.1)
        figures = (
            f"{rows:,} rows  {(rows - before) / span:,.0f} rows/s  {status.windows_in_flight} windows  "
            f"{status.sent.discarded:,} discarded  {status.sent.events:,} events  lag {lag_seconds:.1f} s"
        )
        if self._console.is_terminal:
            self._progress.update(self._task, completed=min(rows, self._total), figures=figures)
        elif now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            self._console.print(f"  {figures}")


def report(sent: Sums, *, written: WorkDone, lags: Sequence[float], times: Mapping[str, float]) -> None:
    """Print rows, discarded rows, changes, the lag and the seconds of each step.

    `lags` are in seconds. `times` maps the name of each step to its seconds.
    """
    shown = output.console()
    rate = (sent.reads + sent.discarded) / times["snapshots"]
    shown.print(
        f"Snapshots: {sent.reads:,} rows sent, {sent.discarded:,} overtaken rows discarded, {rate:,.0f} rows/s from the"
        " signal on"
    )
    shown.print(
        f"Writer: {written.changes:,} row changes in {written.transactions:,} transactions"
        f" and {written.rollbacks:,} rolled back, all the while"
    )
    if lags:
        p99 = sorted(lags)[int(len(lags) * 0.99)]
        shown.print(f"Lag from commit to consumer: median {statistics.median(lags):.2f} s, p99 {p99:.2f} s")
    shown.print("Seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in times.items()))
