"""``incsnap config FILE``: what each of its settings means here. No server is asked."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
from incsnap.config.explained import DEFAULT, IDLE, OBEYED, REFUSED, Explained
from incsnap.config.load import explain
from incsnap.errors import ConfigError

_COLOURS = {OBEYED: "green", IDLE: "dim", REFUSED: "bold red"}


@click.command("config")
@settings_file
@click.option("--defaults/--no-defaults", default=True, help="Also settings that are not given.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def config(file: str, worker: str | None, defaults: bool, as_json: bool) -> None:
    """Show each setting of a file, where it comes from, what becomes of it."""
    explained = explain(file, worker)
    shown = [each for each in explained.settings if defaults or each.origin != DEFAULT]
    if as_json:
        click.echo(json.dumps([asdict(each) for each in shown], indent=2, ensure_ascii=False))
    else:
        _print(shown)
        for warning in explained.warnings:
            output.warning(warning)
    if explained.problem:
        raise ConfigError(explained.problem, "Correct these settings; then the job starts.")


def _print(settings: list[Explained]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for column in ("setting", "value", "origin", "what becomes of it"):
        table.add_column(column, overflow="fold")
    for each in settings:
        effect = f"{each.fate}: {each.note}" if each.note else each.fate
        # Values may have brackets in them, which are no markup.
        table.add_row(*map(Text, (each.name, each.value, each.origin)), Text(effect, _COLOURS.get(each.fate, "yellow")))
    shown = output.console()
    if not shown.is_terminal:
        shown.width = 240  # a file, or another program: nothing is folded
    shown.print(table)
