"""The progress of a comparison on stderr: a bar on a terminal, a line of the log every ten seconds elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from incsnap.cli.output import error_console
from incsnap.monitoring.amounts import duration

if TYPE_CHECKING:
    from rich.console import Console

    from incsnap.verify.progress import Progress, Seen

log = logging.getLogger(__name__)

_BAR_SECONDS, _LINE_SECONDS = 0.5, 10.0


@contextmanager
def shown(progress: Progress, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Show the progress during the block. Yield a function that ends the display early, for a question.

    `quiet`: show nothing if stderr is no terminal.
    """
    console = error_console()
    with ExitStack() as stack:
        if console.is_terminal:
            stack.enter_context(_bar(progress, console))
        elif not quiet:
            stack.enter_context(_repeated(lambda: log.info("%s", line(progress.seen())), _LINE_SECONDS))
        yield stack.close


def line(seen: Seen) -> str:
    """Return what a moment of a comparison shows.

    >>> from incsnap.verify.progress import Seen
    >>> line(Seen(5_000, 10_000, 0, 10_000, "reading tables", 90.0))
    'reading tables: 5,000 of 10,000 rows and 0 of 10,000 records, 25 %, 1 min 30 s left'
    """
    left = "" if seen.seconds_left is None else f", {duration(seen.seconds_left)} left"
    return f"{seen.step}: {seen}, {100 * seen.share:.0f} %{left}"


@contextmanager
def _bar(progress: Progress, console: Console) -> Iterator[None]:
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(BarColumn(24), TextColumn("{task.description}"), console=console, transient=True) as bar, _log_above():
        task = bar.add_task("", total=1.0)

        def update() -> None:
            seen = progress.seen()
            bar.update(task, completed=seen.share, description=line(seen))

        with _repeated(update, _BAR_SECONDS):
            yield


@contextmanager
def _log_above() -> Iterator[None]:
    """Write lines of the log by today's `sys.stderr`, which writes above the bar."""
    handlers = [each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler]
    before = [each.setStream(sys.stderr) for each in handlers]
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            if stream is not None:
                handler.setStream(stream)


@contextmanager
def _repeated(show: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `show` every so many seconds, on a thread of its own, until the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            show()

    thread = threading.Thread(target=repeat, name="incsnap-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
