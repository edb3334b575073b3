"""What a person sees: problems and notes on stderr, results on stdout, colours only on a terminal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Made anew for each use, so that it writes to the stdout of the moment (a test's, a redirected one)."""
    # Here and below: a command that prints nothing, or its help, should not wait for it.
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def error_console() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def problem(message: str, hint: str) -> None:
    from rich.text import Text

    shown = error_console()
    shown.print(Text.assemble(("error: ", "bold red"), message))
    shown.print(Text.assemble(("  → ", "bold"), hint))


def warning(message: str) -> None:
    from rich.text import Text

    error_console().print(Text.assemble(("warning: ", "bold yellow"), message))


def note(message: str) -> None:
    from rich.text import Text

    error_console().print(Text(message))


def set_up_log(level: str) -> None:
    """One line an event on stderr; libraries only from warnings on."""
    from incsnap.monitoring.log_format import formatter

    handler = logging.StreamHandler()
    handler.setFormatter(formatter("text"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for name in ("incsnap", "signals"):
        logging.getLogger(name).setLevel(level.upper())


def set_log_format(log_format: str) -> None:
    """As ``incsnap.log.format`` has it, once the settings are read; processes that are forked from now on have it."""
    from incsnap.monitoring.log_format import formatter

    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter(log_format))
