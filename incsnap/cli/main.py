"""The command line. Every command is thin: it reads the settings, calls one function, and shows what came of it."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from incsnap import __version__
from incsnap.cli import output
from incsnap.cli.failures import FailuresInWords, make_interruptible

#: Where each command is, and its line of help, which must not wait for the second that its imports take.
_COMMANDS = {
    "check": ("incsnap.cli.check", "Look whether settings, servers and machines are ready."),
    "config": ("incsnap.cli.config_command", "Show each setting of a file, where it comes from, what becomes of it."),
    "package": ("incsnap.cli.package_command", "Pack incsnap for a cluster's machines that have none of it."),
    "prepare": ("incsnap.cli.prepare_command", "Make the starts of jobs on this machine quicker."),
    "run": ("incsnap.cli.run", "Run the job until it is interrupted."),
    "signal": (
        "incsnap.cli.signal_command",
        "Ask a running job for a snapshot, or stop, pause, resume or throttle it.",
    ),
    "status": ("incsnap.cli.status", "Show whether the job lives, how far it is, and how fast."),
}


class _Commands(FailuresInWords, click.Group):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in sorted(_COMMANDS.items())])


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

    FILE is a connector's file: properties with Debezium's names, the JSON of Kafka Connect's REST API, or a
    KafkaConnector in YAML. Exit codes: 0 well, 1 something failed while running, 2 settings or servers must be
    repaired first.
    """
    output.set_up_log(log_level)


def main() -> None:
    """The console script."""
    make_interruptible()
    sys.exit(commands.main(prog_name="incsnap"))
