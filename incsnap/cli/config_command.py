"""The command `incsnap config FILE`: it shows what each setting of a file means to incsnap, without asking a server."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
from incsnap.config.explained import DEFAULT, IDLE, OBEYED, REFUSED, Explained
from incsnap.config.job_file import JobFile
from incsnap.config.load import correct, explain
from incsnap.errors import ConfigError

_COLOURS = {OBEYED: "green", IDLE: "dim", REFUSED: "bold red"}


@click.command("config")
@settings_file
@click.option("--defaults/--no-defaults", default=False, help="Show also settings that the file does not set.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option("--fix", is_flag=True, help="Print FILE with older names and values corrected. stderr lists the changes.")
def config(file: JobFile, worker: str | None, defaults: bool, as_json: bool, fix: bool) -> None:
    """Show each setting of a file, its origin and its effect. Refused settings come first.

    Exit code 2 (ConfigError): no job can start with these settings. With --fix: the file cannot be corrected, or no job
    can start with the corrected file for another reason than values that are not filled in.
    """
    if fix:
        _fix(file, worker)
        return
    explained = explain(file, worker)
    shown = [each for each in explained.settings if defaults or each.origin != DEFAULT]
    shown.sort(key=lambda each: each.fate != REFUSED)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in shown], indent=2, ensure_ascii=False))
    else:
        _print(shown)
        for warning in explained.warnings:
            output.warning(warning)
    if explained.problem:
        raise ConfigError(
            explained.problem, "Correct these settings, then start the job. `incsnap config --fix` renames older ones."
        )


def _fix(file: JobFile, worker: str | None) -> None:
    """Print the corrected file to stdout. Print the changes to stderr, and the problems that remain.

    Raise ConfigError if other problems remain than values that are not filled in.
    """
    corrected = correct(file, worker)
    click.echo(corrected.text, nl=False)
    for change in corrected.changes:
        click.echo(f"changed: {change}", err=True)
    if not corrected.changes:
        click.echo("No setting of this file has a newer name or value.", err=True)
    for warning in corrected.warnings:
        output.warning(warning)
    problem = f"A job cannot start with the corrected file yet: {corrected.problem}"
    if corrected.only_unfilled:
        output.warning(problem)
    elif corrected.problem:
        raise ConfigError(problem, "Correct these settings by hand.")


def _print(settings: list[Explained]) -> None:
    """Print the settings as a table."""
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for column in ("setting", "value", "origin", "effect"):
        table.add_column(column, overflow="fold")
    for each in settings:
        effect = f"{each.fate}: {each.note}" if each.note else each.fate
        # Values may contain brackets, which must not be taken for markup.
        table.add_row(*map(Text, (each.name, each.value, each.origin)), Text(effect, _COLOURS.get(each.fate, "yellow")))
    shown = output.console()
    if not shown.is_terminal:
        shown.width = 240  # in a file or a pipe no line is folded
    shown.print(table)
