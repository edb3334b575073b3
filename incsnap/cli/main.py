"""The command line. Every command is thin: it reads the settings, calls one function, and shows what came of it."""

from __future__ import annotations

import sys
from typing import Any

import click

from incsnap import __version__
from incsnap.cli import output
from incsnap.cli.check import check
from incsnap.cli.demo import demo
from incsnap.cli.run import run
from incsnap.cli.signal_command import signal
from incsnap.cli.status import status
from incsnap.errors import ConfigError, IncsnapError, PreflightFailed


class _Commands(click.Group):
    """A user's mistake is told in words with a way out; a stack trace means a defect of ours."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except IncsnapError as error:
            output.problem(error.message, error.hint)
            ctx.exit(2 if isinstance(error, ConfigError | PreflightFailed) else 1)
        except KeyboardInterrupt:
            output.note("Interrupted.")
            ctx.exit(130)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="incsnap")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="What the log on stderr tells.",
)
def commands(log_level: str) -> None:
    """Stream MySQL changes to Kafka, and take incremental snapshots while the stream goes on.

    FILE is a properties file with Debezium's names. Exit codes: 0 well, 1 something failed while running,
    2 settings or servers must be repaired first.
    """
    output.set_up_log(log_level)


for _command in (run, check, signal, status, demo):
    commands.add_command(_command)


def main() -> None:
    """The console script."""
    sys.exit(commands.main(prog_name="incsnap"))
