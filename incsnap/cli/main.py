"""The command line. Each command is thin: it reads the settings, calls one function and shows the result."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from incsnap.cli import output
from incsnap.cli.failures import FailuresInWords, make_interruptible
from incsnap.version import __version__

#: The module and the help line of each command. The help must not wait a second for a command's imports.
_COMMANDS = {
    "check": ("incsnap.cli.check", "Check whether settings, servers and machines are ready."),
    "config": ("incsnap.cli.config_command", "Show each setting of a file, its origin and its effect."),
    "hand-back": ("incsnap.cli.hand_back", "Let a Debezium connector continue where the stopped job has ended."),
    "package": ("incsnap.cli.package_command", "Pack incsnap for the machines of a cluster."),
    "prepare": ("incsnap.cli.prepare_command", "Make starts of jobs on this machine quicker."),
    "run": ("incsnap.cli.run", "Run the job until it is interrupted."),
    "signal": (
        "incsnap.cli.signal_command",
        "Ask a running job for a snapshot, or stop, pause, resume or throttle it.",
    ),
    "status": ("incsnap.cli.status", "Show whether the job is alive, its lag, its rates and its snapshots."),
    "takeover": (
        "incsnap.cli.takeover",
        "Continue the topics of a stopped connector, without a gap and without repetitions.",
    ),
    "verify": ("incsnap.cli.verify", "Compare the captured tables with their topics, while both change."),
}


class _Commands(FailuresInWords, click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name][0]), cmd_name.replace("-", "_"))
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
    help="Lowest level that is logged to stderr.",
)
def commands(log_level: str) -> None:
    """Stream MySQL changes to Kafka, and take incremental snapshots while the stream goes on.

    FILE is a connector's file: properties with Debezium's names, the JSON of Kafka Connect's REST API, or a
    KafkaConnector in YAML. Exit codes: 0 success, 1 a failure while running, 2 settings or servers must be repaired
    first, 130 interrupted.
    """
    output.set_up_log(log_level)


def main() -> None:
    """Run the command line. This is the console script."""
    make_interruptible()
    sys.exit(commands.main(prog_name="incsnap"))
