"""Output for people: results on stdout, problems and notes on stderr, colours only on a terminal."""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Return a console on stdout. Each use makes a new one, because a test or a redirection may replace stdout."""
    # Imported here and below, because a command that prints nothing, or only its help, should not wait for the import.
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def error_console() -> Console:
    """Return a console on stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def problem(message: str, hint: str = "", *, severity: str = "error", name: str = "") -> None:
    """Print an error or a warning to stderr, and below it the hint that says what to do.

    With `incsnap.log.format=json` the problem becomes a line of the log. `severity` is the first word of the line,
    "error" or "warning". `name` is the name of the setting or check that `message` is about; it is printed in bold
    before the message.
    """
    from incsnap.monitoring.log_format import writes_json

    if writes_json():
        text = f"{name}{message}. {hint}" if hint else f"{name}{message}"
        logging.getLogger("incsnap").log(logging.ERROR if severity == "error" else logging.WARNING, "%s", text)
        return
    from rich.text import Text

    shown, colour = error_console(), "red" if severity == "error" else "yellow"
    shown.print(Text.assemble((f"{severity}: ", f"bold {colour}"), (name, "bold"), message))
    if hint:
        shown.print(Text.assemble(("  → ", "bold"), hint))


def warning(message: str) -> None:
    """Print a warning to stderr."""
    problem(message, severity="warning")


def note(message: str) -> None:
    """Print a line to stderr. With `incsnap.log.format=json` it becomes a line of the log."""
    from incsnap.monitoring.log_format import writes_json

    if writes_json():
        logging.getLogger("incsnap").info("%s", message)
    else:
        error_console().print(message, markup=False)


def set_up_log(level: str) -> None:
    """Log one line for each event to stderr. `level` applies to incsnap; libraries log warnings and errors only."""
    from incsnap.monitoring.log_format import formatter

    handler = logging.StreamHandler()
    handler.setFormatter(formatter("text"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for name in ("incsnap", "signals"):
        logging.getLogger(name).setLevel(level.upper())


def set_log_format(log_format: str) -> None:
    """Use the format `log_format` (`incsnap.log.format`) from now on, also in processes that are forked later.

    With `json` stack traces and Python's warnings become lines of the log too.
    """
    from incsnap.monitoring.log_format import formatter

    if log_format == "json":
        sys.excepthook = _log_crash
        threading.excepthook = _log_crash_of_thread
        logging.captureWarnings(True)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter(log_format))


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log an error that nothing has caught, as `sys.excepthook`."""
    logging.getLogger("incsnap").critical("%s: %s", kind.__name__, error, exc_info=(kind, error, trace))


def _log_crash_of_thread(crash: threading.ExceptHookArgs) -> None:
    """Log an error that has ended a thread, as `threading.excepthook`. As in Python, SystemExit is no error."""
    if crash.exc_value is not None and not isinstance(crash.exc_value, SystemExit):
        _log_crash(crash.exc_type, crash.exc_value, crash.exc_traceback)
