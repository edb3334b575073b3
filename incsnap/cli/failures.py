"""A user's mistake is told in words with a way out; a stack trace means a defect of ours."""

from __future__ import annotations

from signal import SIG_IGN, SIGINT, default_int_handler, getsignal
from signal import signal as on_signal
from typing import Any

import click

from incsnap.cli import output
from incsnap.errors import ConfigError, IncsnapError, PreflightFailed


class FailuresInWords(click.Command):
    """A command, or a group of them, that ends with one of the exit codes in the help of ``incsnap``."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except IncsnapError as error:
            output.problem(error.message, error.hint)
            ctx.exit(2 if isinstance(error, ConfigError | PreflightFailed) else 1)
        except KeyboardInterrupt:
            output.note("Interrupted.")
            ctx.exit(130)


def make_interruptible() -> None:
    """Lets SIGINT end the program, also where it was ignored at the start.

    A shell's background job inherits it ignored, and Python leaves it so: nothing could be interrupted in order.
    """
    if getsignal(SIGINT) is SIG_IGN:
        on_signal(SIGINT, default_int_handler)
