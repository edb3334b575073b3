"""Errors of commands. A user's mistake is shown as a message with a repair. A stack trace means a defect of incsnap."""

from __future__ import annotations

from signal import SIG_IGN, SIGINT, default_int_handler, getsignal
from signal import signal as on_signal
from typing import Any

import click

from incsnap.cli import output
from incsnap.errors import ConfigError, IncsnapError, PreflightFailed


class FailuresInWords(click.Command):
    """A command, or a group of commands, that prints errors and ends with the exit codes in the help of `incsnap`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Exit with 2 for wrong settings or servers, 1 for another IncsnapError, and 130 after Ctrl-C.
        """
        try:
            return super().invoke(ctx)
        except IncsnapError as error:
            output.problem(error.message, error.hint)
            ctx.exit(2 if isinstance(error, ConfigError | PreflightFailed) else 1)
        except KeyboardInterrupt:
            output.note("Interrupted.")
            ctx.exit(130)


def make_interruptible() -> None:
    """Make SIGINT end the program, even if it was ignored at the start.

    A shell's background job starts with SIGINT ignored, and Python keeps that. So the job could not be interrupted.
    """
    if getsignal(SIGINT) is SIG_IGN:
        on_signal(SIGINT, default_int_handler)
